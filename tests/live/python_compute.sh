#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# In which Python functions slow steps compute, as --explain finds by samples, in each interpreter that is here.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/python/lib.sh
. tests/live/python/lib.sh

# The cause is to be their work, not what a neighbour takes.
go_first FBT
first=()
! chrt -f 1 true 2>/dev/null || first=(chrt -f 1)

# Escalations for their work that name a function.
told='[e for e in H.values() if e["cause"] == "compute" and "grown_function" in e]'

# on_cpu REGEX: us in such stacks of samples
on_cpu()
{
	awk -v wanted="$1" '/;\[on CPU\] [0-9]+$/ && $0 ~ wanted { sum += $NF } END { print sum + 0 }' "$OUT.folded"
}

while read -r version path; do
	rm -f "${OUT:?}".*
	start_waiting env LD_PRELOAD="$LIBRARY" "${first[@]}" "$path" tests/live/python/compute.py \
		"$TMP/truth.json" "$(at_length 700 2000)"
	run_tool -p "$ENGINE" --step 'py:__main__:Engine.step' --budget-us 10000 --folded "$OUT.folded"
	wait_attached "$TOOL" || { sed 's/^/# /' "$OUT.err" && not_ok "$version: the tool attaches"; }
	go
	wait "$ENGINE"
	end_tool
	fact "$version: slow steps are told" "len($told) > 4 and all(e['step'] in T['slow'] for e in $told)"
	none "$version: with the Python function that others do not call" \
		"[e for e in ${told}[-4:] if e['grown_function'] != 'slow_part (compute.py)']"
	fact "$version: and the line that calls it" \
		"all(e['grown_callers'].startswith(('Engine.step (compute.py:', 'step (compute.py:')) for e in ${told}[-4:])"
	fact "$version: which is the last of the step" "all('<-' not in e['grown_callers'] for e in ${told}[-4:])"
	holds "$version: its stack has most of their time" \
		[ $(($(on_cpu '^Engine.step;slow_part;') * 10)) -ge $((7 * $(on_cpu .))) ]
	is "$version: no stack goes on beyond the step" "$(on_cpu '<module>')" 0
done < <(interpreters)
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A process continues when its first thread has ended, and so do its steps. Under the process's own
# number, the kernel then shows no maps and no program.
. "$(dirname "$0")/lib.sh"

# The steps take 2 s, so the tool looks for new files twice in that time.
for after in 0 1500; do
	name="first thread ends $([ $after = 0 ] && echo 'before' || echo 'under trace')"
	rm -f "${OUT:?}".*
	start_program leader 3000 $after
	# -q: on a slow machine the go may come after 5 s, and the tool would give hints.
	run_tool -q -p "$ENGINE" --step my_step --detail all --folded "$OUT.folded" "${calm[@]}"
	wait_attached "$TOOL"
	go
	wait "$ENGINE"
	end_tool 0 "$name: a clean end"
	fact "$name: every step is seen" 'len(S) == T["steps"] == 3000'
	fact "$name: with its calls" \
		'all(s["end"] == "return" for s in S) and sorted(s["calls"] for s in S) == 2999 * [2] + [3]'
	fact "$name: the table is exact" 'table["getppid"] == T["getppid"]'
	has "$name: a slow call has its stack" "$OUT.folded" '^my_step;[_a-z].*nanosleep'
	is "$name: no complaint" "$(cat "$OUT.err")" ''
done

# The search knows it too. Before go there is no step.
name='list of steps'
start_program leader 1000000 0
go
"$FBT" --list-steps -p "$ENGINE" >"$TMP/list" 2>&1
is "$name: it ends well" $? 0
kill "$ENGINE"
wait "$ENGINE"
has "$name: the step is found" "$TMP/list" 'my_step'
is "$name: nothing says that the process has ended" "$(grep -E 'has exited' "$TMP/list")" ''

# Probes for a process without its first thread are in all processes. Others are not to notice.
name='beside another one'
rm -f "${OUT:?}".*
start_program leader 3000 0
beside=$ENGINE
# It waits for its go until the end.
exec 8>&7
start_program leader 3000 4000
run_tool -q -p "$ENGINE" -p "$beside" --step my_step --detail all "${calm[@]}"
wait_attached "$TOOL"
go
wait "$ENGINE"
kill "$beside"
exec 8>&-
end_tool 0 "$name: a clean end"
fact "$name: every step is seen once" 'len(S) == T["steps"] == 3000'
fact "$name: with its calls" \
	'all(s["end"] == "return" for s in S) and sorted(s["calls"] for s in S) == 2999 * [2] + [3]'
finish

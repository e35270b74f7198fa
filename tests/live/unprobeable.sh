#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A step function that the kernel refuses to probe: reported once, and the window continues without
# it.
. "$(dirname "$0")/lib.sh"

[ "$(uname -m)" = x86_64 ] || { echo 'SKIP the function is written for x86' && exit 77; }
"${CC:-gcc}" -shared -fPIC -o "$TMP/libllama.so" tests/fake/unprobeable_step.c

# The function is named by --step and mapped from the start.
start_waiting env LD_PRELOAD="$TMP/libllama.so" "$FBT_ENGINE" --wait --steps 0 --sleep-us 2000 \
	--truth "$TMP/truth.json"
rm -f "${OUT:?}".*
run_tool -p "$ENGINE" --step late_step -d 1
end_tool 1 'named: exit status 1'
is 'named: in one line' "$(grep -c . "$OUT.err")" 1
has 'named: that says what and why' "$OUT.err" 'libllama\.so.*cannot be probed'

# The same function, found by the tool. -q suppresses the hints after 5 s and the alerts that a busy
# machine causes.
rm -f "${OUT:?}".*
run_tool -q -p "$ENGINE" -n 16
go
end_tool 0 'found: the window goes on'
is 'found: one line' "$(grep -c . "$OUT.err")" 1
has 'found: that says what and why' "$OUT.err" 'libllama\.so.*cannot be probed'
fact 'found: steps are intervals' 'len(S) > 15 and {s["step_source"] for s in S} == {"interval"}'

kill "$ENGINE"
wait "$ENGINE"

# The function is loaded later.
rm -f "${OUT:?}".*
start_engine --late "$TMP/libllama.so" --late-ms 500 --steps 0 --sleep-us 30000
run_tool -q -p "$ENGINE" --step late_step --wait-step
wait_attached "$TOOL"
go
await_lines 1 'cannot be probed' "$OUT.err"
await_steps $(($(grep -c '"event":"step_prof"' "$OUT.profile") + 5))
kill -TERM "$ENGINE"
wait "$ENGINE"
end_tool 0 'late: the window goes on'
is 'late: one line' "$(grep -c . "$OUT.err")" 1
has 'late: that says what and why' "$OUT.err" 'libllama\.so.*cannot be probed'
fact 'late: steps are intervals to the end' \
	'len(S) >= 5 and {s["step_source"] for s in S} == {"interval"}'
fact 'late: the engine was not disturbed' 'T["steps"] > 0 and table["getppid"] > 0'
finish

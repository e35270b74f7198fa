#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A target that calls execve, from its first thread and from another one, and one that the tool
# starts.
. "$(dirname "$0")/lib.sh"

# The second program does not wait, so the number of its steps without probes depends on when the
# tool has a CPU.
go_first FBT
for how in --exec --exec-thread; do
	# The kernel ties a probe to the thread that led the process. If another thread has called
	# execve, the tool sets new probes once it notices, after some 10 ms.
	steps=$([ $how = --exec ] && echo 30 || echo 600)
	missed=$([ $how = --exec ] && echo 0 || echo 590)
	trace_engine "$how --steps $steps --sleep-us 1000"
	fact "$how: steps of both images" \
		"2 * $steps - $missed <= len(S) <= B['steps'] + T['steps'] == 2 * $steps"
	fact "$how: each step alike" 'all(s["by"] == T["per_step"] for s in S)'
	fact "$how: the table has at least the calls of both" \
		'all(table[k] >= T["calls"].get(k, 0) + B["calls"].get(k, 0) for k in set(T["calls"]) | set(B["calls"]))'
	fact "$how: calls that only the engine makes are exact" \
		'table["getppid"] == T["calls"]["getppid"] + B["calls"]["getppid"]'
	fact "$how: nothing lost" 'lost == 0'
done

rm -f "${OUT:?}".* "$TMP/truth.json"
run_tool --step engine_step -- "$FBT_ENGINE" --steps 50 --sleep-us 1000 --truth "$TMP/truth.json"
end_tool 0 'COMMAND: the tool ends when it does'
fact 'COMMAND: no step is missed' 'len(S) == T["steps"] == 50'
fact 'COMMAND: each step alike' 'all(s["by"] == T["per_step"] for s in S)'
fact 'COMMAND: traced from its first instruction' 'table.get("set_tid_address") == 1'
fact 'COMMAND: what only the engine calls is exact' 'table["getppid"] == T["calls"]["getppid"]'

rm -f "${OUT:?}".*
run_tool -- /nonexistent/command
end_tool 127 'COMMAND that is not there: exit status 127'
has 'and it is named' "$OUT.err" '/nonexistent/command'
rm -f "${OUT:?}".*
run_tool -- /dev/null
end_tool 126 'COMMAND that cannot be executed: exit status 126'
rm -f "${OUT:?}".*
run_tool --step engine_step --wait-step -- sh -c 'exit 7'
end_tool 7 "COMMAND that fails: its status is the tool's"
# Without the step function, steps are intervals. Their number depends on the machine.
fact 'and it is still a whole window' 'R["steps"] == len(S) <= 1 + R["window_ns"] // R["interval_ns"] and
	lost == 0'

# It is traced no more once it ends, but its status comes when it has closed its files.
mkdir "$TMP/slow"
mkfifo "$TMP/mounted"
FLUSH_S=3 python3 tests/live/fault_fs.py "$TMP/slow" EIO 1000000 >"$TMP/mounted" 2>&1 7>&- &
if read -r line <"$TMP/mounted" && [ "$line" = ready ]; then
	rm -f "${OUT:?}".*
	run_tool -- /usr/bin/python3 -c 'import os, sys
file = open(sys.argv[1], "w")
os._exit(7)' "$TMP/slow/file"
	end_tool 7 "COMMAND that is slow to end: its status is the tool's"
	umount -l "$TMP/slow"
	is 'and it is not called running' "$(grep -c 'still running' "$OUT.err")" 0
else
	echo "SKIP COMMAND that is slow to end: no FUSE here: $line"
fi
finish

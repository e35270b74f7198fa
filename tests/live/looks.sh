#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Who holds the lock that a step waits for, seen while it waits: against what the program says of
# itself, in a PID namespace of its own too; and what all threads are in at a hang, against gdb.
. "$(dirname "$0")/lib.sh"

# trace_looks TOOL-OPTION…
#
# The program has its first CPU taken away by a thread with real-time priority. A tool that is on that
# CPU would see nothing of it, nor one that waits behind other work for a fifth of a second.
trace_looks()
{
	run_tool -p "$ENGINE" --step look_step --record "$OUT.capture" "$@"
	[ "$(nproc)" = 1 ] || taskset -acp "1-$(($(nproc) - 1))" "$TOOL" >/dev/null
	renice -n -10 -p "$TOOL" >/dev/null
	wait_attached "$TOOL"
	go
}

# check NAME WHAT: the account against the profile
check()
{
	python3 tests/live/looks.py "$2" "$TMP/truth.json" "$OUT.profile" >"$OUT.facts" || FAILED=1
	sed "s/ok - /ok - $1: /" "$OUT.facts"
}

start_program looks
trace_looks
wait "$ENGINE"
end_tool
check 'same namespace' tids
has 'the alert says who, what and where' "$OUT.err" \
	'held by thread [0-9]+ "h-first", which was in read for [0-9.]+ ms, in hold_reading <- run_holder \(seen [0-9.]+ ms into the wait\)'
has 'the alert says where a step spins' "$OUT.err" \
	'spun [0-9.]+ ms .* in [0-9,]+ sched_yield; in spin_yielding <- look_step'
fact 'the trace has it too' \
	"any(e.get('args', {}).get('holder_stack', '').startswith('hold_sleeping') for e in X)"
fact 'a look takes few ms' "0 < R['looks_ns'] < R['looks'] * 5e6 and not R['looks_blind']"
"$FBT" --replay "$OUT.capture" -o "$TMP/again" >/dev/null 2>&1
is 'a replay has the same' "$(grep -o '"holder_[a-z]*":[^,]*' "$TMP/again.jsonl")" \
	"$(grep -o '"holder_[a-z]*":[^,]*' "$OUT.profile")"

if unshare --fork --pid --mount-proc true 2>/dev/null; then
	rm -f "${OUT:?}".*
	start_waiting unshare --fork --pid --mount-proc "$FBT_BUILD/tests/live_looks" "$TMP/truth.json"
	outer=$ENGINE
	ENGINE=$(pgrep -P "$outer")
	trace_looks
	wait "$outer"
	end_tool
	check 'another namespace' names
fi

command -v gdb >/dev/null || finish
rm -f "${OUT:?}".*
start_program looks 1 chain
trace_looks --hang 1s
await_lines 1 ' hang: look_step ' "$OUT.err"
gdb -p "$ENGINE" -batch -ex 'thread apply all bt' >"$OUT.gdb" 2>&1
wait "$ENGINE"
end_tool
python3 tests/live/looks.py gdb "$OUT.gdb" "$OUT.report" || FAILED=1
has 'a hang: the chain of locks' "$OUT.err" \
	'hang: .* held by thread [0-9]+ "h-first": futex for .* in hold_second <- run_holder, lock at 0x[0-9a-f]+ held by thread [0-9]+ "h-second": clock_nanosleep'
"$FBT" --replay "$OUT.capture" --report json --trace none --profile none >"$OUT.json" 2>/dev/null
is 'a replay of the hang has the same threads' "$(grep -o '"threads":\[.*threads_not_shown' "$OUT.json")" \
	"$(grep -o '"threads":\[.*threads_not_shown' "$OUT.report")"
finish

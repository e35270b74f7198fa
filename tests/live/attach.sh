#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The edges of a window: attached in mid-call, ended by -n, -d, the target's end, SIGINT and SIGTERM.
. "$(dirname "$0")/lib.sh"

trace_engine '--steps 20 --blocked'
check_truth 'mid-call'
fact 'mid-call: a read that began before is not counted' 'table["read"] == T["calls"]["read"]'

start_engine --steps 0 --sleep-us 500
attach -n 40
go
end_tool 0 '-n: the tool ends by itself'
fact '-n: after so many steps' '40 <= len(S) < 80'
holds '-n: the target goes on' kill -0 "$ENGINE"

# timed ARGUMENT…: how long the tool takes to end by itself, in ms, goes to took
timed()
{
	local begin

	rm -f "${OUT:?}".*
	begin=$(date +%s%N)
	run_tool -p "$ENGINE" --step engine_step "$@"
	end_tool 0 "$*: the tool ends by itself"
	took=$((($(date +%s%N) - begin) / 1000000))
}

# What it takes to begin and to end is a matter of the machine, which may also be late once.
timed -n 1
usual=$took
for _ in 1 2 3; do
	timed -d 1
	[ "$took" -lt $((2500 + 2 * usual)) ] && [ "$(q 'R["window_ns"] <= 1.5e9')" = True ] && break
done
holds "-d: after that time ($took ms)" [ "$took" -ge 900 ]
holds "-d: and soon (-n 1 took $usual ms)" [ "$took" -lt $((2500 + 2 * usual)) ]
fact '-d: with the window that was asked for' '0.9e9 <= R["window_ns"] <= 1.5e9'
holds '-d: outputs are valid' "$FBT" validate --require-events step_prof,syscall_prof,window_prof "$OUT.profile" "$OUT.trace"

for signal in INT TERM; do
	rm -f "${OUT:?}".*
	attach
	sleep 0.5
	kill -$signal "$TOOL"
	end_tool 0 "SIG$signal: a clean end"
	fact "SIG$signal: everything is written" 'len(S) > 0 and W["steps"] == len(S) and len(X) >= len(S) and R["steps"] == len(S)'
	holds "SIG$signal: and valid" "$FBT" validate "$OUT.profile" "$OUT.trace"
	is "SIG$signal: no partial file is left" "$(find "$TMP" -name '*.partial')" ''
done

# Stopped, the tool cannot finish between the two.
attach
sleep 0.3
kill -STOP "$TOOL"
kill -INT "$TOOL"
kill -CONT "$TOOL"
kill -INT "$TOOL"
wait "$TOOL"
holds 'SIGINT twice: the target is not' kill -0 "$ENGINE"

attach
kill -TERM "$ENGINE"
wait "$ENGINE"
is 'target ends: as it wanted' $? 0
end_tool 0 'target ends: so does the window'
fact 'target ends: all is kept' 'len(S) > 0 and R["processes"][0]["exited"]'

start_engine --steps 0 --sleep-us 500
attach
kill -KILL "$ENGINE"
end_tool 0 'target killed before its first step: a clean end'
holds 'and valid outputs' "$FBT" validate "$OUT.profile" "$OUT.trace"
finish

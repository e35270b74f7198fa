#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The edges of a window: attaching within a call, and its end by -n, -d, the target's end, SIGINT
# and SIGTERM.
. "$(dirname "$0")/lib.sh"


trace_engine '--steps 20 --blocked'
check_truth 'mid-call'
fact 'mid-call: a read that began before is not counted' 'table["read"] == T["calls"]["read"]'

start_engine --steps 0 --sleep-us 500
attach -n 40
go
end_tool 0 '-n: the tool ends by itself'
fact '-n: after so many steps' 'len(S) == R["steps"] == 40'
holds '-n: the target goes on' kill -0 "$ENGINE"

rm -f "${OUT:?}".*
attach -d 1
end_tool 0 '-d 1: the tool ends by itself'
# A busy machine may end the window late. A wrong unit of time would be off by 60 or 1000 times.
fact '-d: after that time, by the clock of the window' '1e9 <= R["window_ns"] < 30e9'
holds '-d: outputs are valid' "$FBT" validate --require-events step_prof,syscall_prof,window_prof "$OUT.profile" "$OUT.trace"

for signal in INT TERM; do
	rm -f "${OUT:?}".*
	attach
	await_steps 1
	kill -$signal "$TOOL"
	end_tool 0 "SIG$signal: a clean end"
	fact "SIG$signal: everything is written" 'len(S) > 0 and W["steps"] == len(S) and len(X) >= len(S) and R["steps"] == len(S)'
	holds "SIG$signal: and valid" "$FBT" validate "$OUT.profile" "$OUT.trace"
	is "SIG$signal: no partial file is left" "$(find "$TMP" -name '*.partial')" ''
done
kill -TERM "$ENGINE"
wait "$ENGINE"

# Detaching takes longer than these steps, so one is open whenever a window ends. The engine's
# account has room for a minute of steps. On a busy machine the engine may have no CPU when the
# window ends, so it may take several windows until one cuts a step.
ends=
for window in {1..60}; do
	[ "$window" -le 8 ] || ! grep -q truncated <<<"$ends" || break
	rm -f "${OUT:?}".*
	start_engine --steps 0 --compute-us 400 --sleep-us 1
	go
	attach -d 0.1
	end_tool 0 "open at the end $window: the tool ends"
	kill -TERM "$ENGINE"
	wait "$ENGINE"
	fact "open at the end $window: no step is longer than by the engine's own clock" \
		'all([s["us"]["total"] <= b[1] / 1000 + 1 for b in T["threads"][0]["spans_ns"]
			if 0 <= W["epoch_monotonic_us"] + s["start_us"] - b[0] / 1000 + 2 <= b[1] / 1000] == [True] for s in S)'
	ends+=$(q '[s["end"] for s in S][-1]')
done
holds 'open at the end: one was' grep -q truncated <<<"$ends"
start_engine --steps 0 --sleep-us 500
go

# While it is stopped, the tool cannot finish between the two events.
attach
kill -STOP "$TOOL"
kill -INT "$TOOL"
kill -CONT "$TOOL"
kill -INT "$TOOL"
wait "$TOOL"
holds 'SIGINT twice: the target is not' kill -0 "$ENGINE"

rm -f "${OUT:?}".*
attach
await_steps 1
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

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# -a and several processes: each process has its own steps and outputs.
. "$(dirname "$0")/lib.sh"

start_engine --steps 60 --sleep-us 500
first=$ENGINE
exec 6>&7
mkfifo "$TMP/go2" "$TMP/ready2"
"$FBT_ENGINE" --wait --steps 90 --sleep-us 500 --truth "$TMP/second.json" <"$TMP/go2" >"$TMP/ready2" 6>&- 7>&- &
second=$!
exec 5>"$TMP/go2"
read -r _ <"$TMP/ready2"
run_tool -p "$first,$second" --step engine_step
wait_attached "$TOOL"
echo >&6
echo >&5
wait "$first" "$second"
end_tool
fact 'two processes: the steps of each' \
	"(len([s for s in S if s['pid'] == $first]), len([s for s in S if s['pid'] == $second])) == (60, 90)"
fact 'two processes: a table of each' "sorted(tables) == sorted([$first, $second])"
fact 'two processes: the first is exact' \
	"near(tables[$first], T, 'calls')"
holds 'two processes: outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"
exec 5>&- 6>&- 7>&-

start_engine --steps 0 --sleep-us 500
run_tool -a --step engine_step
wait_attached "$TOOL"
go
await_steps 101 "$ENGINE"
# This engine starts after the tool has attached.
"$FBT_ENGINE" --steps 17 --sleep-us 500 &
late=$!
wait $late
stop_tool
fact '-a: steps of what ran already' "len([s for s in S if s['pid'] == $ENGINE]) > 100"
fact '-a: and of what came later' "len([s for s in S if s['pid'] == $late]) == 17"
fact '-a: each step alike' "len({str(s['by']) for s in S if s['end'] == 'return' and s['pid'] in ($ENGINE, $late)}) == 1"
fact '-a: never the tool itself' "$TOOL not in tables"
holds '-a: outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"
kill "$ENGINE"
wait "$ENGINE"

# A library that a process loads when its files have long been searched.
"${CC:-gcc}" -shared -fPIC -O2 -o "$TMP/liblate.so" tests/fake/late_step.c
start_engine --late "$TMP/liblate.so" --late-ms 2000 --steps 0 --sleep-us 1000
run_tool -a --step late_step
wait_attached "$TOOL"
go
holds '-a: steps of a late library are seen' \
	await_lines 25 '"event":"step_prof".*"kind":"late_step"' "$OUT.profile"
stop_tool
has '-a: and the tool says when it finds it' "$OUT.err" 'found a step function; it replaces the intervals'
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# fault_stop.sh [SECONDS]: the tool is stopped for some seconds under load. The target does not
# wait, and every lost record is counted.
# shellcheck disable=SC2016,SC2317
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/gpu/lib.sh"

seconds=${1:-$(at_length 3 10)}
calls=8
# A real disk would have to take all data at once, and the test would wait for it.
SHM=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
undo()
{
	rm -rf "$SHM"
}

now_ns()
{
	python3 -c 'import time; print(time.clock_gettime_ns(time.CLOCK_MONOTONIC))'
}

# The rate guard is off, so that the target's pace does not depend on how expensive traps are here.
is_stopped()
{
	[ "$(sed 's/.*) //; s/ .*//' "/proc/$TOOL/stat")" = T ]
}

# has_read COUNT: the profile has that many steps
has_read()
{
	[ "$(grep -c '"event":"step_prof"' "$OUT.profile")" -ge "$1" ]
}

# has_made COUNT: that many steps have begun
has_made()
{
	local begun

	read -ra begun < <(python3 tests/live/fault_truth.py span "$truth")
	[ $((begun[0] + begun[1])) -ge "$1" ]
}

# After the steps that lost calls, complete steps come again.
has_caught_up()
{
	tail -n +$((lines + 1)) "$OUT.profile" | grep -q '"complete":false' &&
		! tail -n 400 "$OUT.profile" | grep -q '"complete":false'
}

# More steps than fit into the kernel's ring of 4 MiB: 336 bytes each ("events" in bpf/maps.bpf.h).
RING_STEPS=14000
# On a busy machine the tool might lose records before it is stopped.
go_first FBT

OUT=$SHM/out
truth=$SHM/truth.bin
start_waiting "$FBT_BUILD/tests/live_fault_target" "$truth" 2 300 $calls
run_tool -p "$ENGINE" --step fault_step --step-arg thread=arg1 --step-arg n=arg2 --detail all \
	--ring-records 16384 --record "$OUT.capture" "${calm[@]}"
wait_attached "$TOOL"
go
sleep 1.5
begin=$(now_ns)
# Records that the tool has not read by then may be lost.
read -ra begun < <(python3 tests/live/fault_truth.py span "$truth")
wait_for 60 has_read $((begun[0] + begun[1])) || not_ok 'the tool keeps up'
kill -STOP "$TOOL"
read -ra begun < <(python3 tests/live/fault_truth.py span "$truth")
sleep "$seconds"
wait_for 120 has_made $((begun[0] + begun[1] + RING_STEPS)) || not_ok 'the target makes more steps than there is room for'
holds 'the tool is stopped' is_stopped
end=$(now_ns)
lines=$(wc -l <"$OUT.profile")
kill -CONT "$TOOL"
wait_for 60 has_caught_up || not_ok 'the tool catches up'
sleep 2
kill -TERM "$ENGINE"
wait "$ENGINE"
is 'the target ends as it wants, each of its calls as it should be' $? 0
end_tool 0 'the tool ends by itself'
holds 'what the tool has and what it lost is what the target did, and nobody waited' \
	python3 tests/live/fault_truth.py stopped "$truth" "$OUT" $calls "$begin" "$end"
records=$(python3 tests/live/count_records.py "$OUT.capture")
fact "the table has the $records calls that have a record, and the lost ones" \
	"sum(table.values()) == $records + R['lost']['calls']"
holds 'outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"

# A window by flag whose tool is stopped, and whose flag is removed meanwhile.
OUT=$TMP/out
start_waiting "$FBT_BUILD/tests/live_fault_target" "$truth" 2 500 $calls
go
mkdir "$TMP/windows"
env --default-signal=INT "$FBT" -p "$ENGINE" --step fault_step --flag "$TMP/flag" --dir "$TMP/windows" "${calm[@]}" \
	--rate-guard 0 --report none >/dev/null 2>"$OUT.err" </dev/null 7>&- &
TOOL=$!
for window in 1 2; do
	touch "$TMP/flag"
	wait_for 60 eval '[ "$(grep -c "is open" "$OUT.err")" = '$window' ]' || not_ok "flag: window $window opens"
	kill -STOP "$TOOL"
	sleep 1.5
	rm "$TMP/flag"
	kill -CONT "$TOOL"
	wait_for 60 eval '[ "$(find "$TMP/windows" -name "*.json" | wc -l)" = '$window' ]'
	is "flag: window $window is closed once the tool goes on" $? 0
done
kill -INT "$TOOL"
end_tool 0 'flag: the tool ends'
holds 'flag: their files are valid' "$FBT" validate "$TMP/windows"/*
kill -TERM "$ENGINE"
wait "$ENGINE"
is 'flag: the target ends as it wants' $? 0

# The shim notices that nobody reads, and leaves CUPTI. It comes back with the tool.
# shellcheck disable=SC2034
truth=$TMP/truth.gpu
count_calls()
{
	grep -c " $1" "$TMP/calls"
}

# are_complete LINE COUNT: the profile has that many complete steps from that line on
are_complete()
{
	[ "$(tail -n +"$1" "$OUT.profile" | grep '"event":"gpu_prof"' | grep -c '"complete":true')" -ge "$2" ]
}

start_gpu --steps 0 --script k50,h20,s
attach_gpu "${calm[@]}"
go
wait_for 60 are_complete 1 60
kill -STOP "$TOOL"
holds 'GPU: the shim leaves CUPTI while the tool is stopped' wait_for 60 eval '[ "$(count_calls cuptiUnsubscribe)" -gt 0 ]'
# Steps without records: the engine makes more than 50 of them in this time.
sleep 0.5
lines=$(wc -l <"$OUT.profile")
kill -CONT "$TOOL"
holds 'GPU: and subscribes again' wait_for 60 eval '[ "$(count_calls cuptiSubscribe)" -gt 1 ]'
holds 'GPU: steps are complete again' wait_for 60 are_complete $((lines + 1)) 200
stop_tool
end_gpu
# Such a step has figures that are not complete, or none, if it is known by then that the shim had left.
left=$(awk '$3 ~ /^cuptiUnsubscribe/ { print $1; exit }' "$TMP/calls")
back=$(awk '$3 ~ /^cuptiSubscribe/ && ++n == 2 { print $1 }' "$TMP/calls")
between="{s['step'] for s in S if $left <= (s['start_us'] + W['epoch_monotonic_us']) * 1000 < $back}"
fact 'GPU: there are steps between' "len($between) > 50"
fact 'GPU: none of those says that it is complete' \
	"not $between & {r['shape']['step'] for r in E if r['event'] == 'gpu_prof' and r['shape']['complete']}"
truth_of 'GPU: stopped' --cut 1000
holds 'GPU: outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"
finish

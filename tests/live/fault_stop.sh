#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# fault_stop.sh [SECONDS]: the tool is stopped for 10 s under load. The target does not wait, and what
# is lost is counted, to the record.
# shellcheck disable=SC2317
. "$(dirname "$0")/lib.sh"

seconds=${1:-10}
calls=8
# A disk that has to take it all at once would be what is waited for.
SHM=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
trap 'rm -rf "$SHM"; clean_up' EXIT

now_ns()
{
	python3 -c 'import time; print(time.clock_gettime_ns(time.CLOCK_MONOTONIC))'
}

# The target's pace is its own, not that of a machine whose traps are dear: no rate guard.
is_stopped()
{
	[ "$(sed 's/.*) //; s/ .*//' "/proc/$TOOL/stat")" = T ]
}

OUT=$SHM/out
truth=$SHM/truth.bin
start_waiting "$FBT_BUILD/tests/live_fault_target" "$truth" 2 300 $calls
run_tool -p "$ENGINE" --step fault_step --step-arg thread=arg1 --step-arg n=arg2 --detail all \
	--rate-guard 0 --ring-records 16384 --record "$OUT.capture" "${calm[@]}"
wait_attached "$TOOL"
go
sleep 1.5
begin=$(now_ns)
kill -STOP "$TOOL"
sleep "$seconds"
holds 'the tool is stopped' is_stopped
end=$(now_ns)
kill -CONT "$TOOL"
sleep 4
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
finish

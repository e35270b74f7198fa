#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# At any load, the kernel's count plus what was lost equals the program's own count. Each load runs
# once normally, and once with the smallest rings and a tool that is stopped for a part of the time.
. "$(dirname "$0")/lib.sh"

capture=$(mktemp -p /dev/shm 2>/dev/null || echo "$TMP/capture")

# shellcheck disable=SC2317
undo()
{
	rm -f "$capture"
}

# The tool is stopped before the load begins, so that the load meets a stopped tool on a slow
# machine too.
starve_tool()
{
	kill -STOP "$TOOL"
	go
	for _ in 1 2 3; do
		sleep 0.2
		kill -CONT "$TOOL"
		sleep 0.1
		kill -STOP "$TOOL"
	done
	kill -CONT "$TOOL"
}

# exact NAME THREADS CALLS STEPS TOOL-OPTION…: see load.c; runs for one second
exact()
{
	local name=$1 threads=$2 calls=$3 steps=$4 records

	shift 4
	rm -f "${OUT:?}".* "$capture"
	start_program load "$threads" 1 "$calls" "$steps"
	run_tool -p "$ENGINE" --step load_step "${calm[@]}" --trace none --record "$capture" "$@"
	wait_attached "$TOOL"
	if [ "$starve" = 0 ]; then go; else starve_tool; fi
	wait "$ENGINE"
	end_tool
	records=$(python3 tests/live/count_records.py "$capture")
	echo "# $name: $(q '"%d calls, %d steps; lost: %d calls, %d steps" %
		(T["calls"], T["steps"], R["lost"]["calls"], R["lost"]["steps"])')"
	fact "$name: the table has the program's own number of calls" 'table["getppid"] == T["calls"]'
	fact "$name: the steps, with the lost ones, are the program's own number" \
		'len(S) + R["lost"]["steps"] == T["steps"]'
	fact "$name: each step has the program's own number of calls" \
		"{s['calls'] for s in S} <= {$calls}"
	fact "$name: a step of which a call was lost, or let go for want of room, is not complete" \
		'all(s["complete"] == (not s["lost_calls"] and not s.get("calls_truncated")) for s in S)'
	fact "$name: what is lost is told alike by report and profile" \
		'all(R["lost"][k[5:]] == v for k, v in W.items() if k.startswith("lost_"))'
	fact "$name: the steps say of how many calls they lost the record" \
		'sum(s["lost_calls"] for s in S) <= R["lost"]["calls"]'
	[[ "$*" != *'--detail all'* ]] ||
		fact "$name: each call of the table has a record or is lost" \
			"sum(table.values()) == $records + R['lost']['calls']"
}

# One load for each resource that it exhausts: call rings, the step ring, slots, the tool's CPU.
all_loads()
{
	local how=$1

	shift
	exact "$how, 2 x 100 steps/s of 20 calls" 2 20 100 --detail all "$@"
	exact "$how, 2 x 1,000 steps/s of 100 calls" 2 100 1000 --detail all "$@"
	exact "$how, steps of 1 call without a pause" 2 1 0 --detail all "$@"
	exact "$how, 100 x 20 steps/s of 50 calls" 100 50 20 --detail all "$@"
	exact "$how, steps of 2,000 calls without a pause" 2 2000 0 --detail all "$@"
	exact "$how, the same, --detail escalated" 2 2000 0 "$@"
	exact "$how, the same, --detail steps" 2 2000 0 --detail steps "$@"
	exact "$how, calls outside of steps without a pause" 2 -2000 0 --detail all "$@"
}

starve=0
all_loads 'as it is'
starve=1
all_loads 'starved' --ring-records 512
fact 'starved: the last load was heavy enough to lose calls' 'R["lost"]["calls"] > 0'
finish

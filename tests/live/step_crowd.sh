#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# 1,000 threads that make steps at once: each step is traced on its thread with its own calls, or
# counted as lost. Then steps of 2 us, as fast as one thread can make them.
. "$(dirname "$0")/lib.sh"

# The tool has room for two seconds of the steps of 1,000 threads.
go_first FBT

run_crowd()
{
	rm -f "${OUT:?}".*
	start_program step_crowd "$@"
	if ! kill -0 "$ENGINE" 2>/dev/null; then
		echo 'SKIP the limits here do not allow 1000 threads'
		exit 77
	fi
	run_tool -p "$ENGINE" --step crowd_step "${calm[@]}" "${options[@]}"
	wait_attached "$TOOL"
	go
	wait "$ENGINE"
	end_tool
}

# [getppid calls, write calls] of each thread, by its own steps.
seen='[(t, [s["by"][c]["calls"] for c in ("other", "write")]) for s in S for t in [str(s["tid"])]]'

# All 20 steps of each thread, with a pause of 200 ms after each.
options=(--detail escalated --rate-guard 0)
run_crowd 1000 20 200000
fact '1,000 threads: each step is seen on its thread' \
	'{str(s["tid"]) for s in S} == set(T["threads"]) and
	len(S) + R["lost"]["steps"] == 1000 * T["steps"]'
fact '1,000 threads: each has its own calls, and no others' \
	"all(T['threads'][t] == calls for t, calls in $seen)"
fact '1,000 threads: the table has all calls' \
	'table["getppid"] == sum(n * T["steps"] for n, _ in T["threads"].values()) and
	0 <= table["write"] - 2000 * T["steps"] < 9'
fact '1,000 threads: what is not complete has lost calls, and they are counted' \
	'sum(s["lost_calls"] for s in S) <= R["lost"]["calls"] and
	all(s["complete"] or s["lost_calls"] for s in S)'
fact '1,000 threads: at this pace nothing is lost' 'lost == 0'

# The same without a pause, the worst case: nothing is lost silently.
options=(--rate-guard 0)
run_crowd 1000 20 0
fact 'without a pause: a step is seen, or counted' \
	'len(S) + R["lost"]["steps"] == 1000 * T["steps"] and {str(s["tid"]) for s in S} <= set(T["threads"])'
fact 'without a pause: the calls of those seen are their own' \
	"all(T['threads'][t] == calls for t, calls in $seen)"

# Steps of 2 us and less: one thread, 20,000 steps in a row. Without the guard all are traced.
options=(--rate-guard 0 --detail steps)
run_crowd 1 20000 0
fact '2 us: each step is seen, or counted' 'len(S) + R["lost"]["steps"] == T["steps"]'
fact '2 us: and has its calls' "all(T['threads'][t] == calls for t, calls in $seen)"
fact '2 us: the table has all calls' 'table["getppid"] == 20000'
fact '2 us: the times are in order, and steps do not overlap' \
	'all(a["start_us"] <= b["start_us"] and a["us"]["total"] >= a["us"]["syscall"]
		for a, b in zip(S, S[1:]))'

# With the guard fewer steps are traced, and those are complete. The table has the calls of all.
options=(--detail steps)
run_crowd 1 60000 0
fact '2 us, guarded: what is seen is whole' \
	"all(T['threads'][t] == c for (t, c), s in zip($seen, S) if s['end'] == 'return') and
	sum(s['end'] != 'return' for s in S) <= 5 and len(S) <= T['steps']"
fact '2 us, guarded: the table has all calls' 'table["getppid"] == 60000'
fact '2 us, guarded: fewer than all only where the window says so' \
	'len(S) + R["lost"]["steps"] == T["steps"] or W["sampled_functions"] == 1'
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Counts of each step's syscalls by category, and of the whole process's, in each detail mode.
. "$(dirname "$0")/lib.sh"

for detail in steps escalated all; do
	trace_engine '--steps 223 --sleep-us 200' --detail $detail --step-arg 'n=s32(arg1)' \
		--step-arg 'wide=s64(arg1+8)' --step-arg 'depth=arg2'
	check_truth "$detail"
	fact "$detail: one kind, one thread" 'len({(s["kind"], s["tid"]) for s in S}) == 1'
	fact "$detail: each step alike" \
		'all(s["by"] == T["per_step"] for s in S)'
	fact "$detail: arguments are the engine's" \
		'[(s["arg.n"], s["arg.wide"], s["arg.depth"]) for s in S] == [(i + 1, i + 1, 0) for i in range(len(S))]'
	fact "$detail: times of a step are inside the engine's own" \
		'all(a["us"]["total"] <= b[1] / 1000 + 1 for a, b in zip(S, T["threads"][0]["spans_ns"]))'
	fact "$detail: steps start when the engine says" \
		'all(-2 <= W["epoch_monotonic_us"] + a["start_us"] - b[0] / 1000 <= b[1] / 1000
			for a, b in zip(S, T["threads"][0]["spans_ns"]))'
	fact "$detail: the six and compute make the total" \
		'all(sum(s["six"][c] for c in CATEGORIES) + s["six"]["compute"] == s["six"]["total"] for s in S)'
	fact "$detail: gaps are there but for the first step" \
		'["gap" in s["us"] for s in S] == [False] + [True] * (len(S) - 1)'
	fact "$detail: gaps hold the sleep between steps" \
		'all(s["us"]["gap"] >= s["us"]["gap_syscall"] >= 200 for s in S[1:])'
done
finish

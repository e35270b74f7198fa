#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Call records: all calls with --detail all, those of the first steps by default, none with steps.
. "$(dirname "$0")/lib.sh"

names='{n: len([x for x in X if x["cat"] == "syscall" and x["name"] == n and not x["args"].get("truncated")])
	for n in {x["name"] for x in X if x["cat"] == "syscall"}}'
trace_engine '--steps 127 --noise 2 --sleep-us 200' --detail all
check_truth 'all'
fact 'all: a record for every call in the table' \
	"{k: v for k, v in ($names).items() if v} == table"
fact 'all: failed calls name their errno' \
	'len([x for x in X if x["cat"] == "syscall" and "errno" in x["args"]]) == sum(errors.values())'
fact 'all: calls of a step lie inside its slice' \
	'all(len([1 for c in X if c["cat"] == "syscall" and c["tid"] == s["tid"] and s["ts"] <= c["ts"] and
		c["ts"] + c["dur"] <= s["ts"] + s["dur"]]) >= s["args"]["calls"]
		for s in [x for x in X if x["cat"] == "step"][:25])'
fact 'all: slices of a thread nest' \
	'all(a["ts"] + a["dur"] <= b["ts"] for t in {x["tid"] for x in X}
		for steps in [[x for x in X if x["cat"] == "step" and x["tid"] == t]]
		for a, b in zip(steps, steps[1:]))'

trace_engine '--steps 30' "${calm[@]}"
fact 'escalated: every step' 'len([x for x in X if x["cat"] == "step"]) == 30'
fact 'escalated: calls of the first three' \
	'len([x for x in X if x["cat"] == "syscall"]) == sum(s["calls"] for s in S[:3])'
trace_engine '--steps 30' --detail steps "${calm[@]}"
fact 'steps: no calls' '{x["cat"] for x in X} == {"step"}'

# A ring that is too small: the loss is counted and reported, and sums stay exact.
trace_engine '--steps 3 --calls 1,1,1,20000,1,1 --errors 0,0,0,0,0,0' --detail all --ring-records 512
fact 'small ring: sums stay exact' 'total(S) == T["in_steps"]'
fact 'small ring: records and losses make all calls' \
	'len([x for x in X if x["cat"] == "syscall" and not x["args"].get("truncated")]) + W["lost_calls"] == sum(table.values())'
fact 'small ring: steps that lost calls are not complete' \
	'all(s["complete"] == (s["lost_calls"] == 0) for s in S)'
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Several step threads at once, noise during steps, and threads that come and go.
. "$(dirname "$0")/lib.sh"

trace_engine '--step-threads 5 --steps 47 --sleep-us 300'
check_truth 'concurrent'
fact 'concurrent: steps by thread are the engine'"'"'s' \
	'{t: len([s for s in S if s["tid"] == t]) for t in {s["tid"] for s in S}} ==
		{t["tid"]: t["steps"] for t in T["threads"] if t["steps"]}'
fact 'concurrent: each step alike' 'all(s["by"] == T["per_step"] for s in S)'

trace_engine '--steps 101 --noise 3 --noise-us 50 --compute-us 1500 --slow-futex-every 10 --slow-us 3000'
check_truth 'noise'
fact 'noise: other threads are never in the six' \
	'sum(s["by"]["write"]["calls"] for s in S) == T["in_steps"]["write"]["calls"]'
fact 'noise: it is seen beside the steps' \
	'any(s["us"].get("other_threads_syscall", 0) > 0 for s in S)'
# Three threads cannot spend more than three times the step in syscalls.
fact 'noise: and is plausible' \
	'all(s["us"].get("other_threads_syscall", 0) <= 3 * s["us"]["total"] + 50 for s in S)'
# Durations are cut to microseconds. Calls that were open when the step began count from its begin
# on, except for scheduling delays at the last look at the threads.
fact 'noise: only what is inside of the step counts' \
	'len([s for s in S if s["us"].get("other_threads_syscall", 0) > 3 * s["us"]["total"] + 3]) <= 2'
fact 'noise: slow steps wait in futex' \
	'len([s for s in S if s["six"]["futex"] >= 3000]) >= T["slow_steps"] == 10'

# Threads start on the kernel stacks of untraced threads that have just ended.
(while :; do /bin/true; done) &
churn=$!
trace_engine '--steps 20 --short-threads 2000 --short-calls 23'
kill $churn
fact 'short threads: the table has all their calls' 'table["getppid"] == T["calls"]["getppid"]'
fact 'short threads: steps are exact' 'len(S) == 20 and total(S) == T["in_steps"]'
fact 'short threads: none was missed' 'W["lost_threads"] == 0'
finish

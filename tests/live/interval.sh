#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Where nothing matches, steps are intervals of a process, and every output says so.
. "$(dirname "$0")/lib.sh"

# A machine that is busy elsewhere may serve intervals late for once.
for _ in 1 2 3; do
	rm -f "${OUT:?}".*
	start_engine --steps 0 --sleep-us 500 --noise 1
	run_tool -p "$ENGINE" --interval 50 -d 2
	go
	end_tool
	kill -TERM "$ENGINE"
	wait "$ENGINE"
	[ "$(q '30 <= len(S) <= 42 and
		45000 <= sorted(s["us"]["wall"] for s in S[1:-1])[len(S) // 2] <= 60000')" != True ] || break
done
fact 'as many steps as intervals' '30 <= len(S) <= 42'
fact 'they say so' 'all(s["step_source"] == "interval" for s in S) and R["interval_ns"] == 50000000'
# One that is served late on a busy machine is longer, and the next one shorter.
fact 'and last as long' '45000 <= sorted(s["us"]["wall"] for s in S[1:-1])[len(S) // 2] <= 60000'
fact 'without a hole between them' \
	'all(abs(a["start_us"] + a["us"]["wall"] - b["start_us"]) <= 1 for a, b in zip(S, S[1:]))'
fact 'syscalls never exceed the time of the threads' \
	'all(sum(s["six"][c] for c in CATEGORIES) <= s["six"]["total"] for s in S)'
fact 'calls are those of the table' \
	'abs(sum(s["calls"] for s in S) - sum(table.values())) <= sum(table.values()) / 20 + 5'
holds 'outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"
has 'the trace says so' "$OUT.trace" '"step_source":"interval"'
finish

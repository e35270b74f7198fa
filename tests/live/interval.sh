#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# If nothing matches, steps are intervals of a process, and every output says so.
. "$(dirname "$0")/lib.sh"

start_engine --steps 0 --sleep-us 500 --noise 1
run_tool -p "$ENGINE" --interval 50 -n 30
go
end_tool
kill -TERM "$ENGINE"
wait "$ENGINE"
fact 'as many steps as were asked for' 'len(S) == R["steps"] == 30'
fact 'they say so' 'all(s["step_source"] == "interval" for s in S) and R["interval_ns"] == 50000000'
# Intervals end at multiples of 50 ms, or later if the tool had no CPU; then the next one is
# shorter.
fact 'none begins before its time' \
	'all(s["start_us"] >= 50000 * n - 1 for n, s in enumerate(S))'
fact 'and one at least ends before the next is due' 'min(s["us"]["wall"] for s in S) < 100000'
fact 'without a hole between them' \
	'all(abs(a["start_us"] + a["us"]["wall"] - b["start_us"]) <= 1 for a, b in zip(S, S[1:]))'
fact 'syscalls never exceed the time of the threads' \
	'all(sum(s["six"][c] for c in CATEGORIES) <= s["six"]["total"] for s in S)'
# The table also has those from the last interval to the end.
fact 'no call is in two of them' 'sum(s["calls"] for s in S) <= sum(table.values())'
holds 'outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"
has 'the trace says so' "$OUT.trace" '"step_source":"interval"'
is 'and nothing is said of --interval' "$(grep -c -e '--interval' "$OUT.err")" 0

# All calls lie within intervals: the first one begins when calls are counted, and some begin after
# the last call.
rm -f "${OUT:?}".*
start_engine --steps 0 --sleep-us 500 --noise 1
go
run_tool -p "$ENGINE" --interval 50
await_steps 20 || not_ok 'there are intervals with calls'
stop_process "$ENGINE"
await_steps $(($(grep -c '"event":"step_prof"' "$OUT.profile") + 3)) || not_ok 'intervals go on'
stop_tool
kill -TERM "$ENGINE"
kill -CONT "$ENGINE"
wait "$ENGINE"
fact 'calls are those of the table' 'sum(s["calls"] for s in S) == sum(table.values()) > 100'

# Each child that ends has a step, too.
rm -f "${OUT:?}".*
# shellcheck disable=SC2016 # the shell of COMMAND expands it
run_tool -f -n 10 --interval 50 -- sh -c 'for i in $(seq 100); do /bin/true; done'
wait "$TOOL"
is '-n: the tool ends with COMMAND or before' $? 0
fact '-n: there are no more than that' 'len(S) == R["steps"] == 10'

trace_engine '--steps 20 --sleep-us 500' --interval 50
fact 'with a step function its calls are the steps' 'len(S) == T["steps"]'
is 'and one line says that --interval has no effect' \
	"$(grep -c -e '--interval has no effect' "$OUT.err")" 1
trace_engine '--steps 20 --sleep-us 500'
is 'which it does not say unasked' "$(grep -c -e '--interval' "$OUT.err")" 0
finish

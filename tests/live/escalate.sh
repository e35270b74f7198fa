#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A step in trouble is named with its cause, and no other step is. escalate_causes.sh tests all
# causes, tests/golden/thresholds.py the thresholds and limits.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/escalate/lib.sh
. tests/live/escalate/lib.sh

trouble lock efficiency_low lock_contention
explained lock
fact 'lock: the worst call is the wait for it' \
	'all(G[n]["worst_call"] == "futex" and 45000 < int(G[n]["worst_call_us"]) <= G[n]["us"]["actual"] for n in due)'
evidence lock 'futex blocked'
fact "lock: ferrum's eight attributes are strings" \
	'all(type(G[n][k]) is str for n in G for k in ("brick.name", "brick.budget_us", "brick.actual_us",
		"brick.efficiency", "brick.over_budget", "escalation.reason", "syscall.overhead_percent",
		"syscall.dominant"))'
fact 'lock: and say what the step was' \
	'all((g["brick.name"], g["brick.over_budget"], g["syscall.dominant"], int(g["brick.actual_us"])) ==
		("engine_step", "true", "futex", s["us"]["total"]) for s in S if s["step"] in due for g in [G[s["step"]]])'
fact 'lock: the budget is what the step usually takes' \
	'all(int(G[n]["brick.budget_us"]) == G[n]["us"]["budget"] <= 3 * sorted(s["us"]["total"] for s in S)[len(S) // 2]
		for n in due)'
fact 'lock: an escalation lies over each of them in the trace' \
	'sorted((x["ts"], x["dur"]) for x in X if x["cat"] == "escalation") ==
		sorted((x["ts"], x["dur"]) for x in X if x["cat"] == "step" and x["args"]["step"] in G)'
# Where it waited for a CPU too, that may be the larger part.
fact 'lock: a line on stderr for each' \
	'all(len([l for l in lines if "#%d " % n in l and
		("lock contention" in l or delay[n] * 10 > T["threads"][0]["spans_ns"][n - 1][1])]) == 1 for n in due)'
has 'lock: the report names the cause' "$OUT.report" 'lock_contention'
fact 'lock: all calls of a step are in the trace, or none, and none beside them' \
	'all(len(inside(s["step"])) in (0, s["calls"]) for s in S) and
		len([x for x in X if x["cat"] == "syscall"]) == sum(len(inside(s["step"])) for s in S)'
holds 'lock: outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"

trouble sleep efficiency_low sleep
explained sleep
trouble compute efficiency_low compute 50000 "${one_class[@]}" --budget-us 8000
quiet 'steady' "$steady --steps 300"

# By hand. A signal that comes before the window is open applies to the window.
takes_usr1()
{
	local name value

	read -r name <"/proc/$TOOL/comm"
	[ "$name" = ferrum-bpftrace ] || return 1
	while read -r name value; do
		[ "$name" != SigCgt: ] || break
	done <"/proc/$TOOL/status"
	((0x$value & 0x200))
}
rm "${OUT:?}".*
start_engine --steps 0 --compute-us 500 --sleep-us 200
# The tool opens its outputs first, and waits until somebody reads this one.
mkfifo "$OUT.trace"
run_tool -p "$ENGINE" --step engine_step
until takes_usr1 2>/dev/null || ! kill -0 "$TOOL"; do sleep 0.01; done
kill -USR1 "$TOOL"
cat "$OUT.trace" >/dev/null 7>&- &
wait_attached "$TOOL"
go
await_steps 100
stop_tool
kill -TERM "$ENGINE"
wait "$ENGINE"
fact 'by signal before the window: one step' \
	'len([g for g in G.values() if g["escalation.reason"] == "manual"]) == 1'
is 'it says once that it serves it' "$(grep -c 'SIGUSR1 came before the window was open' "$OUT.err")" 1

rm "${OUT:?}".*
start_engine --steps 0 --compute-us 500 --sleep-us 200
attach
go
await_steps 20
kill -USR1 "$TOOL"
for _ in $(seq 3000); do
	grep -q '"escalation.reason":"manual"' "$OUT.profile" && break
	sleep 0.02
done
await_steps 200
stop_tool
kill -TERM "$ENGINE"
wait "$ENGINE"
fact 'by signal: one step' 'len([g for g in G.values() if g["escalation.reason"] == "manual"]) == 1'
has 'by signal: it says so' "$OUT.err" 'SIGUSR1: the next step is escalated$'

# With -f too it is one step, and not one of each process.
rm "${OUT:?}".*
start_engine --steps 0 --compute-us 500 --sleep-us 200
attach -f
go
await_steps 20
kill -USR1 "$TOOL"
holds 'with -f: it says that it is one in all' \
	await_lines 1 'SIGUSR1: the next step is escalated: one in all' "$OUT.err"
stop_tool
kill -TERM "$ENGINE"
wait "$ENGINE"
finish

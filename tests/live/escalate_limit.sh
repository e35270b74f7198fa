#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The profile has every step that was found wrong, shown or not, and the time of day of its end.
# Alerts and the trace have those within the rate limit.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/escalate/lib.sh
. tests/live/escalate/lib.sh

trace_engine "$steady --steps 130 --trouble lock --trouble-us 50000" --ring-records 262144 --rate-limit 2

fact 'every step in trouble has its line, shown or not' 'len(due) > 2 and due <= set(H)'
fact 'there is a line for each escalation that is counted' \
	'sorted(g["number"] for g in H.values()) == list(range(1, W["escalations"] + 1)) and
		R["escalations"]["escalated"] == W["escalations"]'
fact 'those that are not shown say why' \
	'[len([g for g in H.values() if g.get("not_shown") == why]) for why in ("rate_limit", "repeated")] ==
		[W["escalations_suppressed"], W["escalations_repeated"]] and W["escalations_suppressed"] > 0'
fact 'the first two are shown' \
	'list(G) == [n for n in sorted(H) if H[n].get("not_shown") != "repeated"][:2]'
fact 'stderr has those that are shown' \
	'all((len([l for l in lines if "#%d " % n in l]) == 1) == (n in G) for n in H)'
fact 'the trace has those that are shown' \
	'sorted(x["ts"] for x in X if x["cat"] == "escalation") ==
		sorted(x["ts"] for x in X if x["cat"] == "step" and x["args"]["step"] in G)'
fact 'the JSON report lists all, and why they are not shown' \
	'[(e["step"], e["not_shown"]) for e in R["escalations"]["last"]] ==
		[(n, g.get("not_shown")) for n, g in H.items()]'
# However late the clock was read, step n has ended before step n + 10 begins.
fact "the time of day is that of the engine's own clock" \
	'all(T["threads"][0]["spans_ns"][n - 1][0] <= monotonic_ns(g["time"]) <= T["threads"][0]["spans_ns"][n + 9][0]
		for n, g in H.items() if n in due and n + 10 <= T["steps"])'
fact "ferrum's strings are there as numbers too" \
	'all((str(g["actual_us"]), str(g["budget_us"]), "%.1f" % g["overhead_percent"], g["over_budget"],
		abs(g["efficiency_percent"] - float(g["brick.efficiency"])) < 0.06) ==
		(g["brick.actual_us"], g["brick.budget_us"], g["syscall.overhead_percent"], True, True)
		for g in H.values())'
holds 'outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"
finish

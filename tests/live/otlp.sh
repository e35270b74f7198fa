#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# --otlp: escalations reach a collector in the form of the specification. Whatever the collector
# does, the tool continues, and reports what was not sent.
. "$(dirname "$0")/lib.sh"

# shellcheck source=tests/live/otlp/lib.sh
. tests/live/otlp/lib.sh

# While an engine suffers from locks: the collector gets the same escalations as the profile.
start_collector 200
OTEL_EXPORTER_OTLP_HEADERS='api-key=s3cret%20key,broken' \
	trace_engine "--steps 190 --compute-us 2000 --trouble lock --trouble-us 40000" --otlp "$URL"
end_collector lock
sound lock
sent 'lock: each escalation is a span' 'len(P) >= 3 and set(P) == set(G)'
sent 'lock: on the path of traces' '{q["path"] for q in Q} == {"/v1/traces"}'
sent 'lock: with the headers of the environment' '{q["headers"].get("api-key") for q in Q} == {"s3cret key"}'
sent 'lock: attributes are those of the profile' \
	'all(P[n]["attributes"][k] == G[n][k] for n in G for k in (
		"brick.name", "brick.budget_us", "brick.actual_us", "brick.efficiency",
		"brick.over_budget", "escalation.reason", "syscall.overhead_percent",
		"syscall.dominant"))'
sent 'lock: it says which are repeated' \
	'all(P[n]["attributes"].get("escalation.repeated", False) == (G[n].get("not_shown") == "repeated") for n in P)'
sent 'lock: the cause is named' \
	'[P[n]["attributes"]["escalation.cause"] for n in P].count("lock_contention") >= 3'
sent 'lock: where it was is an event, as in the profile' \
	'all([(e["attributes"]["cause"], e["attributes"].get("cause.stack"), e["attributes"].get("cause.waker_stack"))
		for e in p["events"]] == [(G[n]["cause"], G[n].get("cause_stack"), G[n].get("waker_stack"))] *
		("cause_stack" in G[n] or "waker_stack" in G[n]) for n, p in P.items()) and
		any(p["events"] for p in P.values())'
sent 'lock: who was waited for is in the attributes, as in the profile' \
	'all({k: v for k, v in p["attributes"].items() if k.startswith(O)} ==
		{k: v for k, v in G[n].items() if k.startswith(O) and not k.startswith("waker_stack")} for n, p in P.items()) and
		{"waker_tid", "waker_after_us"} <= {k for p in P.values() for k in p["attributes"]}'
sent 'lock: an event is of the call' \
	'all(e["attributes"]["cause.call"] == "futex" and
		(e["time"] - p["start"]) // 1000 + e["attributes"]["cause.us"] <= (p["end"] - p["start"]) // 1000 + 1
		for p in P.values() for e in p["events"] if e["attributes"]["cause"] == "lock_contention")'
sent 'lock: what took longer than 5 % is a child' \
	'all(("syscall.futex" in P[n]["children"]) == (P[n]["attributes"]["syscall.futex_us"] * 20 >
		P[n]["attributes"]["syscall.total_us"]) for n in P)'
sent 'lock: who it was' \
	"{(p['resource']['service.name'], p['resource']['process.pid'], p['resource']['host.name'])
		for p in P.values()} == {('engine', $ENGINE, '$(uname -n)')}"
sent 'lock: a step over its budget is an error, with the reason' \
	'all(p["status"]["code"] == 2 and p["status"]["message"] for p in P.values()
		if p["attributes"]["brick.over_budget"] == "true")'
sent "lock: in this hour, as long as the step" \
	"all(abs(p['end'] / 1e9 - $(date +%s)) < 3600 and
		(p['end'] - p['start']) // 1000 == G[n]['us']['actual'] for n, p in P.items())"
has 'lock: how many were sent is said' "$OUT.err" "^otlp: ([0-9]+) of \\1 .*were sent .*$URL/v1/traces$"
has 'lock: a broken header is told of' "$OUT.err" 'OTEL_EXPORTER_OTLP_HEADERS: entry 2 is left out'
is 'lock: no header is shown' "$(grep -cE 's3cret|broken' "$OUT.err")" 0

# A collector that never answers: the steps do not wait for it, and the end waits only as long as
# the environment says.
start_collector hang
OTEL_EXPORTER_OTLP_TIMEOUT=500 trace_engine "--steps 90 --compute-us 2000 --trouble lock --trouble-us 40000" --otlp "$URL" --escalate-now
end_collector hang
fact 'hang: nothing lost, all complete' \
	'len(S) == T["steps"] and W["incomplete_steps"] == 0 and
		lost == 0'
has 'hang: says how many were not sent' "$OUT.err" 'otlp: ([0-9]+) of \1 escalations were not sent: '
holds 'hang: outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"

# A user who interrupts the wait has all outputs.
start_collector hang
rm -f "${OUT:?}".*
start_engine --steps 0 --sleep-us 500
attach --otlp "$URL" --escalate-now
go
await_lines 1 'efficiency|manual' "$OUT.err"
kill -INT "$TOOL"
# The files come first, then the report.
# shellcheck disable=SC2317
has_outputs()
{
	[ -e "$OUT.trace" ] && python3 -m json.tool "$OUT.report" >/dev/null 2>&1
}
wait_for 60 has_outputs
holds 'a second Ctrl-C: the tool still waits' kill -0 "$TOOL"
kill -INT "$TOOL"
end_tool 130 'a second Ctrl-C ends the wait for a collector'
end_collector 'a second Ctrl-C'
holds 'a second Ctrl-C: outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"
fact 'a second Ctrl-C: and whole' 'R["steps"] == len(S) and W["cut_off"] == False'
kill -TERM "$ENGINE"
wait "$ENGINE"

# Nothing is loaded for it once the tool is confined: what sends is in the tool.
# mapped FILE [OPTION…]: the libraries of a tool with these options, after an escalation. With --otlp it
# has been sent: there is a request. The engine goes on until then, since the tool ends with it.
mapped()
{
	local list=$1

	shift
	start_engine --steps 0 --sleep-us 500
	attach --escalate-now "$@"
	go
	await_lines 1 'manual' "$OUT.err"
	[ $# = 0 ] || wait_for 60 [ -s "$SENT" ]
	awk '$6 ~ /[.]so/ { print $6 }' "/proc/$TOOL/maps" | sort -u >"$list"
	kill -TERM "$ENGINE"
	wait "$ENGINE"
	end_tool
}

start_collector 200
mapped "$TMP/without"
mapped "$TMP/with" --otlp "$URL"
end_collector 'libraries'
holds 'no library is loaded for --otlp' cmp "$TMP/without" "$TMP/with"

# By replay: requests that a collector accepts, refuses, or accepts later. otlp_answers.sh tests all
# answers.
capture_one
answered 'taken' '^otlp: 1 of 1 escalations were sent to' 200
sent 'taken: one manual escalation' '[p["attributes"]["escalation.reason"] for p in P.values()] == ["manual"]'
is 'taken: not a word more of it' "$(grep -c 'otlp' "$OUT.err")" 1
answered 'bad request' "${not_sent}HTTP 400: as you wish" 400
sent 'bad request: not sent again' 'len(Q) == 1'
answered 'busy once' '^otlp: 1 of 1 escalations were sent to' 503 200
sent 'busy once: the same is sent again' 'len(Q) == 2 and Q[0]["spans"] == Q[1]["spans"]'

# Invalid addresses of a collector.
for url in ftp://host http://me:pw@host 'http://host/#x' $'http://host/\n' http://; do
	"$FBT" --replay "$TMP/capture" --otlp "$url" >"$OUT.report" 2>"$OUT.err"
	is "refused: exit status 2: ${url@Q}" $? 2
	is "refused: in one line: ${url@Q}" "$(grep -c '^ferrum-bpftrace: --otlp ' "$OUT.err") $(wc -l <"$OUT.err")" '1 1'
done
finish

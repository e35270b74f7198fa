#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# --otlp: what is escalated reaches a collector, in the form that the specification wants; whatever
# the collector does, the tool goes on, and says what was not sent.
. "$(dirname "$0")/lib.sh"

unset OTEL_EXPORTER_OTLP_HEADERS OTEL_SERVICE_NAME http_proxy https_proxy all_proxy HTTPS_PROXY ALL_PROXY
SENT=$TMP/sent

# start_collector [--tls FILE] ANSWER…: its address is in URL
start_collector()
{
	rm -f "$SENT" "$TMP/port"
	mkfifo "$TMP/port"
	python3 tests/live/collector.py serve "$SENT" "$@" >"$TMP/port" 2>"$TMP/collector.err" 7>&- &
	COLLECTOR=$!
	read -r PORT <"$TMP/port"
	URL=http://127.0.0.1:$PORT
}

end_collector()
{
	kill -9 "$COLLECTOR" 2>/dev/null
	wait "$COLLECTOR" 2>/dev/null
	is "$1: the collector had no trouble of its own" "$(cat "$TMP/collector.err")" ''
}

# sent NAME EXPRESSION: see collector.py
sent()
{
	local got

	got=$(python3 tests/live/collector.py ask "$SENT" "$2" 2>&1)
	[ "$got" = True ] || echo "# ${2//[[:space:]]/ }: $got"
	is "$1" "$got" True
}

sound()
{
	sent "$1: every request is as the specification has it" \
		'Q and [p for q in Q for p in q["problems"]] == []'
}

# While an engine suffers from locks: the same escalations as in the profile.
start_collector 200
OTEL_EXPORTER_OTLP_HEADERS='api-key=s3cret%20key,broken' \
	trace_engine "--steps 90 --compute-us 2000 --trouble lock --trouble-us 40000" --otlp "$URL"
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
sent 'lock: the cause is named' \
	'[P[n]["attributes"]["escalation.cause"] for n in P].count("lock_contention") >= 3'
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
has 'lock: how many were sent is said' "$OUT.err" "^otlp: ([0-9]+) of \\1 escalations were sent to $URL/v1/traces$"
has 'lock: a broken header is told of' "$OUT.err" 'OTEL_EXPORTER_OTLP_HEADERS: entry 2 is left out'
is 'lock: no header is shown' "$(grep -cE 's3cret|broken' "$OUT.err")" 0

# A collector that never answers: nothing waits for it while steps go on.
start_collector hang
trace_engine "--steps 90 --compute-us 2000 --trouble lock --trouble-us 40000" --otlp "$URL" --escalate-now
end_collector hang
fact 'hang: nothing lost, all complete' \
	'len(S) == T["steps"] and W["incomplete_steps"] == 0 and
		all(v == 0 for k, v in W.items() if k.startswith("lost_"))'
has 'hang: says what was not sent' "$OUT.err" 'otlp: ([0-9]+) of \1 escalations were not sent: .*: no answer in time'
holds 'hang: outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"

# Who loses patience with it has the outputs.
start_collector hang
rm -f "${OUT:?}".*
start_engine --steps 0 --sleep-us 500
attach --otlp "$URL" --escalate-now
go
for _ in $(seq 1500); do
	grep -qs 'efficiency\|manual' "$OUT.err" && break
	sleep 0.02
done
kill -INT "$TOOL"
# The files come first, then the report.
for _ in $(seq 600); do
	[ -e "$OUT.trace" ] && python3 -m json.tool "$OUT.report" >/dev/null 2>&1 && break
	sleep 0.05
done
holds 'a second Ctrl-C: the tool still waits' kill -0 "$TOOL"
kill -INT "$TOOL"
end_tool 130 'a second Ctrl-C ends the wait for a collector'
end_collector 'a second Ctrl-C'
holds 'a second Ctrl-C: outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"
fact 'a second Ctrl-C: and whole' 'R["steps"] == len(S) and W["cut_off"] == False'
kill -TERM "$ENGINE"
wait "$ENGINE"

# libcurl and what it brings is only there when it is asked for.
has_libcurl()
{
	start_engine --steps 20
	attach "$@"
	is "libcurl is mapped by: ${*:-no option}" "$(grep -c libcurl "/proc/$TOOL/maps" | sed 's/[1-9].*/1/')" \
		$(($# > 0))
	go
	wait "$ENGINE"
	end_tool
}

has_libcurl
has_libcurl --otlp http://127.0.0.1:9

# One escalation, again and again, by replay: so few steps are not judged, but by hand.
trace_engine '--steps 5' --record "$TMP/capture"

within=()

# replay NAME REGEX TOOL-OPTION…: REGEX is of stderr; nothing else of the outputs may differ
replay()
{
	local name=$1 regex=$2 status

	shift 2
	"${within[@]}" timeout 120 "$FBT" --replay "$TMP/capture" --escalate-now --report none \
		--trace "$TMP/again" --profile none "$@" >"$OUT.report" 2>"$OUT.err"
	status=$?
	is "$name: exit status 0" "$status" 0
	has "$name: says so" "$OUT.err" "$regex"
	holds "$name: the trace is the same" cmp "$TMP/trace" "$TMP/again"
}

# answered NAME REGEX ANSWER…
answered()
{
	local name=$1 regex=$2

	shift 2
	start_collector "$@"
	replay "$name" "$regex" --otlp "$URL"
	end_collector "$name"
	sound "$name"
}

"$FBT" --replay "$TMP/capture" --escalate-now --report none --trace "$TMP/trace" --profile none 2>"$OUT.err"
not_sent='otlp: 1 of 1 escalations were not sent: http://127.0.0.1:[0-9]*/v1/traces: '
answered 'taken' '^otlp: 1 of 1 escalations were sent to' 200
sent 'taken: one manual escalation' '[p["attributes"]["escalation.reason"] for p in P.values()] == ["manual"]'
is 'taken: not a word more of it' "$(grep -c 'otlp' "$OUT.err")" 1
answered 'bad request' "${not_sent}HTTP 400: as you wish" 400
sent 'bad request: not sent again' 'len(Q) == 1'
answered 'not found' "${not_sent}HTTP 404" 404
answered 'server error' "${not_sent}HTTP 500" 500
sent 'server error: not sent again' 'len(Q) == 1'
answered 'redirect' "${not_sent}HTTP 302, a redirect" 302
answered 'busy once' '^otlp: 1 of 1 escalations were sent to' 503 200
sent 'busy once: the same is sent again' 'len(Q) == 2 and Q[0]["spans"] == Q[1]["spans"]'
answered 'a second, please' '^otlp: 1 of 1 escalations were sent to' 429:1 200
answered 'an hour, please' "${not_sent}HTTP 429: as you wish" 429:3600
sent 'an hour, please: not sent again' 'len(Q) == 1'
answered 'closed once' '^otlp: 1 of 1 escalations were sent to' close 200
answered 'garbage once' '^otlp: 1 of 1 escalations were sent to' garbage 200
answered 'half an answer once' '^otlp: 1 of 1 escalations were sent to' half 200
answered 'in part' 'some spans are rejected: too\\nold' partial
answered 'a web page' 'taken, but not answered as a collector does' html
is 'a web page: it counts as sent' "$(grep -c 'escalations were sent' "$OUT.err")" 1

# Nobody listens where one listened.
replay 'closed port' "${not_sent}Connection refused" --otlp "$URL"
is 'closed port: one warning, one line at the end' "$(grep -c '^ferrum-bpftrace: otlp: ' "$OUT.err")" 2
replay 'no such host' 'were not sent: http://nowhere.invalid/v1/traces: .*([Rr]esolv|no answer in time)' --otlp http://nowhere.invalid

# What a query and the environment say.
start_collector 200
OTEL_SERVICE_NAME='llm "one"' replay 'query' "sent to $URL/in$" --otlp "$URL/in?key=s3cret"
end_collector query
sent 'query: the collector gets it' 'Q[0]["path"] == "/in?key=s3cret"'
sent 'query: the service is named' '[p["resource"]["service.name"] for p in P.values()] == ["llm \"one\""]'

# with_authorities FOLDER NAME REGEX: the replay where that folder is the system's
with_authorities()
{
	# shellcheck disable=SC2016
	within=(unshare --mount sh -c 'mount --bind "$0" /etc/ssl/certs && exec "$@"' "$1")
	shift
	start_collector --tls "$TMP/both" 200
	replay "$@" --otlp "https://127.0.0.1:$PORT"
	end_collector "$1"
	within=()
}

# A certificate that nobody vouches for, and the same where the system does: by a folder of hashes, by
# a file of all authorities.
if [ ! -d /etc/ssl/certs ] || ! openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
	-days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -keyout "$TMP/key" \
	-out "$TMP/certificate" 2>/dev/null; then
	echo 'SKIP certificates: no openssl command, or not the folders of Debian'
else
	cat "$TMP/key" "$TMP/certificate" >"$TMP/both"
	mkdir "$TMP/hashes" "$TMP/file" "$TMP/other"
	cp "$TMP/certificate" "$TMP/hashes/$(openssl x509 -hash -noout -in "$TMP/certificate").0"
	cp "$TMP/certificate" "$TMP/file/ca-certificates.crt"
	cp "$TMP/certificate" "$TMP/other/ca-certificates.crt"
	touch "$TMP/other/01234567.0"
	with_authorities /etc/ssl/certs 'strange certificate' 'were not sent: https://127.*certificate'
	sent 'strange certificate: nothing was sent' 'Q == []'
	with_authorities "$TMP/hashes" 'known by its hash' '1 of 1 escalations were sent to https'
	with_authorities "$TMP/file" 'known by the file' '1 of 1 escalations were sent to https'
	with_authorities "$TMP/other" 'known by the file only' '1 of 1 escalations were sent to https'
fi

# What is no address of a collector.
for url in ftp://host http://me:pw@host 'http://host/#x' $'http://host/\n' http://; do
	"$FBT" --replay "$TMP/capture" --otlp "$url" >"$OUT.report" 2>"$OUT.err"
	is "refused: exit status 2: ${url@Q}" $? 2
	is "refused: in one line: ${url@Q}" "$(grep -c '^ferrum-bpftrace: --otlp ' "$OUT.err") $(wc -l <"$OUT.err")" '1 1'
done
finish

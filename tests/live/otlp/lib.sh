# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A collector for tests of --otlp; sourced after lib.sh.

unset "${!OTEL_@}" http_proxy https_proxy all_proxy HTTPS_PROXY ALL_PROXY
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

	got=$(ask_python tests/live/collector.py ask "$SENT" "$2")
	[ "$got" = True ] || echo "# ${2//[[:space:]]/ }: $got"
	is "$1" "$got" True
}

sound()
{
	sent "$1: every request is as the specification has it" \
		'Q and [p for q in Q for p in q["problems"]] == []'
}

# capture_one: a capture with one escalation, which the tests replay. So few steps are not judged,
# so it is escalated by hand.
capture_one()
{
	trace_engine '--steps 5' --record "$TMP/capture"
	"$FBT" --replay "$TMP/capture" --escalate-now --report none --trace "$TMP/trace" --profile none 2>"$OUT.err"
}

within=()

# replay NAME REGEX TOOL-OPTION…: REGEX must match stderr; all other outputs must be unchanged
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

not_sent='otlp: 1 of 1 escalations were not sent: http://127.0.0.1:[0-9]*/v1/traces: '

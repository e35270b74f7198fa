#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# --metrics and --otlp-metrics: the values are those of the profile, they grow while tracing and over
# windows, and what cannot be written is one line and harms nothing.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/otlp/lib.sh
. tests/live/otlp/lib.sh

FILE=$TMP/node/llm.prom

# metric NAME EXPRESSION: see metrics.py
metric()
{
	local got

	got=$(python3 tests/live/metrics.py "$FILE" "$2")
	[ "$got" = True ] || echo "# ${2//[[:space:]]/ }: $got"
	is "$1" "$got" True
}

# value NAME: of the file, whatever its labels
value()
{
	sed -n "s/^ferrum_bpftrace_$1{.*} //p" "$FILE" 2>/dev/null
}

# is_written EXPRESSION: whether that is true of the file; for wait_for
# shellcheck disable=SC2317
is_written()
{
	[ "$(python3 tests/live/metrics.py "$FILE" "$1" 2>/dev/null)" = True ]
}

# For wait_for.
# shellcheck disable=SC2317
has_metrics()
{
	[ "$(python3 tests/live/collector.py ask "$SENT" 'len([q for q in Q if q["path"] == "/v1/metrics"]) >= 3' 2>/dev/null)" = True ]
}

# An engine with locks: all values, in the file and at a collector.
start_collector 200
start_engine --steps 0 --compute-us 2000 --trouble lock --trouble-us 40000
attach --metrics "$FILE" --metrics-interval 1 --otlp "$URL" --otlp-metrics
is 'open: it is there before the first step' "$(value up) $(value steps_total) $(stat -c %a "$FILE")" '1  644'
go
holds 'it is written while tracing' wait_for 60 is_written 'V("steps_total") > 10 and V("escalations_total") > 0'
before=$(value steps_total)
holds 'and again' wait_for 60 is_written "V('steps_total') > $before"
metric 'open: the window is' 'V("up") == 1 and V("window_open") == 1 and V("processes") == 1 and V("traced_seconds_total") > 0'
kill -TERM "$ENGINE"
wait "$ENGINE"
end_tool
end_collector metrics
is 'the tool was allowed what it did' "$(grep -c 'refused' "$OUT.err")" 0
metric 'the end is told' 'V("up") == 0 and V("window_open") == 0 and V("windows_total") == 1'
metric 'each step is counted' 'V("steps_total", engine="engine", kind="engine_step") == len(P["step_prof"])'
metric 'those whose end is known are timed' 'V("step_duration_seconds_count") == B[-1][1] ==
	len([s for s in P["step_prof"] if s["end"] == "return"])'
metric 'durations are those of the steps' \
	'abs(V("step_duration_seconds_sum") - sum(s["us"]["total"] for s in P["step_prof"] if s["end"] == "return") / 1e6) <= 1e-6 * len(P["step_prof"])'
# The profile cuts a duration down to whole us.
metric 'and so are the buckets' 'all(sum((s["us"]["total"] + 1) / 1e6 <= le for s in P["step_prof"] if s["end"] == "return") <= count <=
	sum(s["us"]["total"] / 1e6 <= le for s in P["step_prof"] if s["end"] == "return") for le, count in B)'
metric 'the parts are the whole' 'abs(V("step_part_seconds_total") - V("step_duration_seconds_sum")) < 1e-6'
metric 'most of the trouble is in futex' 'V("step_part_seconds_total", part="futex_net") > 0.03 * V("cause_steps_total", cause="lock_contention") > 0'
metric 'escalations are those of the profile' 'V("escalations_total") == len(P["escalation_prof"]) and
	all(V("cause_steps_total", cause=c) == [e["cause"] for e in P["escalation_prof"]].count(c)
		for c in {e["cause"] for e in P["escalation_prof"]})'
metric 'the lock costs what it took' '30e-3 < V("cause_extra_seconds_total", cause="lock_contention") /
	V("cause_steps_total", cause="lock_contention") < 80e-3'
metric 'losses are those of the window' 'V("lost_records_total") ==
	sum(v for k, v in P["window_prof"][0].items() if k.startswith("lost_"))'
metric 'its own cost' '0 < V("tool_cpu_seconds_total") < 60 and 0 < V("probe_cost_seconds_total") < 1 and
	V("tool_max_memory_bytes") > 1e6'
metric 'nothing is folded' 'V("folded_steps_total") == 0 and V("write_errors_total") == 0'
is 'no other file is left' "$(ls "$TMP/node")" llm.prom
sound 'OTLP'
sent 'OTLP: spans and metrics, each on its path' '{q["path"] for q in Q} == {"/v1/traces", "/v1/metrics"}'
sent 'OTLP: the last values are those of the file' \
	"[int(p['asInt']) for p in M['ferrum_bpftrace_steps']] == [$(value steps_total)] == [int(p['count']) for p in M['ferrum_bpftrace_step_duration']]"
sent 'OTLP: by its file the tool is told from others' \
	'{p["instance"] for m in M.values() for p in m} == {"'"$(uname -n):$FILE"'"}'
sent 'OTLP: the tool has ended' '[p["asInt"] for p in M["ferrum_bpftrace_up"]] == ["0"]'
sent 'OTLP: so many steps are in the bucket of their length' \
	'[sum(int(c) for i, c in enumerate(p["positive"]["bucketCounts"])
		if 2**((p["positive"]["offset"] + i + 1) / 2**p["scale"]) <= 0.03125) for p in M["ferrum_bpftrace_step_duration"]] ==
	[sum(s["us"]["total"] <= 31250 for s in S.values())]'

# Two windows of one run: nothing falls back.
start_engine --steps 0 --compute-us 500
rm -f "$TMP/flag"
launch env --default-signal=INT "$FBT" -p "$ENGINE" --step engine_step --flag "$TMP/flag" --dir "$TMP/windows" \
	--report none --metrics "$FILE" --metrics-interval 1 >"$OUT.report" 2>"$OUT.err"
go
await_lines 1 'waiting for' "$OUT.err"
touch "$TMP/flag"
wait_for 60 is_written 'V("window_open") == 1 and V("steps_total") > 5'
rm "$TMP/flag"
wait_for 60 is_written 'V("window_open") == 0'
before=$(value steps_total)
lost=$(value traced_seconds_total)
touch "$TMP/flag"
holds 'windows: the second one goes on from the first' wait_for 60 is_written "V('windows_total') == 2 and V('steps_total') > $before and V('traced_seconds_total') > $lost"
kill -INT "$TOOL"
end_tool
is 'windows: nothing was refused' "$(grep -c 'refused' "$OUT.err")" 0
metric 'windows: steps are those of all files' \
	"V('steps_total') == $(cat "$TMP"/windows/*.jsonl | grep -c '"event":"step_prof"')"
kill -TERM "$ENGINE"
wait "$ENGINE"

# While no window is open, a collector gets them within its time, too.
rm "$TMP/flag"
start_collector 200
start_engine --steps 0 --compute-us 500
launch env --default-signal=INT OTEL_EXPORTER_OTLP_TIMEOUT=900 "$FBT" -p "$ENGINE" --step engine_step \
	--flag "$TMP/flag" --dir "$TMP/windows" --report none --metrics-interval 1 --otlp "$URL" --otlp-metrics \
	>"$OUT.report" 2>"$OUT.err"
go
holds 'no window: a collector gets metrics' wait_for 30 has_metrics
holds 'no window: there was none' [ ! -e "$TMP/flag" ]
kill -INT "$TOOL"
end_tool
is 'no window: the tool has opened none' "$(grep -c 'is open' "$OUT.err")" 0
is 'no window: none was late' "$(grep -c '^ferrum-bpftrace: otlp' "$OUT.err")" 0
end_collector 'no window'
sent 'no window: without a file the tool is told from others by its PID' \
	'{p["instance"] for m in M.values() for p in m} == {"'"$(uname -n):$TOOL"'"}'
kill -TERM "$ENGINE"
wait "$ENGINE"

# A capture has the same values as its window.
trace_engine '--steps 50 --compute-us 300' --record "$TMP/capture"
"$FBT" --replay "$TMP/capture" --report none --metrics "$FILE" 2>"$OUT.err"
metric 'replay: the steps of the capture' 'V("steps_total") == len(P["step_prof"]) == 50 and V("up") == 0'

# A collector that is busy is asked again, also for the last values.
start_collector 503 503 200
timeout 60 "$FBT" --replay "$TMP/capture" --report none --otlp "$URL" --otlp-metrics 2>"$OUT.err"
is 'a busy collector: the replay ends with 0' $? 0
end_collector 'a busy collector'
sent 'a busy collector: it gets the last values after all' '[int(p["asInt"]) for p in M["ferrum_bpftrace_steps"]] == [50]'
sent 'a busy collector: and is asked no more' \
	'[r["status"] for r in Q if r["path"] == "/v1/metrics"].count("200") == 1 and len(Q) >= 3'
timeout 60 "$FBT" --replay "$TMP/capture" --report none --otlp https://127.0.0.1:9 --otlp-metrics 2>"$OUT.err"
is 'nobody there: the replay ends by itself' "$(($? < 124))" 1
has 'nobody there: a line says so' "$OUT.err" 'the last metrics were not sent: .*Connection refused'

# What cannot be written: tracing goes on, one line says why, the status says so at the end.
rm -f "${OUT:?}".*
ln -s "$TMP/elsewhere" "$TMP/node/link.prom"
start_engine --steps 0
attach --metrics "$TMP/node/link.prom" --metrics-interval 1
go
await_steps 10
kill -TERM "$ENGINE"
wait "$ENGINE"
end_tool 1
is 'a link: one line at the start, one at the end at most' "$(grep -c 'metrics: .*link' "$OUT.err")" 1
has 'a link: says so' "$OUT.err" 'metrics: .*link.prom: .*tracing goes on'
holds 'a link: is not followed' [ ! -e "$TMP/elsewhere" ]
fact 'a link: the outputs are whole' 'len(S) >= 10 and W["steps"] == len(S)'

# The folder goes while the tool runs, and comes back.
start_engine --steps 0
attach --metrics "$TMP/gone/x.prom" --metrics-interval 1
go
stop_process "$TOOL"
rm -r "$TMP/gone"
touch "$TMP/gone"
kill -CONT "$TOOL"
await_lines 1 'metrics: .*gone' "$OUT.err"
stop_process "$TOOL"
rm "$TMP/gone"
kill -CONT "$TOOL"
await_lines 1 'is written again' "$OUT.err"
kill -TERM "$ENGINE"
wait "$ENGINE"
end_tool
is 'a folder that goes: one line' "$(grep -c 'metrics: .*tried again' "$OUT.err")" 1
is 'a folder that goes: failures are counted' "$(sed -n 's/^ferrum_bpftrace_write_errors_total{.*} \([0-9]\)/\1/p' "$TMP/gone/x.prom" | grep -c '^[1-9]')" 1

"$FBT" -p 1 --metrics x.txt 2>"$OUT.err"
is 'a name that nobody reads is refused' $? 2
finish

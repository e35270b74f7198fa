#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# More of the flight recorder: two engines at once, a hang, the number of dumps, samples of system
# calls, tracers that die or stop, a change of what is watched, a cgroup, and options that only some of
# its children may have.
# shellcheck disable=SC2119,SC2317 # called by name, and without options
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/watch/lib.sh
. tests/live/watch/lib.sh
# shellcheck source=tests/live/otlp/lib.sh
. tests/live/otlp/lib.sh

# set_option NAME VALUE: in the configuration, once
set_option()
{
	sed -i "/^$1 = /d" "$CONFIG"
	echo "$1 = $2" >>"$CONFIG"
}

reload()
{
	local before

	before=$(grep -c 'reload: done' "$LOG")
	kill -USR2 "$TOOL"
	await_log $((before + 1)) 'reload: done'
}

# Dumps of which one of the four files is missing.
lacking_files()
{
	local file suffix

	for file in "$DIR"/*.fbt.gz; do
		for suffix in trace.json.gz jsonl.gz html; do
			[ -s "${file%fbt.gz}$suffix" ] || echo "${file##*/}: no $suffix"
		done
	done
}

# rank_of STEM: of its kineto trace
rank_of()
{
	python3 -c 'import gzip, json, sys; print(json.load(gzip.open(sys.argv[1]))["distributedInfo"]["rank"])' \
		"$1.trace.json.gz"
}

# Two engines, the dumps of both limited to two.
set_option max-dumps 2
set_option calls 0
start_watched
first=$ENGINE
go
start_watched
second=$ENGINE
go
start_watch
await_watching "$first"
await_watching "$second"
is 'two engines are watched at once' $? 0
for count in 1 2; do
	kill -USR1 "$TOOL"
	await_log $((2 * count)) 'dump .*_manual\.\*'
done
is 'each request dumps both' $? 0
is 'the oldest dumps are deleted' "$(count_dumps manual)" 2
is 'with all their files' "$(find "$DIR" -type f | wc -l)" 8
kill -TERM "$second"
wait "$second"
await_log 1 "^$second .* has ended"
is 'one may end' $? 0
is 'the other is watched on' "$(kill -0 "$(tracer_of "$first")"; echo $?)" 0

# A tracer that is killed, one that is stopped.
kill -KILL "$(tracer_of "$first")"
await_log 1 'its tracer has ended with an error; it is started again'
await_log 2 "^watching $first "
is 'a tracer that was killed is started again' $? 0
kill -STOP "$(tracer_of "$first")"
await_log 1 'its tracer has not answered for 30 s'
is 'one that is stopped is noticed' $? 0
await_log 3 "^watching $first "
is 'and replaced' $? 0
# All of them, as in a container that is frozen.
tracer=$(tracer_of "$first")
kill -STOP "$TOOL" "$tracer"
sleep 33
kill -CONT "$TOOL" "$tracer"
kill -USR1 "$TOOL"
await_log 3 "dump .*_${first}_manual\\.\\*"
is 'after a pause of all, it goes on' "$(tracer_of "$first")" "$tracer"

# Samples.
set_option calls 3s
set_option sample 1s
set_option sample-every 10s
reload
is 'nothing that tracers know has changed' "$(grep -c 'tracers start again' "$LOG")" 0
kill -KILL "$(tracer_of "$first")"
await_log 4 "^watching $first "
sampled()
{
	[ "$(count_syscall_links)" != 0 ]
}
wait_for 30 sampled
is 'system calls are sampled' $? 0
wait_for 30 no_calls
is 'for a short time' $? 0
kill -USR1 "$TOOL"
await_log 1 'dump .*_manual_sample\.\*'
is 'the sample is a part of the next dump' $? 0
holds 'its files are valid' "$FBT" validate "$(stem_of manual_sample)".jsonl.gz

# Options of tracers, and what is watched.
set_option hang 2s
reload
is 'a change that concerns tracers starts them again' "$(grep -c 'tracers start again' "$LOG")" 1
await_log 5 "^watching $first "
is 'it is watched again' $? 0
set_option comm fbt_none
reload
await_log 1 "^$first .* is no longer watched"
is 'what is no longer selected is let go' $? 0
no_tracer()
{
	[ -z "$(tracer_of "$first")" ]
}
wait_for 20 no_tracer
is 'its tracer ends' $? 0
kill -TERM "$first"
wait "$first"

# A hang.
cp "$FBT_BUILD/tests/live_hang" "$TMP/hang$$"
start_waiting "$TMP/hang$$" "$TMP/truth.json" "$TMP/release"
set_option comm "hang$$"
set_option step hang_step
set_option hang 1s
reload
await_watching "$ENGINE"
go
await_log 1 'dump .*_hang\.\*: hang_step hangs'
is 'a hang is dumped while it lasts' $? 0
kill -0 "$ENGINE"
is 'in a process that lives' $? 0
"$FBT" --replay "$(stem_of hang).fbt.gz" --report json --trace none --profile none >"$OUT.json" 2>/dev/null
is 'the capture has it' "$(grep -o '"hang_count":[0-9]*' "$OUT.json")" '"hang_count":1'
kill -KILL "$ENGINE"
wait "$ENGINE" 2>/dev/null

# A cgroup.
root=$(awk '$3 == "cgroup2" || ($3 == "cgroup" && /pids/) { print $2 }' /proc/mounts | tail -1)
group=$root/fbt$$
if [ -n "$root" ] && mkdir "$group" 2>/dev/null; then
	undo()
	{
		rmdir "$group"
	}
	sed -i '/^comm = /d' "$CONFIG"
	set_option cgroup "/fbt$$"
	set_option step engine_step
	start_watched
	reload
	echo "$ENGINE" >"$group/cgroup.procs"
	await_watching "$ENGINE"
	is 'the process of a cgroup is watched' $? 0
	kill -TERM "$ENGINE"
	wait "$ENGINE"
fi

# Spans and metrics for a collector, a file of metrics, and a rank in the traces: a writer or a second
# tracer would refuse them, or write and send what the first one does.
no_tracers()
{
	! pgrep -P "$TOOL" -f -- '--flight-fd' >/dev/null
}
wait_for 20 no_tracers
start_collector 200
sed -i '/^cgroup = /d' "$CONFIG"
set_option comm "$COMM"
set_option hang 10s
set_option calls 2s
set_option sample 0
set_option max-dumps 20
cat >>"$CONFIG" <<END
otlp = $URL
otlp-metrics
metrics = $TMP/node/llm.prom
metrics-interval = 1
trace-format = kineto
rank = 3
END
start_watched
first=$ENGINE
go
start_watched
second=$ENGINE
go
reload
await_watching "$first"
await_watching "$second"
is 'with all these options two engines are watched' $? 0
is 'each has a file of metrics' "$(cd "$TMP/node" && echo *.prom)" 'llm.prom llm_2.prom'
dumped=$(grep -c 'dump .*_manual\.\*' "$LOG")
called=$(grep -c 'dump .*_manual_calls\.\*' "$LOG")
kill -USR1 "$TOOL"
await_log $((dumped + 2)) 'dump .*_manual\.\*'
is 'both are dumped' $? 0
await_log $((called + 2)) 'dump .*_manual_calls\.\*'
is 'with their system calls' $? 0
is 'each dump has its four files' "$(lacking_files)" ''
is 'no writer has failed' "$(grep -c 'incomplete: its writer' "$LOG")" 0
is 'the rank is in their traces' "$(rank_of "$(stem_of manual)") $(rank_of "$(stem_of manual_calls)")" '3 3'
# The replays have ended: they would have said that the tracer has.
for name in llm llm_2; do
	has "$name.prom: the tracer is up" "$TMP/node/$name.prom" "^ferrum_bpftrace_up\{tracer=\"$name\"\} 1\$"
	has "$name.prom: it counts the escalation" "$TMP/node/$name.prom" \
		"^ferrum_bpftrace_escalations_total\{tracer=\"$name\",.*reason=\"manual\"\} 1\$"
done
sent 'metrics: those of both tracers are sent, and no others' \
	'{(p["attributes"]["tracer"], p["asInt"]) for q in Q for p in q["metrics"].get("ferrum_bpftrace_up", [])} ==
		{("llm", "1"), ("llm_2", "1")}'
sent 'metrics: no other tracer has their name' \
	'{p["instance"].split(":", 1)[1] for q in Q for p in q["metrics"].get("ferrum_bpftrace_up", [])} ==
		{"'"$TMP/node/llm.prom"'", "'"$TMP/node/llm_2.prom"'"}'
sent 'spans: each escalation is sent once' \
	'sorted(s["resource"]["process.pid"] for q in Q for s in q["spans"] if "parentSpanId" not in s
		and s["attributes"]["escalation.reason"] == "manual") == '"[$(printf '%s\n' "$first" "$second" | sort -n | paste -sd,)]"
sent 'metrics: as the specification has it' \
	'[p for q in Q if q["path"] == "/v1/metrics" for p in q["problems"]] == []'
kill -TERM "$first" "$second"
wait "$first" "$second"
await_log 1 "^$first .* has ended"
await_log 1 "^$second .* has ended"
end_collector 'metrics and spans'
sed -i '/^\(otlp\|otlp-metrics\|metrics\|metrics-interval\|trace-format\|rank\)\( =\|$\)/d' "$CONFIG"

# Nothing fits on the disk.
set_option max-disk 1K
start_watched
go
reload
await_watching "$ENGINE"
await_log 1 'has no room in --max-disk .* raise --max-disk'
is 'that a dump may be too large is said at the start' $? 0
kill -USR1 "$TOOL"
await_log 1 'not written: it has no room in --max-disk'
is 'a dump that is too large is not written' $? 0
kill -TERM "$TOOL"
wait "$TOOL"
is 'it ends with 0' $? 0
kill -TERM "$ENGINE"
wait "$ENGINE"
is 'the filter of the tracers lets them be' "$(grep -c 'by our filter' "$LOG")" 0
finish

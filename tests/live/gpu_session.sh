#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# GPU records in various sessions: windows by flag, a COMMAND, processes in other namespaces, and a
# process that is stopped.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/gpu/lib.sh"

script=k50,h20,z100,s
# count_calls REGEX: number of matching calls to CUPTI so far
count_calls()
{
	grep -cs "$1" "$TMP/calls" || [ -e "$TMP/calls" ] || echo 0
}

# has_left COUNT: the shim has unsubscribed that often
# shellcheck disable=SC2317
has_left()
{
	[ "$(count_calls cuptiUnsubscribe)" = "$1" ]
}

# is_armed_again COUNT: the shim was armed that often
# shellcheck disable=SC2317
is_armed_again()
{
	[ "$(count_calls 'cuptiActivityEnable 10 = 0')" = "$1" ]
}

# shellcheck disable=SC2317
says()
{
	[ "$(grep -c "$1" "$OUT.err")" -ge "$2" ]
}

# have_figures COUNT: that many windows have GPU figures by now
# shellcheck disable=SC2317
have_figures()
{
	[ "$(find "$TMP/windows" -name '*.jsonl' -exec grep -l '"event":"gpu_prof"' {} + | wc -l)" = "$1" ]
}

# CUPTI is only used during a window.
start_gpu --linger-ms 20000 --steps 0 --script $script
go
env --default-signal=INT "$FBT" -p "$ENGINE" --step gpu_engine_step --flag "$TMP/flag" \
	--dir "$TMP/windows" --report none 2>"$OUT.err" 7>&- </dev/null &
TOOL=$!
for window in 1 2; do
	holds "flag: it waits for window $window" wait_for 60 says '^waiting for /' "$window"
	sleep 0.3
	is "flag: the shim rests before window $window" "$(count_calls 'cuptiActivityEnable 10 = 0')" \
		"$((window - 1))"
	calls=$(count_calls .)
	sleep 0.3
	is "flag: nothing is asked before window $window" "$(count_calls .)" "$calls"
	touch "$TMP/flag"
	holds "flag: the shim is armed in window $window" wait_for 60 is_armed_again $window
	wait_for 60 have_figures $window
	rm "$TMP/flag"
	holds "flag: the shim unsubscribes with window $window" wait_for 60 has_left $window
done
wait_for 60 says '^waiting for /' 3
kill -INT "$TOOL"
wait "$TOOL"
is 'flag: the tool ends with 0' $? 0
for profile in "$TMP"/windows/*.jsonl; do
	holds 'flag: each window has GPU figures' grep -q '"event":"gpu_prof"' "$profile"
	holds 'flag: … and its status' grep -q '"gpu_status":"ended"' "$profile"
done
is 'flag: so many windows' "$(find "$TMP/windows" -name '*.jsonl' | wc -l)" 2
end_gpu

# A COMMAND gets the shim, unless CUDA_INJECTION64_PATH is set or the GPU is off.
command_status()
{
	env FERRUM_CUPTI_LIBRARY="$FAKES/$CUPTI" "$FBT" --step gpu_engine_step --trace none \
		--profile "$TMP/command.jsonl" --report none "$@" -- "$GPU_ENGINE" --steps 2000 \
		--script $script 2>"$TMP/command.err"
}
command_status --gpu require
is 'command: has GPU records' $? 0
holds 'command: … in its steps' grep -q '"event":"gpu_prof"' "$TMP/command.jsonl"
rm "$TMP/command.jsonl"
CUDA_INJECTION64_PATH=/nonexistent/libferrum_cupti.so command_status
is 'command: with a library of its own it keeps that' \
	"$? $(grep -c gpu_prof "$TMP/command.jsonl")" '0 0'
has 'command: and that is said' "$TMP/command.err" \
	/nonexistent/libferrum_cupti.so
rm "$TMP/command.jsonl"
command_status --gpu off
is 'command: off is off' "$? $(grep -c gpu_prof "$TMP/command.jsonl")" '0 0'
"$FBT" --trace none --profile none --report none --gpu require -- sleep 0.1 2>"$TMP/command.err"
is 'command: require is not met without CUDA' $? 1
has 'command: … which is said at the end' "$TMP/command.err" 'gpu require'

# Another PID namespace, and a monotonic clock that is a day ahead.
if unshare --fork --pid --mount-proc --time --monotonic 86400 true 2>/dev/null; then
	gpu_under=(unshare --fork --pid --mount-proc --time --monotonic 86400 --kill-child)
	start_gpu --linger-ms 60000 --steps 200 --script $script
	outer=$ENGINE
	ENGINE=$(pgrep -P "$outer")
	attach_gpu --detail all
	go
	wait_for 60 is_done || not_ok 'the engine makes its steps'
	sleep 0.1
	stop_tool
	kill -TERM "$ENGINE"
	wait "$outer"
	# shellcheck disable=SC2034
	gpu_under=()
	# On a busy machine records may come too late. Their step then ends without them: it is
	# incomplete, and its work counts as outside of steps.
	process='R["gpu_processes"][0]'
	fact 'namespaces: all work is joined to its call' \
		"${process}['joined'] == 400 and ${process}['unjoined'] == 0"
	fact 'namespaces: and in its step, or counted as outside' "sum(r['shape']['joined'] for r in E
		if r['event'] == 'gpu_prof') + ${process}['outside'] == 400 and
		sum(r['shape']['by_time'] for r in E if r['event'] == 'gpu_prof') == 0"
	fact 'namespaces: complete steps have all of theirs' '{r["shape"]["joined"] for r in E
		if r["event"] == "gpu_prof" and r["shape"]["complete"]} == {2}'
	fact 'namespaces: threads have the numbers of here' \
		"{x['tid'] for x in X if x['cat'] == 'cuda_runtime'} == {$ENGINE}"
	fact 'namespaces: and times too' 'all(r["stage_us"]["busy"] + r["stage_us"]["idle"] <=
		r["stage_us"]["total"] + 1 and (r["stage_us"]["busy"] > 0 or not r["shape"]["complete"])
		for r in E if r["event"] == "gpu_prof")'
else
	echo 'SKIP namespaces: no time namespaces here'
fi

# A process that is stopped for longer than a shim may be silent continues afterwards.
start_gpu --linger-ms 20000 --steps 0 --script $script
attach_gpu
go
wait_for 60 has_figures 25
kill -STOP "$ENGINE"
holds 'stopped: it is said' wait_for 60 grep -q 'the shim does not respond' "$OUT.err"
before=$(grep -c '"event":"gpu_prof"' "$OUT.profile")
kill -CONT "$ENGINE"
# More than can have been in transit.
wait_for 60 has_figures $((before + 500))
stop_tool
fact 'stopped: it was armed again at the end' 'R["gpu_processes"][0]["status"] == "ended"'
is 'stopped: by the same arming' "$(count_calls 'cuptiActivityEnable 10 = 0')" 1
end_gpu
finish

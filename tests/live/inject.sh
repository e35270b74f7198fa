#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# --gpu=inject on the fake CUDA engine. An engine that was started without the shim has the same GPU
# records as one with it, to the nanosecond, and repeated windows leave nothing behind.
# tests/live/inject.sh [WINDOWS]: number of windows in which one shim is armed and disarmed
# (default: 10; 100 with TEST_LONG=1)
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/gpu/lib.sh"
. "$(dirname "$0")/inject/gpu.sh"

# whole NAME 'ENGINE OPTIONS' TOOL-OPTION…: a run with an engine that was started without the shim
whole()
{
	local name=$1 options=$2

	shift 2
	# shellcheck disable=SC2086
	start_plain --linger-ms 60000 $options
	attach_inject 1 "$@"
	go
	wait_for 60 is_done || not_ok "$name: the engine makes its steps"
	sleep 0.1
	stop_tool
	is "$name: one shim" "$(shims "$ENGINE")" 1
	end_gpu
	is "$name: one injection was told" "$(grep -c "$put" "$OUT.err")" 1
	truth_of "$name"
	holds "$name: outputs are valid" "$FBT" validate "$OUT.profile" "$OUT.trace"
}

whole plain "--steps 60 --script $script,k30,d20,s" --detail all
whole rich '--steps 60
	--script k50,h20.1,K10,n30,m5,q15.2,b5,d20@1,k40@1,u30,x10,v10,p20,s,z100,l5,t5,y3,f50,r5,S10,P5,e2'
whole threads "--steps 60 --step-threads 3 --script $script"
whole 'graphs that were there' '--steps 60 --script g8,z50,G5,k10,s'

# The same with the shim that CUDA loads: --gpu=inject has nothing to do.
start_gpu --linger-ms 60000 --steps 60 --script $script
attach_inject 1
go
wait_for 60 is_done
sleep 0.1
stop_tool
is 'started with it: the one shim' "$(shims "$ENGINE") $(grep -c "$put" "$OUT.err")" '1 0'
end_gpu
truth_of 'started with it'

# A second window arms the first window's shim again.
start_plain --linger-ms 60000 --steps 60 --script $script
attach_inject 1
stop_tool
is 'again: the first window injects' "$(shims "$ENGINE") $(grep -c "$put" "$OUT.err")" '1 1'
holds 'again: it is at rest then' wait_for 60 grep -q cuptiUnsubscribe "$TMP/calls"
attach_inject 2
go
wait_for 60 is_done
sleep 0.1
stop_tool
is 'again: the second does not' "$(shims "$ENGINE") $(grep -c "$put" "$OUT.err")" '1 0'
truth_of again
"$FBT" --gpu=inject --dry-run -p "$ENGINE" >"$TMP/dry" 2>&1
is 'again: a dry run says so' "$? $(grep -c 'is already loaded' "$TMP/dry")" '0 1'
end_gpu


# An engine in the middle of its steps.
start_plain --steps 0 --script $script
go
attach_inject 1
wait_for 60 has_figures 25
stop_tool
fact 'amid its steps: figures of those after it' \
	'sum(r["shape"]["complete"] for r in E if r["event"] == "gpu_prof") >= 20'
end_gpu

# One window after another. The engine is idle, because the double of CUPTI keeps some memory for
# each launch.
start_plain --steps 1 --linger-ms 3600000
go
wait_for 60 is_done
attach_inject 1
stop_tool
resident()
{
	awk '/^RssAnon/ { anon = $2 } /^Threads/ { print anon, $2 }' "/proc/$ENGINE/status"
}
descriptors()
{
	find "/proc/$ENGINE/fd" -mindepth 1 | wc -l
}
# If that is too short for this machine to arm the shim, a second is enough.
length=0.1
windows=0
ended=0
wanted=${1:-$(at_length 10 100)}
while [ $windows -lt "$wanted" ]; do
	"$FBT" -p "$ENGINE" --step gpu_engine_step --gpu=inject -d $length --trace none --profile none \
		--report json >"$OUT.report" 2>"$OUT.err" || not_ok 'windows: the tool ends with 0'
	with=$(grep -c '"status":"ended"' "$OUT.report")
	[ "$with" -gt 0 ] || length=1
	ended=$((ended + with))
	windows=$((windows + 1))
	if [ $windows = 3 ]; then
		read -r first_rss first_threads <<<"$(resident)"
		first_descriptors=$(descriptors)
		first_maps=$(wc -l <"/proc/$ENGINE/maps")
	fi
done
echo "# $ended of $windows windows had records"
attach_inject 1
stop_tool
fact "windows: one after $windows has records" 'R["gpu_processes"][0]["status"] == "ended"'
read -r last_rss last_threads <<<"$(resident)"
is 'windows: threads and descriptors are as after the third' "$last_threads $(descriptors)" \
	"$first_threads $first_descriptors"
is 'windows: mappings too' "$(wc -l <"/proc/$ENGINE/maps")" "$first_maps"
holds "windows: memory was $first_rss KiB, and is $last_rss" [ "$last_rss" -le $((first_rss + 64)) ]
is 'windows: one shim all the time' "$(shims "$ENGINE")" 1
end_gpu
finish

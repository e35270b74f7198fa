#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Each reason for missing GPU records is given in one line. The syscall side continues, and the
# engine is unaffected.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/gpu/lib.sh"

# knows: the tool has learned the shim's state, and reported it
knows()
{
	wait_for 60 grep -q 'GPU records' "$OUT.err"
}

# run NAME STATUS TOOL-OPTION…: gpu_env is the engine's environment
run()
{
	local name=$1 status=$2

	shift 2
	rm -f "${OUT:?}".*
	start_gpu --linger-ms 60000 --steps 30 --script k50,z20,s
	run_tool -p "$ENGINE" --step gpu_engine_step "$@"
	wait_attached "$TOOL" || not_ok "$name: the tool attaches"
	sleep 0.5
	[ "$status" = off ] || knows
	go
	wait_for 60 is_done
	sleep 0.3
	stop_tool
	end_gpu
	fact "$name: it is told" 'R["gpu_processes"][0]["status"] == "'"$status"'"'
	fact "$name: in at most one line" 'sum("GPU records" in line for line in lines) <= 1'
	fact "$name: steps are there, without GPU figures" \
		'len(S) == 30 and all(s["six"]["other"] >= 20 for s in S) and
		 not [r for r in E if r["event"] == "gpu_prof"]'
	holds "$name: outputs are valid" "$FBT" validate "$OUT.profile" "$OUT.trace"
}

gpu_env=(FAKE_CUPTI_HOLDER=nsys)
run busy busy
has 'busy: by whom' "$OUT.err" nsys
CUPTI=libcupti.so.12
run 'busy, older' busy
CUPTI=libcupti.so.13
gpu_env=(FAKE_CUPTI_NO_DRIVER=1 FAKE_CUDA_NO_DEVICE=1)
run 'no driver' no_driver
has 'no driver: CUPTI said so' "$OUT.err" '999'
gpu_env=(FAKE_CUPTI_NO_DRIVER=1)
run 'a failure with a driver' failed
has 'a failure with a driver: what CUPTI said' "$OUT.err" '999'
gpu_env=(FAKE_CUPTI_VERSION=17)
run old old_cupti
CUPTI=libcupti.so.11.8
gpu_env=(FAKE_CUPTI_VERSION=22)
run 'too old to come late' old_cupti
has 'too old to come late: what to do' "$OUT.err" 'FERRUM_CUPTI_EARLY=1'
CUPTI=libcupti.so.13
gpu_env=(FERRUM_CUPTI_LIBRARY=/nonexistent)
run 'no CUPTI' no_cupti
gpu_env=(CUDA_INJECTION64_PATH=)
run 'no shim' absent
has 'no shim: what to do' "$OUT.err" 'engine-env'
gpu_env=()
run off off --gpu off
holds 'off: nothing was asked of CUPTI' [ ! -e "$TMP/calls" ]
is 'off: and nothing is said' "$(grep -c GPU "$OUT.err")" 0

# CUPTI becomes free again, and the next subscription in the same engine succeeds.
touch "$TMP/nsys"
gpu_env=(FAKE_CUPTI_HOLDER=nsys FAKE_CUPTI_HOLDER_FILE="$TMP/nsys")
rm -f "${OUT:?}".*
start_gpu --linger-ms 60000 --steps 100 --script k50,z20,s
run_tool -p "$ENGINE" --step gpu_engine_step
wait_attached "$TOOL"
knows
stop_tool
fact 'busy at first: it is told' 'R["gpu_processes"][0]["status"] == "busy"'
rm "$TMP/nsys"
attach_gpu
go
wait_for 60 is_done
sleep 0.1
stop_tool
end_gpu
truth_of 'then free'

# --gpu require
gpu_env=(FAKE_CUPTI_HOLDER=nsys)
start_gpu --linger-ms 20000 --steps 0
run_tool -p "$ENGINE" --step gpu_engine_step --gpu require
go
end_tool 1 'require: busy is an error'
has 'require: what it wants' "$OUT.err" 'gpu require'
holds 'require: the engine lives' kill -0 "$ENGINE"
end_gpu
gpu_env=()
trace_gpu '--steps 30 --script k50,z20,s' --gpu require
truth_of require

# Two tracers: the first one gets the records. The second one says so, and still traces syscalls.
start_gpu --linger-ms 60000 --steps 100 --script k50,z20,s
OUT=$TMP/first attach_gpu
first=$TOOL
OUT=$TMP/second run_tool -p "$ENGINE" --step gpu_engine_step
wait_attached "$TOOL"
OUT=$TMP/second knows
go
wait_for 60 is_done
sleep 0.1
OUT=$TMP/second stop_tool
OUT=$TMP/second fact 'two tracers: the second is told' 'R["gpu_processes"][0]["status"] == "taken"'
OUT=$TMP/second fact 'two tracers: and has its steps' 'len(S) == 100'
OUT=$TMP/second has 'two tracers: by whom' "$TMP/second.err" "$first"
TOOL=$first
OUT=$TMP/first stop_tool
OUT=$TMP/first truth_of 'two tracers: the first'
end_gpu

# The real CUPTI, where it is installed, without a driver.
real=$(find -L "${CUDA_HOME:-/usr/local/cuda}/lib64" "${CUDA_HOME:-/usr/local/cuda}/lib" \
	"${CUDA_HOME:-/usr/local/cuda}/extras/CUPTI/lib64" -maxdepth 1 -name 'libcupti.so.1[0-9]' \
	2>/dev/null | head -1)
if [ -n "$real" ] && [ ! -e /dev/nvidiactl ]; then
	gpu_env=(FERRUM_CUPTI_LIBRARY="$real" FAKE_CUDA_NO_DEVICE=1)
	run 'real CUPTI, no driver' no_driver
else
	echo 'SKIP real CUPTI, no driver: no CUPTI here, or a driver too'
fi
finish

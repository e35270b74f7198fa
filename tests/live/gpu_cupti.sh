#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Releases of CUPTI from 11.8 on: the length of their records, the clock, the filters, and records
# that are dropped or have no times.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/gpu/lib.sh"

# release LIBRARY VERSION CLOCK [NAME=VALUE…]
release()
{
	local clock=$3

	CUPTI=$1
	gpu_env=(FAKE_CUPTI_VERSION="$2" "${@:4}")
	trace_gpu '--steps 30 --script j3,k50,h20.1,K10,n30,m5,q15.2,b5,d20@1,k40@1,p20,g5,s'
	truth_of "$1 $2"
	fact "$1 $2: clock" '{r["shape"]["clock"] for r in E if r["event"] == "gpu_prof"} == {"'"$clock"'"}'
	# Times are compared within the error that is reported (truth_of). A busy machine may
	# interrupt the reading of the clocks, which makes the error larger.
	fact "$1 $2: within 20 us where it is not interrupted" \
		'min(r["shape"]["clock_error_ns"] for r in E if r["event"] == "gpu_prof") < 20000'
}

# Before 12.6, CUPTI must be loaded before CUDA graphs are created.
release libcupti.so.11.8 18 callback FERRUM_CUPTI_EARLY=1
release libcupti.so.11.8 19 callback FERRUM_CUPTI_EARLY=1
release libcupti.so.11.8 22 callback FERRUM_CUPTI_EARLY=1
release libcupti.so.12 23 callback FERRUM_CUPTI_EARLY=1
release libcupti.so.12 24 realtime
release libcupti.so.12 28 realtime
release libcupti.so.13 130000 realtime FERRUM_CUPTI_ANY_VERSION=1
release libcupti.so.13 130001 realtime
release libcupti.so.13 130100 callback
release libcupti.so.13 130400 callback

CUPTI=libcupti.so.13
gpu_env=(FAKE_CUPTI_CLOCK_SETTLES=500)
trace_gpu '--steps 200 --script k50,h20.1,d10,s'
truth_of 'a clock that settles late'

gpu_env=(FAKE_CUPTI_ZERO=7)
trace_gpu '--steps 100 --script k50,h20.1,d10,s'
truth_of 'zero times' --losses
holds 'zero times: outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"

gpu_env=(FAKE_CUPTI_DROP=9)
trace_gpu '--steps 100 --script k50,h20.1,d10,s'
truth_of dropped --losses
holds 'dropped: outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"

# Before 13.1 U1, CUPTI numbers the work of graphs wrongly once it was used before: it gets the numbers
# of the kernels here. The kernels keep theirs.
gpu_env=(FAKE_CUPTI_GRAPH_SHIFT=1)
start_gpu --linger-ms 60000 --steps 100 --script 'g5,z50,k10,s'
attach_gpu
stop_tool
attach_gpu
go
wait_for 60 is_done
sleep 0.1
stop_tool
end_gpu
fact 'graphs of wrong numbers: kernels are joined, graphs are not' \
	'[R["gpu_processes"][0][key] for key in ("joined", "unjoined")] == [100, 500]'

# CUPTI runs out of device buffers: the shim is armed again.
gpu_env=(FAKE_CUPTI_POOL_KERNELS=2000)
trace_gpu '--steps 3000 --script g60,s'
has 'device buffers: it is said' "$OUT.err" 'GPU records are interrupted'
holds 'device buffers: the shim is armed again' \
	[ "$(grep -c 'cuptiActivityEnable 10 = 0' "$TMP/calls")" -ge 2 ]
# One pool has room for the times of 8 x 2,000 kernels.
fact 'device buffers: kernels of several pools have times' 'R["gpu_processes"][0]["kernels"] -
	R["gpu_processes"][0]["unmeasured"] > 2 * 16000 and R["gpu_processes"][0]["kernels"] > 100000'

# The data that comes with an overhead record must be freed: 8 KiB each, 200 MiB in all.
gpu_env=()
start_gpu --linger-ms 60000 --steps 5000 --sleep-us 0 --script 'c1 k1 c1 k1 c1 k1 c1 k1 c1 k1 s'
attach_gpu
before=$(awk '/^VmRSS/ { print $2 }' "/proc/$ENGINE/status")
go
wait_for 60 is_done
# shellcheck disable=SC2317,SC2329 # wait_for calls it
is_freed()
{
	grown=$(($(awk '/^VmRSS/ { print $2 }' "/proc/$ENGINE/status") - before))
	[ "$grown" -lt 65536 ]
}
holds 'overhead data is freed' wait_for 60 is_freed
echo "# grown by $grown KiB"
stop_tool
end_gpu
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Each piece of GPU work, and each figure of each step, compared with the engine's own account, to
# the nanosecond.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/gpu/lib.sh"

# whole NAME 'ENGINE OPTIONS' TOOL-OPTION…: a run that loses nothing
whole()
{
	local name=$1

	shift
	trace_gpu "$@"
	truth_of "$name" "${truth_options[@]}"
	holds "$name: outputs are valid" "$FBT" validate "$OUT.profile" "$OUT.trace"
}

truth_options=()
whole plain '--steps 60 --script k50,h20,z100,k30,d20,s' --detail all
fact 'plain: step_prof says the same' \
	'all([a["stage_us"]["gpu_" + key] for key in ("busy", "idle", "host_wait", "launch", "queue")] ==
	     [b["stage_us"][key] for key in ("busy", "idle", "host_wait", "launch", "queue")]
	     for a, b in zip([r for r in E if r["event"] == "step_prof"],
			     [r for r in E if r["event"] == "gpu_prof"])) and len(S) == 60'
fact 'plain: the trace has all work, in a lane of its own' \
	'[sum(x["cat"] == cat for x in X) for cat in ("kernel", "gpu_memcpy", "cuda_runtime")] == [120, 120, 300]
	 and {x["tid"] for x in X if x["cat"] == "kernel"} == {10000000}'
fact 'plain: kernels have their names' '{x["name"] for x in X if x["cat"] == "kernel"} ==
	{"matmul(float const*, float const*, float*, int)"}'
# Where the double's GPU gets no CPU itself, its work begins late and lasts beyond the sleep.
fact 'plain: the wait is nanosleep' 'all(r["shape"].get("wait_blocked_ns.nanosleep", 0) > 10000 or
	r["stage_us"]["queue"] > 50 for r in E if r["event"] == "gpu_prof")'
whole rich '--steps 60
	--script k50,h20.1,K10,n30,m5,q15.2,b5,d20@1,k40@1,u30,x10,v10,p20,s,z100,l5,t5,y3,f50,r5,S10,P5,e2'
whole graph '--steps 60 --script g8,z50,G5,k10,s,g12.1,k30,s,s.1'
whole waits '--steps 60 --script k100.1,w1,k20,u20,o-2,k10,o8,k10,c300,k20,a1,k5,k5,k5,k5,s'
whole early '--steps 60 --script o-3,k10,k1,p5,o0,k20,s --outside k10,h10,s'
whole async '--steps 100 --script k300,h50,z50 --sleep-us 500'
whole threads '--steps 60 --step-threads 3 --script k50,h20,z100,s'
whole helper '--steps 60 --script k50,h20,z100,s --helper k20,d5,s --helper-us 100'
# A helper's kernel begins 800 us after its launch: after the step it belongs to, and after the work
# of others. Not its first one: what a device has done before its first work is not known.
whole beyond '--steps 60 --sleep-us 100 --script k50,z100,s --helper o0,k5.1,o800,k20.1,s.1 --helper-us 100'
# Launch calls of a helper that last longer than steps: those are told before the call has returned.
whole held '--steps 2000 --sleep-us 100 --script k50,z100,s --helper a3000,k20.1,s.1 --helper-us 100'
truth_options=(--strict)
whole strict '--steps 60 --step-threads 2 --script k50,h20,z100,s --helper k20,d5,s --helper-us 100' \
	--gpu-strict
truth_options=()
whole noise '--steps 40 --script j20,k10,j5,s' --detail steps
finish

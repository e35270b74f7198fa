#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Either side may be killed at any moment: the other one continues and the files written so far are
# readable. A shim that nobody uses does next to nothing.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/gpu/lib.sh"

# Times in nanoseconds of the shim's calls.
times_of()
{
	awk -v call="$1" '$3 == call { print $1 }' "$TMP/calls" 2>/dev/null
}

now_ns()
{
	python3 -c 'import time; print(time.clock_gettime_ns(time.CLOCK_MONOTONIC))'
}

shim_thread()
{
	grep -lx ferrum-cupti "/proc/$ENGINE/task/"*/comm | cut -d/ -f5 | grep .
}

# rests_long NAME: the shim's thread makes no calls but waits of 2 s. The kernel has the time of
# each call, and no wait ends early on a busy machine.
rests_long()
{
	local took

	# shellcheck disable=SC2016 # bpftrace's
	took=$(timeout 120 bpftrace -e 'tracepoint:raw_syscalls:sys_enter /tid == '"$(shim_thread)"'/ {
		if (@calls == 0) { @first = nsecs; }
		@calls++;
		if (@calls == 3) { printf("took %d\n", (nsecs - @first) / 1000000); exit(); }
	}' 2>&1 | awk '$1 == "took" { print $2 }')
	echo "# $1: from a call to the second after it: ${took:-unknown} ms"
	holds "$1: three calls take at least 4 s" [ "${took:-0}" -ge 4000 ]
}

# shellcheck disable=SC2317
is_cupti_free()
{
	[ "$(times_of cuptiUnsubscribe | wc -l)" = "$(times_of cuptiSubscribe_v2 | wc -l)" ]
}

start_gpu --steps 0 --sleep-us 4000 --script k50,h20,K10,g4,s
go
wait_for 60 shim_thread >/dev/null || not_ok 'the shim has a thread'
rests_long idle
is 'idle: nothing of CUPTI is loaded' "$(grep -c libcupti "/proc/$ENGINE/maps")" 0

# The tracer is killed, at various moments.
for i in 05 20 35 50 65 80 95; do
	run_tool -p "$ENGINE" --step gpu_engine_step
	sleep 0.$i
	kill -KILL "$TOOL"
	wait "$TOOL" 2>/dev/null
done
run_tool -p "$ENGINE" --step gpu_engine_step
wait_attached "$TOOL"
await_armed
killed=$(now_ns)
kill -KILL "$TOOL"
wait "$TOOL" 2>/dev/null
holds 'tracer killed: the shim leaves CUPTI by itself' wait_for 60 is_cupti_free
echo "# after $((($(times_of cuptiUnsubscribe | tail -1) - killed) / 1000000)) ms"
holds 'tracer killed: the engine lives' kill -0 "$ENGINE"
rests_long 'and then'
attach_gpu
wait_for 60 has_figures 25
stop_tool
truth_of 'the next tracer'
holds 'the next tracer: outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"
end_gpu

# The next tracer does not wait until the shim notices that the first one is gone.
start_gpu --steps 0 --script k50,h20,s
attach_gpu
go
wait_for 60 has_figures 25
kill -KILL "$TOOL"
wait "$TOOL" 2>/dev/null
attach_gpu
wait_for 60 has_figures 25
stop_tool
end_gpu
truth_of 'the next tracer at once'

# The target is killed, at various moments.
for seconds in 0.4 0.73 1.3; do
	start_gpu --steps 0 --sleep-us 200 --script k50,h20,K10,g4,s
	attach_gpu
	go
	sleep $seconds
	kill -KILL "$ENGINE"
	wait "$ENGINE" 2>/dev/null
	end_tool 0 "target killed after $seconds s: the tool ends"
	fact "target killed after $seconds s: that is told" \
		'R["gpu_processes"][0]["status"] == "exited" and R["gpu_processes"][0]["armed"]'
	truth_of "target killed after $seconds s" --cut 500
	holds "target killed after $seconds s: outputs are valid" \
		"$FBT" validate "$OUT.profile" "$OUT.trace"
done

# Children have no GPU work, and their shim is inactive.
trace_gpu '--steps 100 --fork-every 10 --script k50,h20,s'
truth_of 'children'
start_gpu --steps 0 --fork-every 20 --script k50,h20,s
go
attach_gpu --follow
wait_for 60 has_figures 100
stop_tool
end_gpu
truth_of 'children that are followed'

# After execve the same process has another program and another shim.
start_gpu --linger-ms 3000 --steps 2000 --exec --script k50,h20,s
attach_gpu
go
wait "$ENGINE"
is 'execve: the engine ends as it wants' "$? $(cat "$TMP/engine.err")" '0 '
end_tool
# The call site in the second program is at another address, which is unknown at its first steps.
fact 'execve: steps of both, traced or counted as not' \
	'len(S) + sum(k.get("untraced_steps", 0) for k in R["kinds"]) == 4000 and len(S) > 3000'
fact 'execve: GPU figures of both' \
	'[sum(r["event"] == "gpu_prof" and r["shape"]["complete"] and r["shape"]["kernels"] == 1 and
	      (r["shape"]["step"] <= 2000) == first for r in E) > 10 for first in (True, False)] == [True, True]'
holds 'execve: outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"
finish

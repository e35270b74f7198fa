#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# An engine in a PID namespace of its own, as in a container, or in a time namespace, and an engine
# that the tool starts.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/gpu/lib.sh"

# The engine is the process that was started in the namespace.
find_engine()
{
	outer=$ENGINE
	ENGINE=$(pgrep -P "$outer")
}

# All threads of the engine are there before its go.
write_tids()
{
	local status

	for status in "/proc/$ENGINE/task/"*/status; do
		awk '/^Pid:/ { tid = $2 } /^NSpid:/ { print tid, $NF }' "$status"
	done >"$TMP/tids"
}

end_outer()
{
	kill -TERM "$ENGINE"
	wait "$outer"
	is "$1: the engine ends as it wants" "$? $(cat "$TMP/engine.err")" '0 '
}

# trace_inside NAME TRUTH-OPTION…: gpu_under is the command that starts the engine in its namespace
trace_inside()
{
	local name=$1

	shift
	start_gpu --linger-ms 60000 --steps 300 --step-threads 2 --script k50,h20,z100,k30,d20,s
	find_engine
	write_tids
	attach_gpu --detail all
	go
	wait_for 60 is_done || not_ok "$name: the engine makes its steps"
	sleep 0.1
	stop_tool
	end_outer "$name"
	truth_of "$name" "$@"
	fact "$name: host waits are known where the step thread launched" \
		'any(r["shape"].get("wait_blocked_ns.nanosleep", 0) > 10000 for r in E if r["event"] == "gpu_prof")'
	holds "$name: outputs are valid" "$FBT" validate "$OUT.profile" "$OUT.trace"
}

gpu_under=(unshare --pid --fork --mount-proc)
trace_inside 'PID namespace' --tids "$TMP/tids"
is 'PID namespace: thread ids are others there' "$(awk '$1 != $2 { print "yes" }' "$TMP/tids" | sort -u)" yes

if unshare --time --monotonic 100000 --fork true 2>/dev/null; then
	gpu_under=(unshare --time --monotonic 100000 --fork)
	trace_inside 'time namespace' --mono 100000000000000
	gpu_env=(FAKE_CUPTI_VERSION=130100)
	trace_inside 'time namespace, clock of our own' --mono 100000000000000
	gpu_env=()
else
	echo 'SKIP time namespace: this kernel has none'
fi
gpu_under=()

# COMMAND gets the shim without further options.
rm -f "${OUT:?}".* "$truth"* "$TMP/calls"
FERRUM_CUPTI_LIBRARY=$FAKES/$CUPTI FAKE_CUPTI_LOG=$TMP/calls run_tool --record "$OUT.capture" \
	--step gpu_engine_step -- "$GPU_ENGINE" --steps 1500 --linger-ms 1000 --truth "$truth" \
	--script k50,h20,z100,k30,d20,s
end_tool
fact 'COMMAND: its steps' 'len(S) == 1500'
truth_of COMMAND
holds 'COMMAND: outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"
rm -f "${OUT:?}".* "$truth"* "$TMP/calls"
FAKE_CUPTI_LOG=$TMP/calls run_tool --gpu off --step gpu_engine_step -- "$GPU_ENGINE" --steps 100
end_tool
holds 'COMMAND, --gpu off: no shim' [ ! -e "$TMP/calls" ]

# The variables that gpu-env prints load the shim as well.
"$FBT" gpu-env >"$TMP/gpu-env"
has 'gpu-env: for a shell' "$TMP/gpu-env" "export CUDA_INJECTION64_PATH=.*libferrum_cupti.so"
eval "$(grep '^export CUDA_INJECTION64_PATH=' "$TMP/gpu-env")"
gpu_env=(CUDA_INJECTION64_PATH="$CUDA_INJECTION64_PATH")
trace_gpu '--steps 50 --script k50,s'
truth_of 'gpu-env'
finish

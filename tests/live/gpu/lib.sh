# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What the live tests of GPU records share, beside lib.sh, which is sourced first: the engine on the
# doubles of CUDA and CUPTI, the shim in it, and the tool.
FAKES=$(realpath -m "$FBT_BUILD/tests")
GPU_ENGINE=$FAKES/gpu_engine
SHIM=$(realpath -m "$FBT_BUILD/libferrum_cupti.so")
# Which of the doubles: libcupti.so.13, libcupti.so.12, libcupti.so.11.8.
CUPTI=libcupti.so.13
truth=$TMP/truth.gpu
unset CUDA_INJECTION64_PATH FERRUM_CUPTI_LIBRARY FERRUM_CUPTI_EARLY "${!FAKE_CU@}"


# start_gpu [NAME=VALUE…] ENGINE-OPTION…: it waits for its go; what the shim asks of CUPTI is in
# $TMP/calls
start_gpu()
{
	rm -f "$truth" "$truth.done" "$TMP/calls"
	start_waiting env CUDA_INJECTION64_PATH="$SHIM" FERRUM_CUPTI_LIBRARY="$FAKES/$CUPTI" \
		FAKE_CUPTI_LOG="$TMP/calls" "${gpu_env[@]}" "${gpu_under[@]}" \
		"$GPU_ENGINE" --wait --truth "$truth" "$@" 2>"$TMP/engine.err"
}

gpu_env=()
gpu_under=()

is_armed()
{
	grep -q 'cuptiActivityEnable 10 = 0' "$TMP/calls" 2>/dev/null
}

# has_figures COUNT: so many steps have GPU figures by now
# shellcheck disable=SC2317
has_figures()
{
	[ "$(grep -c '"event":"gpu_prof"' "$OUT.profile" 2>/dev/null)" -ge "$1" ] 2>/dev/null
}

is_done()
{
	[ -e "$truth.done" ]
}

# Until the shim has answered the last wish to be armed, at most 60 s.
await_armed()
{
	"$FBT_BUILD/tests/gpu_arm" --wait "$ENGINE" 60
}

# attach_gpu TOOL-OPTION…: the tool on the engine's steps, the shim armed
attach_gpu()
{
	rm -f "${OUT:?}".*
	run_tool -p "$ENGINE" --step gpu_engine_step --record "$OUT.capture" "$@"
	wait_attached "$TOOL" || { cat "$OUT.err" && not_ok "the tool attaches ($*)"; }
	await_armed || not_ok 'the shim is armed'
}

# trace_gpu 'ENGINE OPTIONS' TOOL-OPTION…: from the go until the engine has made its steps, and all
# of its records can have come. A script has no blanks but commas.
trace_gpu()
{
	local options=$1

	shift
	# shellcheck disable=SC2086
	start_gpu --linger-ms 60000 $options
	attach_gpu "$@"
	go
	wait_for 60 is_done || not_ok 'the engine makes its steps'
	sleep 0.1
	stop_tool
	end_gpu
}

# The engine has to end as it wanted, and not by one of its doubles.
end_gpu()
{
	kill -TERM "$ENGINE"
	wait "$ENGINE"
	is 'the engine ends as it wants' "$? $(cat "$TMP/engine.err")" '0 '
}

# truth_of NAME OPTION…: see gpu_truth.py
truth_of()
{
	local name=$1

	shift
	python3 tests/live/gpu_truth.py --name "$name" "$@" || FAILED=1
}

# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What the live tests of GPU records share, beside lib.sh, which is sourced first: the engine on the
# doubles of CUDA and CUPTI, the shim in it, and the tool.
FAKES=$(realpath -m "$FBT_BUILD/tests")
GPU_ENGINE=$FAKES/gpu_engine
SHIM=$(realpath -m "$FBT_BUILD/libferrum_cupti.so")
# The double to use: libcupti.so.13, libcupti.so.12 or libcupti.so.11.8.
CUPTI=libcupti.so.13
truth=$TMP/truth.gpu
unset CUDA_INJECTION64_PATH FERRUM_CUPTI_LIBRARY FERRUM_CUPTI_EARLY FERRUM_CUPTI_ANY_VERSION "${!FAKE_CU@}"


# start_gpu [NAME=VALUE…] ENGINE-OPTION…: the engine waits for its go; the shim's calls of CUPTI are
# logged in $TMP/calls
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

# has_figures COUNT: that many steps have GPU figures by now
# shellcheck disable=SC2317
has_figures()
{
	[ "$(grep -c '"event":"gpu_prof"' "$OUT.profile" 2>/dev/null)" -ge "$1" ] 2>/dev/null
}

is_done()
{
	[ -e "$truth.done" ]
}

# Waits until the shim has answered the last wish to be armed, at most 60 s.
await_armed()
{
	"$FBT_BUILD/tests/gpu_arm" --wait "$ENGINE" 60
}

# attach_gpu TOOL-OPTION…: attaches the tool to the engine's steps, and waits until the shim is
# armed
attach_gpu()
{
	rm -f "${OUT:?}".*
	run_tool -p "$ENGINE" --step gpu_engine_step --record "$OUT.capture" "$@"
	wait_attached "$TOOL" || { cat "$OUT.err" && not_ok "the tool attaches ($*)"; }
	await_armed || not_ok 'the shim is armed'
}

# trace_gpu 'ENGINE OPTIONS' TOOL-OPTION…: from the go until the engine has made its steps and all
# of its records can have come. A script uses commas instead of blanks.
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

# The engine must end normally. Its doubles end it if a rule is broken.
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

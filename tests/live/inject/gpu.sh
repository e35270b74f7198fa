# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What the live tests of --gpu=inject on the fake CUDA engine share, beside lib.sh and gpu/lib.sh,
# which are sourced first.
[ "$(uname -m)" = x86_64 ] || { echo 'SKIP --gpu=inject is for x86-64' && exit 77; }
script=k50,h20,z100,s
put='shim injected through'

# start_plain ENGINE-OPTION…: starts the engine without CUDA_INJECTION64_PATH. It waits for its go
# on an unnamed pipe: a named one could be mistaken for a file.
start_plain()
{
	rm -f "$truth" "$truth.done" "$TMP/calls" "$TMP/go"
	mkfifo "$TMP/go" "$TMP/ready"
	env FERRUM_CUPTI_LIBRARY="$FAKES/$CUPTI" FAKE_CUPTI_LOG="$TMP/calls" "$GPU_ENGINE" --wait \
		--truth "$truth" "$@" < <(exec cat "$TMP/go") >"$TMP/ready" 2>"$TMP/engine.err" 7>&- &
	ENGINE=$!
	exec 7>"$TMP/go"
	read -r _ <"$TMP/ready"
	rm "$TMP/ready"
}

# shims PID: number of copies of the shim that the process has mapped
shims()
{
	grep -cE 'r-xp .*libferrum(_cupti)?\.so' "/proc/$1/maps"
}

# shellcheck disable=SC2317
has_shim()
{
	[ "$(shims "$1")" -gt 0 ]
}

# shellcheck disable=SC2317
says()
{
	grep -q -- "$1" "$OUT.err"
}

# armings COUNT: CUPTI was asked to collect that many times
# shellcheck disable=SC2317
armings()
{
	[ -e "$TMP/calls" ] && [ "$(grep -c 'cuptiActivityEnable 10 = 0' "$TMP/calls")" -ge "$1" ]
}

# attach_inject COUNT TOOL-OPTION…: attaches the tool to the engine's steps, and waits until CUPTI
# was armed that often
attach_inject()
{
	local count=$1

	shift
	rm -f "${OUT:?}".*
	run_tool -p "$ENGINE" --step gpu_engine_step --record "$OUT.capture" --gpu=inject "$@"
	wait_attached "$TOOL" || { cat "$OUT.err" && not_ok "the tool attaches ($*)"; }
	{ wait_for 60 armings "$count" && await_armed; } ||
		{ cat "$OUT.err" && not_ok 'the shim is armed'; }
}

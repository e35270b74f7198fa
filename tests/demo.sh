#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Five seconds of the embedded engine under trace. Leaves demo_trace.json and demo_profile.jsonl.
set -u
cd "$(dirname "$0")/.." || exit 1

: "${FBT_BUILD:=build/$(uname -m | sed 's/aarch64/arm64/')-gcc}"
: "${FBT:=$FBT_BUILD/ferrum-bpftrace}"
: "${FBT_ENGINE:=$FBT_BUILD/tests/engine}"
sudo=
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null || { echo 'demo: tracing needs root, and there is no sudo' >&2 && exit 1; }
	sudo=sudo
fi

# Every 40th step waits 12 ms for a lock, as in an engine whose scheduler holds it up.
"$FBT_ENGINE" --steps 0 --compute-us 4000 --sleep-us 500 --calls 6,20,40,16,12,8 --noise 2 \
	--noise-us 2000 --slow-futex-every 40 --slow-us 12000 &
engine=$!
trap 'kill $engine 2>/dev/null' EXIT
rm -f demo_trace.json demo_profile.jsonl
echo "\$ ${sudo:+sudo }ferrum-bpftrace -p $engine --step engine_step -d 5"
$sudo "$FBT" -p $engine --step engine_step --step-arg 'n_tokens=s32(arg1)' -d 5 \
	--trace demo_trace.json --profile demo_profile.jsonl || exit 1
echo
"$FBT" validate --require-events step_prof,syscall_prof,window_prof demo_profile.jsonl &&
	"$FBT" validate demo_trace.json || exit 1
echo 'Open demo_trace.json in https://ui.perfetto.dev or chrome://tracing.'

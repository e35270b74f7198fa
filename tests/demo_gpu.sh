#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Five seconds of an engine on a double of CUDA under trace, with GPU records: the example in
# docs/gpu.md. Leaves demo_trace.json, as torch.profiler writes it, and demo_profile.jsonl.
set -u
cd "$(dirname "$0")/.." || exit 1

: "${FBT_BUILD:=build/$(uname -m | sed 's/aarch64/arm64/')-gcc}"
: "${FBT:=$FBT_BUILD/ferrum-bpftrace}"
sudo=
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null || { echo 'demo: tracing needs root, and there is no sudo' >&2 && exit 1; }
	sudo=sudo
fi

# A copy, kernels, waits for them, and a lock that comes only after 1.1 ms.
LD_LIBRARY_PATH=$FBT_BUILD/tests CUDA_INJECTION64_PATH=$FBT_BUILD/libferrum_cupti.so \
	FERRUM_CUPTI_LIBRARY=$FBT_BUILD/tests/libcupti.so.13 "$FBT_BUILD/tests/gpu_engine" \
	--steps 0 --script 'h50 k400 S5 f1100 u400 k600 k500 d20 S5' &
engine=$!
trap 'kill $engine 2>/dev/null' EXIT
rm -f demo_trace.json demo_profile.jsonl
echo "\$ ${sudo:+sudo }ferrum-bpftrace -p $engine --step gpu_engine_step -d 5"
$sudo "$FBT" -p $engine --step gpu_engine_step -d 5 --trace-format kineto \
	--trace demo_trace.json --profile demo_profile.jsonl 2>&1 || exit 1
echo
"$FBT" validate --require-events step_prof,gpu_prof,window_prof demo_profile.jsonl &&
	"$FBT" validate demo_trace.json || exit 1

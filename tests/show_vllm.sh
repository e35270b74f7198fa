#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# vLLM under three concurrent requests, traced for ten seconds by the PID of its API server, while its
# worker collects garbage or has to wait for the GIL in a step now and then: the example in docs/python.md.
# Leaves vllm_trace.json and vllm_profile.jsonl.
. "$(dirname "$0")/live/lib.sh"

# shellcheck source=tests/e2e/vllm/lib.sh
. tests/e2e/vllm/lib.sh

mkdir "$TMP/stalls"
# shellcheck disable=SC2119 # without options of its own
FBT_STALLS=$TMP/stalls PYTHONPATH=$PWD/tests/e2e/vllm/stalls start_server
for _ in 1 2 3; do ask 200 until "$TMP/end" & done >/dev/null 2>&1
# The first steps of a server are of their own kind.
until [ -e "$TMP/stalls/worker" ]; do sleep 0.1; done
sleep 2
# Only small steps take an order: not more than these requests have.
while sleep 2; do
	for stall in gc gil; do
		echo -n $stall >"$TMP/stalls/new" && mv "$TMP/stalls/new" "$TMP/stalls/order"
		sleep 2
	done
done &
rm -f vllm_trace.json vllm_profile.jsonl
echo "\$ sudo ferrum-bpftrace -p $PID -d 10 --python=inject"
"$FBT" -p "$PID" -d 10 --python=inject --trace vllm_trace.json --profile vllm_profile.jsonl 2>&1
touch "$TMP/end"

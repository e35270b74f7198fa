#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# llama.cpp under four concurrent requests, traced for ten seconds, while another thread sometimes
# holds a lock of it for 300 ms: the example in docs/outputs.md. Leaves llama_trace.json and
# llama_profile.jsonl.
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/live/lib.sh"
HERE=$PWD/tests/e2e
# shellcheck source=tests/e2e/lib/engine.sh
. "$HERE/lib/engine.sh"

install_engine
start_server_with_lock 1
node "$HERE/load.mjs" "$PORT" 100000 4 24 >/dev/null 2>&1 &
sleep 1
while sleep 2; do printf x >&8; done &
rm -f llama_trace.json llama_profile.jsonl
echo "\$ sudo ferrum-bpftrace -p $PID -d 10"
"$FBT" -p "$PID" -d 10 --trace llama_trace.json --profile llama_profile.jsonl 2>&1

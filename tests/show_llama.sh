#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# llama.cpp under four concurrent requests, traced for ten seconds: the example in the README. Leaves
# llama_trace.json and llama_profile.jsonl.
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/live/lib.sh"
HERE=$PWD/tests/e2e
# shellcheck source=tests/e2e/lib/engine.sh
. "$HERE/lib/engine.sh"

install_engine
start_server 1
node "$HERE/load.mjs" "$PORT" 100000 4 24 >/dev/null 2>&1 &
sleep 1
rm -f llama_trace.json llama_profile.jsonl
echo "\$ sudo ferrum-bpftrace -p $PID -d 10"
"$FBT" -q -p "$PID" -d 10 --trace llama_trace.json --profile llama_profile.jsonl

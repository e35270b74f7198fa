#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A real vLLM on the CPU with nothing wrong, under the load of three clients: of 1,000 steps of its worker at
# most one is named as slow without the kernel's own counters of the worker's threads confirming it.
# vllm/clocks/sitecustomize.py has the worker keep those of its own thread.
. "$(dirname "$0")/../live/lib.sh"
# shellcheck source=tests/e2e/vllm/lib.sh
. tests/e2e/vllm/lib.sh

PASSES=5000
pass='"event":"step_prof".*"kind":"GPUModelRunner.execute_model"'
COUNTERS=

# shellcheck disable=SC2317,SC2329 # called by name
undo()
{
	touch "$TMP/enough"
	[ -z "$COUNTERS" ] || kill "$COUNTERS" 2>/dev/null
	kill -- -"$PID" 2>/dev/null
}

export FBT_CLOCKS=$TMP/clocks PYTHONPATH=$PWD/tests/e2e/vllm/clocks
# shellcheck disable=SC2119 # no options besides
start_server
unset FBT_CLOCKS PYTHONPATH
ask 4 1 >"$TMP/first"
run_tool -p "$PID" --python=inject
wait_attached "$TOOL" || { sed 's/^/# /' "$OUT.err" && not_ok 'the tool attaches' && finish; }
clients=()
for _ in 1 2 3; do
	ask 100 until "$TMP/enough" >/dev/null &
	clients+=($!)
done
await_lines 1 "$pass" "$OUT.profile" || not_ok 'the worker has steps'
worker=$(grep -m 1 "$pass" "$OUT.profile" | grep -oE '"pid":[0-9]+' | cut -d: -f2)
python3 tests/e2e/trouble/counters.py "$worker" "$TMP/counters" /none &
COUNTERS=$!
# Looked at seldom, for that takes CPU time.
for _ in $(seq 150); do
	[ "$(grep -c "$pass" "$OUT.profile")" -lt $((PASSES + 500)) ] || break
	sleep 2
done
kill $COUNTERS
wait $COUNTERS
COUNTERS=
touch "$TMP/enough"
wait "${clients[@]}"
is 'all requests are answered' $? 0
stop_tool
python3 tests/e2e/vllm/healthy.py "$OUT.profile" "$TMP/clocks" "$TMP/counters" $PASSES || FAILED=1
kill -TERM "$PID"
wait "$PID"
is 'vLLM ends as it wants' $? 0
finish

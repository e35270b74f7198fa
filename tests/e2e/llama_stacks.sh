#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The stacks of llama.cpp's slow calls, under four concurrent requests and with a lock that another
# thread holds every second: each is what libdwfl makes of the same bytes, and the flame graph has the
# functions of llama.cpp. TEST_LONG=1: for five minutes.
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/../live/lib.sh"
HERE=$PWD/tests/e2e
# shellcheck source=tests/e2e/lib/engine.sh
. "$HERE/lib/engine.sh"

checker=$FBT_BUILD/tests/live_dwfl
[ -x "$checker" ] || skip 'no libdw-dev here'
FBT=$(realpath "$checker")
export DWFL_LOG=$TMP/dwfl
seconds=$(at_length 10 300)

install_engine
start_server_with_lock 1
node "$HERE/load.mjs" "$PORT" 1000000 4 24 >/dev/null 2>&1 &
sleep 1
while sleep 1; do printf x >&8; done &
run_tool -p "$PID" -d "$seconds" --folded "$OUT.folded" --record "$OUT.capture"
end_tool
python3 tests/live/dwfl/agree.py llama.cpp $((seconds / 2)) "$DWFL_LOG" || FAILED=1
has 'the lock is where llama.cpp takes it' "$OUT.folded" \
	'^llama_decode;llama_context::decode;.*llama_context::graph_compute;.*ggml_backend_sched_graph_compute_async;.*\[futex\] [0-9]+$'
is 'no caller is unknown' "$(grep -c 'caller not found' "$OUT.folded")" 0
finish

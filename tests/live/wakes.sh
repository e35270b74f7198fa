#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Who ended a wait of a step, and what that thread did meanwhile, compared with the thread's own
# clocks.
. "$(dirname "$0")/lib.sh"

rounds=4
[ -z "${TEST_LONG:-}" ] || rounds=40
start_program wakes $rounds
attach --step waiting_step --record "$OUT.capture"
go
wait "$ENGINE"
end_tool 0 'the tool ends with 0'
"$FBT_BUILD/tests/live_capture_json" "$OUT.capture" >"$OUT.json" || not_ok 'a capture'
python3 tests/live/wakes.py "$TMP/truth.json" "$OUT.json" "$(uname -m)" || FAILED=1
holds 'the capture is valid' "$FBT" --replay "$OUT.capture" --report none --trace none --profile none
finish

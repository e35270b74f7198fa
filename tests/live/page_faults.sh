#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The time of page faults, compared with a program that times itself and asks the kernel for their
# number.
. "$(dirname "$0")/lib.sh"

start_program page_faults "$TMP/pages"
attach --step faults_step --detail steps --rate-guard 0 --record "$OUT.capture"
go
wait "$ENGINE"
stop_tool
"$FBT_BUILD/tests/live_capture_json" "$OUT.capture" >"$OUT.json" || not_ok 'a capture'
python3 tests/live/page_faults.py "$TMP/truth.json" "$OUT.json" "$OUT.profile" || FAILED=1
finish

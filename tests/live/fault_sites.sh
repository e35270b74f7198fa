#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Where steps have their page faults, counted: compared with a program that asks the kernel for their
# number, and knows which memory it touched in which function.
. "$(dirname "$0")/lib.sh"

start_program page_faults "$TMP/pages"
attach --step faults_step --explain always --rate-guard 0 --record "$OUT.capture" --escalate-now
go
wait "$ENGINE"
stop_tool
"$FBT_BUILD/tests/live_capture_json" "$OUT.capture" >"$OUT.json" || not_ok 'a capture'
python3 tests/live/fault_sites.py "$TMP/truth.json" "$OUT.json" "$TMP/pages" "$OUT.profile" || FAILED=1
finish

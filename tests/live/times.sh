#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Where the time of steps went, compared with a program that asks the kernel itself.
. "$(dirname "$0")/lib.sh"

mkdir "$TMP/folder"
start_program times "$TMP/folder"
attach --step times_step --detail steps --record "$OUT.capture"
go
wait "$ENGINE"
stop_tool
"$FBT_BUILD/tests/live_capture_json" "$OUT.capture" >"$OUT.json" || not_ok 'a capture'
python3 tests/live/times.py "$TMP/truth.json" "$OUT.json" || FAILED=1
finish

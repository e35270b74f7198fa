#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What other threads of the process did during steps, compared with a program that asks the kernel
# itself.
. "$(dirname "$0")/lib.sh"

start_program team
attach --step team_step --detail steps --record "$OUT.capture"
go
wait "$ENGINE"
stop_tool
"$FBT_BUILD/tests/live_capture_json" "$OUT.capture" >"$OUT.json" || not_ok 'a capture'
python3 tests/live/team.py "$TMP/truth.json" "$OUT.json" "$OUT.report" "$OUT.profile" "$OUT.trace" ||
	FAILED=1
finish

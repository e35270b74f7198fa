#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What other threads of the process did during steps, compared with a program that asks the kernel
# itself.
. "$(dirname "$0")/lib.sh"

# check_team SLEEPERS
check_team()
{
	start_program team "$1"
	attach --step team_step --detail steps --record "$OUT.capture"
	go
	wait "$ENGINE"
	stop_tool
	"$FBT_BUILD/tests/live_capture_json" "$OUT.capture" >"$OUT.json" || not_ok 'a capture'
	python3 tests/live/team.py "$TMP/truth.json" "$OUT.json" "$OUT.report" "$OUT.profile" "$OUT.trace" ||
		FAILED=1
	rm "$OUT".*
}

check_team 0
# As in an engine with a thread for everything.
check_team 300
finish

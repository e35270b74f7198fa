#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Arguments, files, waits and page faults of steps, compared with the account of a program.
. "$(dirname "$0")/lib.sh"

for detail in steps escalated all; do
	rm -rf "$TMP/folder" "${OUT:?}".*
	mkdir "$TMP/folder"
	start_program args "$TMP/folder"
	attach --step args_step --detail "$detail" --record "$OUT.capture"
	go
	# The program's last step never ends.
	for _ in $(seq 600); do
		tail -n 1 "$TMP/truth.json" | grep -q '\]}$' &&
			grep -q '^State:.*sleeping' "/proc/$ENGINE/status" && break
		sleep 0.05
	done
	stop_tool
	kill -9 "$ENGINE"
	wait "$ENGINE"
	if ! "$FBT_BUILD/tests/live_capture_json" "$OUT.capture" >"$OUT.json"; then
		not_ok "$detail: a capture"
		continue
	fi
	python3 tests/live/args.py "$TMP/truth.json" "$OUT.json" "$detail" >"$OUT.facts" || FAILED=1
	sed "s/ok - /ok - $detail: /" "$OUT.facts"
	holds "$detail: the capture is valid" "$FBT" --replay "$OUT.capture" --report none \
		--trace none --profile none
done
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Python functions on the stacks of slow calls of Python steps, read while the calls were open.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/python/lib.sh
. tests/live/python/lib.sh

while read -r version path; do
	rm -f "${OUT:?}".*
	start_waiting env LD_PRELOAD="$LIBRARY" "$path" tests/live/python/slow.py "$TMP/truth.json" 400
	run_tool -p "$ENGINE" --step 'py:__main__:Engine.step' --record "$OUT.fbt" --hang 500ms
	wait_attached "$TOOL"
	go
	wait "$ENGINE"
	end_tool
	"$FBT_BUILD/tests/live_capture_json" "$OUT.fbt" >"$OUT.json" || not_ok 'a capture'
	"$FBT" --replay "$OUT.fbt" >"$TMP/said" 2>&1
	ask_python tests/live/python_looks.py "$version" "$TMP/truth.json" "$OUT.json" "$OUT.profile" "$TMP/said" \
		>"$TMP/facts"
	cat "$TMP/facts"
	! grep -q '^not ok' "$TMP/facts" || FAILED=1
	fact "$version: nothing else is harmed" 'R["lost"]["total"] == 0 and len(S) == 400'
done < <(interpreters)
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Python functions on the stacks of slow calls of Python steps, of the GIL's holder and of a hang, read while
# these were open.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/python/lib.sh
. tests/live/python/lib.sh

# trace_slow NAME COMMAND…: one run; in a PID namespace of its own COMMAND is unshare
trace_slow()
{
	local name=$1 outer

	shift
	rm -f "${OUT:?}".*
	start_waiting env LD_PRELOAD="$LIBRARY" "$@" tests/live/python/slow.py "$TMP/truth.json" 400
	outer=$ENGINE
	[ "$1" != unshare ] || ENGINE=$(pgrep -P "$outer")
	run_tool -p "$ENGINE" --step 'py:__main__:Engine.step' --record "$OUT.fbt" --hang 500ms
	wait_attached "$TOOL"
	go
	wait "$outer"
	end_tool
	"$FBT_BUILD/tests/live_capture_json" "$OUT.fbt" >"$OUT.json" || not_ok 'a capture'
	"$FBT" --replay "$OUT.fbt" >"$TMP/said" 2>&1
	ask_python tests/live/python_looks.py "$name" "$TMP/truth.json" "$OUT.json" "$OUT.profile" "$TMP/said" \
		"$ENGINE" >"$TMP/facts"
	cat "$TMP/facts"
	# It may have ended early.
	grep -q 'a replay says the same' "$TMP/facts" && ! grep -q '^not ok' "$TMP/facts" || FAILED=1
	fact "$name: nothing else is harmed" 'lost == 0 and len(S) == 400'
}

while read -r version path; do
	trace_slow "$version" "$path"
done < <(interpreters)
! unshare --fork --pid --mount-proc true 2>/dev/null ||
	trace_slow 'another namespace' unshare --fork --pid --mount-proc /usr/bin/python3
finish

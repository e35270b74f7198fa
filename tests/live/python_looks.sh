#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Python functions on the stacks of slow calls of Python steps, read while the calls were open.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/python/lib.sh
. tests/live/python/lib.sh

while read -r version path; do
	rm -f "${OUT:?}".*
	start_waiting env LD_PRELOAD="$LIBRARY" "$path" tests/live/python/slow.py "$TMP/truth.json" 200
	run_tool -p "$ENGINE" --step 'py:__main__:Engine.step' --record "$OUT.fbt"
	wait_attached "$TOOL"
	go
	wait "$ENGINE"
	end_tool
	"$FBT" --replay "$OUT.fbt" 2>&1 | head -60 | sed "s/^/# /"; grep "#" "$OUT.err" | head -20
done < <(interpreters)
finish

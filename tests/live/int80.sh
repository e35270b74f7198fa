#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Calls that a 64-bit program makes through int 0x80 are not counted as the 64-bit calls of the same
# number.
. "$(dirname "$0")/lib.sh"

[ "$(uname -m)" = x86_64 ] || { echo 'SKIP int 0x80 is x86' && exit 77; }
if ! "$FBT_BUILD/tests/live_int80" "$TMP/truth.json" </dev/null >"$TMP/out" 2>&1; then
	echo 'SKIP the kernel has no IA32 emulation'
	exit 77
fi
for detail in steps all; do
	rm -f "${OUT:?}".*
	start_program int80
	run_tool -p "$ENGINE" --step my_step --detail $detail --record "$OUT.capture"
	wait_attached "$TOOL"
	go
	wait "$ENGINE"
	end_tool
	fact "$detail: they are in the last row of the table" \
		'[(r["calls"], r["category"]) for r in R["processes"][0]["syscalls"] if r["nr"] == 511] ==
			[(T["foreign"], "other")]'
	fact "$detail: and in no other" '"writev" not in table and table["getppid"] == T["getppid"]'
	fact "$detail: in a step their category is other" \
		'len(S) == T["steps"] and all(s["by"]["other"]["calls"] == s["calls"] == 7 for s in S)'
done
fact 'all: their records have no name of another call' \
	'len([x for x in X if x["cat"] == "syscall" and x["name"] == "writev"]) == 0 and
		len([x for x in X if x["cat"] == "syscall" and x["name"] == "getppid"]) == T["getppid"]'
"$FBT_BUILD/tests/live_capture_json" "$OUT.capture" >"$OUT.json"
# The arguments of such calls are unknown: their registers are those of 32-bit calls. All other
# calls of steps are complete.
is 'all: what they were asked is not told' "$(python3 -c '
import json, sys
calls = [call for call in json.load(open(sys.argv[1])) if call["type"] == "call"]
print(sorted({(call["flags"], *call["args"], call["file"]) for call in calls if call["nr"] == 511}),
      len([call for call in calls if call["nr"] != 511 and call["flags"] & 4]))
' "$OUT.json")" '[(0, 0, 0, 0)] 40'
finish

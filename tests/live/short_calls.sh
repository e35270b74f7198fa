#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Which function makes the many short calls of a slow step: the stacks of some of them are copied, each
# time that they have taken twice as long.
. "$(dirname "$0")/lib.sh"

start_program short_calls "$TMP/file"
run_tool -p "$ENGINE" --step my_step --record "$OUT.capture"
wait_attached "$TOOL"
go
wait "$ENGINE"
end_tool
fact 'every step is seen' 'len(S) == T["steps"]'

# named CAUSES FUNCTION: of all escalated steps with one of these causes
named()
{
	fact "$1: the function is named" \
		"[g for g in G.values() if g['cause'] in '$1'.split()] and
			{g.get('cause_stack') for g in G.values() if g['cause'] in '$1'.split()} == {'$2 <- my_step'}"
}
named allocation_churn map_pages
named tiny_writes write_bytes
named file_io ask_often
has 'the alert says where' "$OUT.err" ' in map_pages <- my_step'
fact 'a few stacks of each slow step are copied' "T['slow'] <= R['stacks'] <= 6 * T['slow']"
"$FBT" --replay "$OUT.capture" -o "$TMP/again" >/dev/null 2>&1
is 'a replay has the same stacks' "$(grep -o '"cause_stack":"[^"]*"' "$TMP/again.jsonl")" \
	"$(grep -o '"cause_stack":"[^"]*"' "$OUT.profile")"
finish

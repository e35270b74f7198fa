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

# named WAY CAUSES FUNCTION: of all steps that the program made slow in that way, but for those whose
# thread the host of a guest kept off its CPU, perhaps in a call
named()
{
	local slow="[n for n in G if n % 40 == 0 and n > 240 and n // 40 % 3 == (7 + $1) % 3 and
		S[n - 1]['us']['off_cpu'] * 8 < S[n - 1]['us']['total']]"

	fact "$2: the function is named" \
		"{(G[n]['cause'] in '$2'.split(), G[n].get('cause_stack')) for n in $slow} == {(True, '$3 <- my_step')}"
}
named 0 allocation_churn map_pages
named 1 tiny_writes write_bytes
named 2 file_io ask_often
has 'the alert says where' "$OUT.err" ' in map_pages <- my_step'
fact 'a few stacks of each slow step are copied' "T['slow'] <= R['stacks'] <= 6 * T['slow']"
"$FBT" --replay "$OUT.capture" -o "$TMP/again" >/dev/null 2>&1
is 'a replay has the same stacks' "$(grep -o '"cause_stack":"[^"]*"' "$TMP/again.jsonl")" \
	"$(grep -o '"cause_stack":"[^"]*"' "$OUT.profile")"
finish

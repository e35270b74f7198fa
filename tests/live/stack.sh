#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Stack positions of steps: after an unwind the next step may begin deeper, and a function that ends
# with a jump into another step function forms one step with it.
. "$(dirname "$0")/lib.sh"

start_program deeper
run_tool -p "$ENGINE" --step my_step
wait_attached "$TOOL"
go
wait "$ENGINE"
end_tool
fact 'unwound, then deeper: every step is seen' 'len(S) == T["steps"] == 111'
fact 'unwound, then deeper: only the one that longjmp left is unwound' \
	'[i for i, s in enumerate(S) if s["end"] == "unwound"] == [10] and
		len([s for s in S if s["end"] == "return"]) == T["steps"] - T["unwound"]'
fact 'unwound, then deeper: each has its own calls' 'all(s["by"]["other"]["calls"] == 1 for s in S if s["end"] == "return")'
fact 'unwound, then deeper: nothing lost' 'W["incomplete_steps"] == lost == 0'

program=$FBT_BUILD/tests/live_tail_call
missed=0
[ "$(uname -m)" = x86_64 ] || missed="next(k['untraced_steps'] for k in R['kinds'] if k['name'] == 'my_decode')"
holds 'tail call: it is a jump' \
	grep -qE '\s(jmp|b)\s.*<my_process>' <(objdump -d --disassemble=my_decode "$program")
while read -r first second deeper; do
	order="$first first${deeper:+, deeper}"
	rm -f "${OUT:?}".*
	start_program tail_call ${deeper:+"$deeper"}
	run_tool -p "$ENGINE" --step "$first" --step "$second"
	wait_attached "$TOOL"
	go
	wait "$ENGINE"
	end_tool
	# On x86-64 the caller is found in the code before it calls.
	fact "tail call ($order): each call is one step, of the function that was called" \
		"len([s for s in S if s['kind'] == 'my_decode']) == T['my_decode'] - $missed > 20"
	fact "tail call ($order): and no part of one is a step" \
		"len([s for s in S if s['kind'] == 'my_process' and s['complete']]) == T['my_process']"
	[ "$missed" != 0 ] || fact "tail call ($order): none was missed" \
		'sum(k.get("untraced_steps", 0) for k in R["kinds"]) == 0'
	fact "tail call ($order): with the calls of both functions" \
		'{k: sorted({s["calls"] for s in S if s["kind"] == k} & set(T["calls"][k])) for k in T["calls"]} == T["calls"]'
	# Linux 7 skips programs, and says how often: so many calls may be missing. Only a part of a call, which is marked,
	# may be of a function that nobody called.
	fact "tail call ($order): and with no other number of calls" \
		'sum(min(n for n in T["calls"][s["kind"]] if n > s["calls"]) - s["calls"] for s in S
			if (s["complete"] or s["kind"] in T["calls"]) and s["calls"] not in T["calls"][s["kind"]]) <=
			R.get("unseen_calls", 0)'
	fact "tail call ($order): all returned" "all(s['end'] == 'return' for s in S)"
	fact "tail call ($order): one that may be a part of a call that was missed is marked" \
		"sum(not s['complete'] for s in S) == $missed"
done <<END
my_decode my_process
my_process my_decode
my_decode my_process deeper
END
finish

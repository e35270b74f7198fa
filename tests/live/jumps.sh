#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Functions that end in jumps, called from places where no probe can end their steps: from code in
# no file, and from a call site that other calls pass too often. The tool follows their jumps to the
# returns.
. "$(dirname "$0")/lib.sh"

[ "$(uname -m)" = x86_64 ] || { echo 'SKIP jumps are followed on x86-64 only' && exit 77; }

follow=
# trace_steps 'PROGRAM ARGUMENT…' NAME…: one run from the go to the end of both
trace_steps()
{
	local program=$1 options=()

	shift
	for name; do options+=(--step "$name"); done
	rm -f "${OUT:?}".*
	# shellcheck disable=SC2086
	start_program $program
	# shellcheck disable=SC2086
	run_tool -p "$ENGINE" "${calm[@]}" "${options[@]}" $follow
	wait_attached "$TOOL"
	go
	wait "$ENGINE"
	end_tool
}

row()
{
	echo "next(k for k in R['kinds'] if k['name'] == '$1')"
}

steps()
{
	echo "[s for s in S if s['kind'] == '$1' and s['end'] == '${2:-return}']"
}

# The engine's own times of its last calls, by its clock within each call and around it. The
# profile's times are whole microseconds. Steps of the first half may be missing; where the tool had
# no CPU for so long that steps are lost, any but the last ones.
in_range()
{
	echo "(lambda s: all(t[0] - 1 <= s['us']['total'] <= t[1] for s, t in zip(s, T['took_us'][-len(s):])))($(steps "$1")[-(100 if R['lost']['steps'] else len(S) // 2):])"
}

# expect_followed FROM NAME CALLS EXITS [TIMES]: all calls are steps, or counted as lost, except the
# first ones, which are counted (TIMES each, for a function that begins that often within a call,
# but for the call in the middle of which the tracing begins). Each step is as long as its call.
expect_followed()
{
	fact "$1 $2: every call is a step, or counted as not traced" \
		"len($(steps "$2")) == len(S) and
		len(S) + R['lost']['steps'] + $(row "$2")['untraced_steps'] // ${5:-1} == $3 == T['calls']"
	fact "$1 $2: its jumps are followed" "len(S) > 100"
	fact "$1 $2: each step is as long as its call" "$(in_range "$2")"
	fact "$1 $2: they end at the returns of what it jumps to" \
		"(lambda k: k['call_sites'] == 0 and k['exits'] == $4)($(row "$2"))"
}

program=$FBT_BUILD/tests/live_jumps
# Several, unless the compiler merges them.
exits=$(objdump -d --disassemble=leaf "$program" | grep -cE '\sret')
for name in by_jump by_plt by_got by_two by_branch by_register by_memory by_even by_deep by_throw by_hot; do
	holds "$name ends in a jump" grep -qE '\sjmp\s' <(objdump -d --disassemble="$name" "$program")
done

while read -r from name calls places times; do
	trace_steps "jumps $from $name $calls" "$name"
	expect_followed "$from" "$name" "$calls" "$places" "$times"
done <<END
nowhere by_jump 3000 $exits
nowhere by_plt 2000 1
nowhere by_got 2000 1
nowhere by_two 3000 $exits
nowhere by_branch 3000 $exits
nowhere by_register 3000 $((exits + 1))
nowhere by_memory 3000 $((exits + 1))
nowhere by_even 3000 $exits 2
shared by_two 15000 $exits
shared by_memory 15000 $((exits + 1))
END

# The function that it jumps to calls no other, but it calls that function and itself.
trace_steps 'jumps nowhere by_deep 300 -1 5000' by_deep
fact 'recursion: every outer call is a step, or counted as not traced, as are those within' \
	"100 < len($(steps by_deep)) == len(S) <= 300 <= len(S) + $(row by_deep)['untraced_steps']"
fact 'recursion: each step is as long as its call' "$(in_range by_deep)"

trace_steps 'jumps nowhere by_throw 3001' by_throw
fact 'longjmp: those that it left are marked' \
	"abs(len($(steps by_throw unwound)) - len(S) / 3) <= 2 and len(S) > 100"
fact 'longjmp: the others have returned' "len($(steps by_throw unwound)) + len($(steps by_throw)) == len(S)"
fact 'longjmp: none of these is short' "min(s['us']['total'] for s in $(steps by_throw)) >= 20"

# The first calls of the second function are not traced, because its stub leads into the linker
# until then.
trace_steps 'jumps nowhere by_late 3000' by_late
fact 'bound later: every call is a step, or counted as not traced' \
	"len($(steps by_late)) == len(S) and len(S) + $(row by_late)['untraced_steps'] == 3000"
fact 'bound later: calls of both are steps' \
	"sum(s['us']['total'] >= T['sleep_us'] for s in S) > 10 and sum(s['us']['total'] < T['sleep_us'] for s in S) > 10"
fact 'bound later: each step is as long as its call' "$(in_range by_late)"

follow=-f
trace_steps 'jumps forked by_memory 2000' by_memory
follow=
fact 'children: every call of the parent is a step, or counted as not traced' \
	"len([s for s in S if s['pid'] == $ENGINE]) + $(row by_memory)['untraced_steps'] == 2000 and len(S) > 100"
fact 'children: each call of theirs is a step' "len([s for s in S if s['pid'] != $ENGINE]) == 20"
fact 'children: and is as long' "all(s['us']['total'] >= 20 and s['end'] == 'return' for s in S)"

# Both are step functions, and the call of the second is a part of the first one's step.
trace_steps 'jumps nowhere by_two 3000' by_two by_jump
fact 'into a step function: every call is a step, or counted as not traced' \
	"len($(steps by_two)) + $(row by_two)['untraced_steps'] == 3000 and len($(steps by_two)) > 100"
fact 'into a step function: that is none of its own, or marked' \
	"all(not s['complete'] for s in S if s['kind'] == 'by_jump')"
fact 'into a step function: none is short' "min(s['us']['total'] for s in $(steps by_two)) >= 20"

# Others call the function that it jumps to.
trace_steps 'jumps nowhere by_hot 2000 1000' by_hot
expect_followed 'sometimes called by others:' by_hot 2000 1
trace_steps 'jumps nowhere by_hot 10000 0' by_hot
fact 'all the time: its steps are counted as not traced, but for the first ones' \
	"len(S) + $(row by_hot)['untraced_steps'] == 10000 and len(S) < 5000"
fact 'all the time: no return is probed any more' "$(row by_hot)['exits'] == 0"
fact 'all the time: a line says so, and what to name' \
	'len([l for l in lines if "others call what it jumps to too often" in l and "Name brief by --step" in l]) == 1'
finish

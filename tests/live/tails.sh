#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A step is the whole call, whatever jumps it ends in, and the report says how its end is found.
. "$(dirname "$0")/lib.sh"

# start_steps 'PROGRAM ARGUMENT…' NAME|OPTION…: both run, from the go on
start_steps()
{
	local program=$1 options=()

	shift
	for name; do
		case $name in
		-*) options+=("$name") ;;
		*) options+=(--step "$name") ;;
		esac
	done
	rm -f "${OUT:?}".*
	# shellcheck disable=SC2086
	start_program $program
	run_tool -p "$ENGINE" "${options[@]}"
	wait_attached "$TOOL"
	go
}

end_steps()
{
	wait "$ENGINE"
	end_tool
}

# trace_steps 'PROGRAM ARGUMENT…' NAME…: one run from the go to the end of both
trace_steps()
{
	start_steps "$@"
	end_steps
}

# Expressions on the steps of a function: their lengths, and the function's row of the report.
row()
{
	echo "next(k for k in R['kinds'] if k['name'] == '$1')"
}

lengths()
{
	echo "[s['us']['total'] for s in S if s['kind'] == '$1' and s['end'] == '${2:-return}']"
}

# expect_whole NAME CALLS [TIMES]: all calls are steps except the first ones, which are counted
# (TIMES each, for a function that begins that often within a call). No step is too short or too
# long.
expect_whole()
{
	fact "$1: every call is a step, or counted as not traced" \
		"len($(lengths "$1")) + $(row "$1")['untraced_steps'] / ${3:-1} == $2"
	fact "$1: the tool learns where they return to" "len($(lengths "$1")) > 10"
	fact "$1: none is shorter than its sleep" "min($(lengths "$1")) >= T['sleep_us']"
	# By the engine's clock, read around each call that comes from the engine itself.
	[ "$2" != 120 ] || fact "$1: together they are no longer than the engine's calls" \
		"sum($(lengths "$1")) <= sum(sorted(T['took_us']['$1'])[-len($(lengths "$1")):])"
	fact "$1: they end where the calls return" \
		"(lambda k: k['call_sites'] >= 1 and k['exits'] == 0)($(row "$1"))"
}

program=$FBT_BUILD/tests/live_tails
for name in by_jump by_plt by_got by_two by_register by_chain by_branch by_throw; do
	holds "$name ends in a jump" grep -qE '\s(jmp|br?)\s' <(objdump -d --disassemble="$name" "$program")
done
# Each function alone, so that each call is a step of its own. by_two calls by_jump too.
while read -r name calls times others pointers; do
	others=${others#-} others=${others/,/ }
	trace_steps tails "$name"
	expect_whole "$name" "$calls" "$times"
	fact "$name: the report says what it jumps to" \
		"(lambda k: sorted(k['tail_targets']) == '$others'.split() and k['tail_pointers'] == ${pointers:-0})($(row "$name"))"
done <<END
by_jump 240 1 sleeps
by_plt 120 1 usleep
by_got 120 1 usleep
by_two 120 1 by_jump
by_register 120 1 - 1
by_chain 120 3 usleep 1
by_branch 120 1 by_plt,sleeps
END

trace_steps tails by_two by_jump stays
expect_whole by_two 120
fact 'two in a row: the second is a step only where it is called' \
	"len($(lengths by_jump)) + $(row by_jump)['untraced_steps'] - $(row by_two)['untraced_steps'] == 120"
fact 'the profile counts what was not traced' \
	'W.get("untraced_steps", 0) == sum(k.get("untraced_steps", 0) for k in R["kinds"])'
fact 'beside them: a function that returns has all of its steps' "len($(lengths stays)) == 120"
# On a busy machine there may be time to learn its call site, which costs less.
fact 'beside them: its exit is probed, or its call site' \
	"(lambda k: k['exits'] >= 1 or k['call_sites'] >= 1)($(row stays))"
holds 'outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"

trace_steps tails by_throw
fact 'longjmp: those that it left are marked, the others returned' \
	"len($(lengths by_throw)) + len($(lengths by_throw unwound)) + $(row by_throw)['untraced_steps'] in (119, 120)"
fact 'longjmp: one in three' \
	"abs(len($(lengths by_throw unwound)) + $(row by_throw)['untraced_steps'] / 3 - 40) <= 2"
fact 'longjmp: none that returned is too short' "min($(lengths by_throw)) >= T['sleep_us']"

# On arm64 a function that only returns ends at its exits, and no jump is followed.
[ "$(uname -m)" = x86_64 ] || finish

# --uretprobe replaces the return address on the stack.
rm -f "${OUT:?}".*
start_program tails
mkfifo "$TMP/other"
"$FBT" -p "$ENGINE" --step by_jump --uretprobe --rate-guard 0 --ready-fd 3 3>"$TMP/other" \
	>/dev/null 2>&1 7>&- &
other=$!
read -r _ <"$TMP/other"
run_tool -p "$ENGINE" --step by_jump
wait_attached "$TOOL"
go
wait "$ENGINE"
end_tool
wait "$other"
fact 'a uretprobe of another tool: every call is a step, or counted as not traced' \
	"len($(lengths by_jump)) + $(row by_jump)['untraced_steps'] == 240"
fact 'a uretprobe of another tool: the call sites are found' "len($(lengths by_jump)) > 10"

# A function that returns: first its exits are probed, then only its call site. No step is lost in
# between.
trace_steps 'call_sites alone 4' my_step my_tail
fact 'alone: every call is a step' "len($(lengths my_step)) == T['calls'] > 50"
fact 'alone: the call site ends them in the end' \
	"(lambda k: k['exits'] == 0 and k['call_sites'] == 1 and k['untraced_steps'] == 0)($(row my_step))"
fact 'alone: with the calls of each' 'all(s["calls"] == 1 for s in S)'
fact 'alone: none was cut off, none was left' \
	'all(s["end"] == "return" or s["kind"] == "my_tail" for s in S)'

trace_steps 'call_sites deep 4' my_deep
fact 'recursion: each outer call is a step' "len($(lengths my_deep)) == T['calls'] > 50"
fact 'recursion: with the calls of all levels' 'all(s["calls"] == 3 for s in S)'
fact 'recursion: the call site ends them in the end, not those within' \
	"(lambda k: k['exits'] == 0 and k['call_sites'] == 1 and k['untraced_steps'] == 0)($(row my_deep))"

rm -f "${OUT:?}".*
start_program call_sites forked 3
run_tool -p "$ENGINE" -f --step my_step --step my_tail
wait_attached "$TOOL"
go
wait "$ENGINE"
end_tool
fact 'children: every call of theirs is a step' "len($(lengths my_step)) == T['calls'] > 50"
fact 'children: also of a function with a tail call' \
	"len([s for s in S if s['kind'] == 'my_tail' and s['pid'] != $ENGINE]) == 20"

# Places that cannot be probed count for as long as their process is there.
rm -f "${OUT:?}".*
start_program call_sites many 4
run_tool -p "$ENGINE" -f --step my_step
wait_attached "$TOOL"
go
wait "$ENGINE"
end_tool
fact 'after many others: every call is a step' "len($(lengths my_step)) == T['calls'] > 100"
fact 'after many others: the call site ends them in the end' \
	"(lambda k: k['exits'] == 0 and k['call_sites'] == 1)($(row my_step))"

# Up to when the tool has seen how many others pass the site, and how many call what my_tail jumps
# to, and my_tail has ended at its call site again.
start_steps 'call_sites shared 60' my_step my_tail -v
await_lines 1 'my_step: its exits are probed: others pass its call sites too often' "$OUT.err"
await_lines 1 'my_tail: its jumps are not followed: others call' "$OUT.err"
await_steps $(($(grep -c '"event":"step_prof"' "$OUT.profile") + 200))
kill -USR1 "$ENGINE"
end_steps
fact 'shared: every call is a step' "len($(lengths my_step)) == T['calls'] > 50"
fact 'shared: its exit ends them, as others pass the call site too often' \
	"(lambda k: k['exits'] == 1 and k['call_sites'] == 0)($(row my_step))"
grep 'my_tail' "$OUT.err" | sed 's/^/# /'
fact 'shared: one with a tail call has no other end' \
	"len($(lengths my_tail)) + $(row my_tail)['untraced_steps'] == T['calls'] and $(row my_tail)['call_sites'] >= 1"

# What was left on a stack that is gone hides nothing below.
trace_steps 'call_sites moved 2' my_tail
fact 'on another stack: later calls are steps' \
	"len($(lengths my_tail)) + $(row my_tail)['untraced_steps'] == T['calls'] and $(row my_tail)['untraced_steps'] < T['calls'] / 2"

# A caller in no file, beside one whose call site is probed.
trace_steps 'call_sites both 4' my_step my_tail
fact 'called from both: every call is a step' "len($(lengths my_step)) == T['calls'] + T['nowhere'] > 200"
fact 'called from both: its exits stay, for those from no file' "$(row my_step)['exits'] == 1"
trace_steps 'call_sites later 6' my_step my_tail
fact 'from no file later: every call is a step, or counted as not traced' \
	"len($(lengths my_step)) + $(row my_step)['untraced_steps'] == T['calls'] + T['nowhere'] and T['nowhere'] > 100"
fact 'from no file later: soon all are steps, by the exit' \
	"(lambda k: k['exits'] == 1 and k['call_sites'] == 0 and k['untraced_steps'] < T['nowhere'] / 2)($(row my_step))"

trace_steps 'call_sites nowhere 2' my_step my_tail
fact 'called from code in no file: every call is a step' "len($(lengths my_step)) == T['calls']"
fact 'called from code in no file: by its exit' \
	"(lambda k: k['exits'] == 1 and k['call_sites'] == 0)($(row my_step))"
fact 'called from code in no file: also with a tail call, which is followed' \
	"len($(lengths my_tail)) + $(row my_tail)['untraced_steps'] == T['calls'] and len($(lengths my_tail)) > 10"
fact 'called from code in no file: to the return of the other function' \
	"(lambda k: k['exits'] == 1 and k['call_sites'] == 0)($(row my_tail))"
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Callers are found in the code before they call, so even their first steps are traced.
. "$(dirname "$0")/lib.sh"

[ "$(uname -m)" = x86_64 ] || { echo 'SKIP steps end at call sites on x86-64 only' && exit 77; }

trace_steps()
{
	local options=()

	for name; do options+=(--step "$name"); done
	rm -f "${OUT:?}".*
	start_program callers
	run_tool -p "$ENGINE" "${options[@]}"
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
	echo "len([s for s in S if s['kind'] == '$1'])"
}

program=$FBT_BUILD/tests/live_callers
libc=$(realpath "$(ldd "$program" | awk '$1 ~ /^libc\.so/ { print $3 }')")
objdump -d "$program" >"$TMP/code"
holds 'calls through the PLT' grep -qE '\scall\s.*<strtol@plt>' "$TMP/code"
holds 'calls through the GOT' grep -qE '\scall\s+\*.*<strtol@' "$TMP/code"

trace_steps my_tail "$libc:strtol"
holds 'a function that only jumps there' grep -qE '\sjmp\s.*<my_tail>' \
	<(objdump -d --disassemble=my_wrapper "$program")
fact 'called once from each of 25 places, and by way of that from 5: each is a step' \
	"T['my_tail'] == 30 == $(steps my_tail) == $(row my_tail)['call_sites']"
fact 'and none was missed' "$(row my_tail)['untraced_steps'] == 0 and $(row my_tail)['exits'] == 0"
fact 'and what it jumps to is named' \
	"(lambda k: [k['tail_targets'], k['returns']])($(row my_tail)) == [['other'], 0]"
fact 'in a library, through PLT and GOT: each is a step' \
	"T['strtol'] == $(steps strtol) == $(row strtol)['call_sites'] and $(row strtol)['exits'] == 0"
fact 'and none of these was missed' "$(row strtol)['untraced_steps'] == 0"

# Each of these calls comes through a pointer, from a call site of its own, and is over before the
# site is known.
trace_steps my_far my_inner my_last
fact 'through a pointer: no call is traced, and each is counted' \
	"$(steps my_far) == 0 and $(row my_far)['untraced_steps'] == T['my_far'] == 5"
fact 'an inner step of a call that is not traced is none' \
	"$(steps my_inner) == T['my_inner'] == 5 == $(row my_inner)['untraced_steps']"
fact 'nor does one that is one begin too late' \
	"all(s['calls'] == 1 and s['complete'] for s in S if s['kind'] == 'my_inner')"
fact 'what may be the rest of such a call, after a jump, is marked' \
	"[s['complete'] for s in S if s['kind'] == 'my_last'] == [False] * 5 + [True]"
fact 'the gap after such a call is not known' \
	"['gap' in s['us'] for s in S if s['kind'] == 'my_last'] == [False] * 5 + [True]"

trace_steps my_chosen
fact 'an IFUNC is what it was resolved to, with its callers' \
	"$(steps my_chosen) == 5 and $(row my_chosen)['untraced_steps'] == 0"

start_program callers
"$FBT" doctor --step my_tail "$ENGINE" >"$TMP/doctor" 2>&1
has 'doctor says how its steps end' "$TMP/doctor" 'my_tail, 1 tail call to other; ends at its call'
go
wait "$ENGINE"
finish

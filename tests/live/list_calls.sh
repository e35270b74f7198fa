#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# --list-steps: counts, durations and order of candidates that end in jumps, call themselves, are
# left by longjmp and call each other, compared with their own account. Overloads are told apart.
. "$(dirname "$0")/lib.sh"

[ "$(uname -m)" = x86_64 ] || { skip 'the jumps are checked by names of x86-64 instructions'; finish; }

# listed NAME EXPRESSION: see list_calls.py
listed()
{
	local got

	got=$(ask_python tests/live/list_calls.py "$2")
	if [ "$got" = True ]; then
		ok "$1"
	else
		echo "# ${2//[[:space:]]/ }: $got"
		not_ok "$1"
	fi
}

start_program list_calls
"$FBT" -v --list-steps -p "$ENGINE" >"$TMP/list" 2>"$TMP/err" </dev/null 7>&- &
TOOL=$!
wait_for 20 grep -q 'functions are probed' "$TMP/err"
go
wait "$TOOL"
is 'it exits with 0' $? 0
wait_for 20 test -s "$TMP/truth.json"
sed 's/^/# /' "$TMP/list"

program=$FBT_BUILD/tests/live_list_calls
for name in middle_step part_step again_step thrown_step nowhere_step shared_step spread_step; do
	holds "$name ends in a jump" grep -qE '\sjmp\s' <(objdump -d --disassemble=$name "$program")
done

# NAME SLEEP_US ENDS: the calls are counted exactly, and their mean is that of the engine's clock
while read -r name us ends; do
	listed "$name: every call is counted once" "calls('$name') == len(T['$name'])"
	listed "$name: nearly all have a duration" \
		"timed('$name') >= 0.7 * sum(us > 0 for us in T['$name'])"
	listed "$name: none without an end has one" "timed('$name') <= sum(us > 0 for us in T['$name'])"
	listed "$name: the mean is no shorter than it sleeps" "row('$name')[0] * 1000 >= $us"
	listed "$name: nor longer than its calls took" \
		"row('$name')[0] * 1000 <= sum(longest('$name')) / timed('$name') + 0.5"
	listed "$name: ends at ${ends//_/ }" "row('$name')[1] == '${ends//_/ }'"
done <<END
outer_step 1200 1_exit
batch_step 1200 1_exit
again_step 900 1_call_site
thrown_step 300 1_call_site
spread_step 300 2_call_sites
_ZN6engine6decodeEi 300 1_call_site
_ZN6engine6decodeEd 600 1_exit
END
listed 'calls of a part: all are counted' "calls('part_step') == 4 * len(T['batch_step'])"

listed 'called from code without a file: every call is counted' \
	"calls('nowhere_step') == len(T['nowhere_step'])"
listed 'called from code without a file: the duration is not known' \
	"row('nowhere_step')[:2] == ('not known', 'no call site')"
listed 'called from where others are: every call is counted' \
	"calls('shared_step') == len(T['shared_step'])"
listed 'called from where others are: its call site is given up' \
	"row('shared_step')[1] == 'hot call site' and timed('shared_step') < calls('shared_step') / 2"

listed 'a wrapper comes after what it wraps' \
	"sorted(['inner_step', 'middle_step', 'outer_step'], key=names.index) == ['inner_step', 'middle_step', 'outer_step']"
listed 'with nothing in between' "names.index('outer_step') - names.index('inner_step') == 2"
listed 'what calls another one several times is no wrapper' \
	"names.index('batch_step') < names.index('part_step')"

listed 'overloads have their argument types' \
	"row('_ZN6engine6decodeEi')[2].startswith('engine::decode(int) ') and row('_ZN6engine6decodeEd')[2].startswith('engine::decode(double) ')"
for name in _ZN6engine6decodeEi _ZN6engine6decodeEd outer_step; do
	"$FBT" doctor "$ENGINE" --step $name --trace none --profile none >"$TMP/doctor" 2>&1
	is "$name: --step takes it for one function" \
		"$(grep -c '^  ok *step function' "$TMP/doctor")" 1
done
"$FBT" doctor "$ENGINE" --step engine::decode --trace none --profile none >"$TMP/doctor" 2>&1
is 'their common name means both' "$(grep -cE '^  (ok)? +(step function)? *engine::decode' "$TMP/doctor")" 2
holds 'the engine goes on' kill -0 "$ENGINE"
finish

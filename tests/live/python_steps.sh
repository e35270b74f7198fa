#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Steps that are Python functions: found by name, counted exactly, with their arguments; in an interpreter
# that has the library, and in one that gets it while it runs.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/python/lib.sh
. tests/live/python/lib.sh

steps=600
kinds='{k: [s for s in S if s["kind"] == k] for k in {s["kind"] for s in S}}'
# shellcheck disable=SC2089
core="($kinds)[\"EngineCore.step\"]" model="($kinds)[\"GPUModelRunner.execute_model\"]"

# run_python NAME INTERPRETER TOOL-OPTION…: one run from the go to the end of both; $preload is loaded
run_python()
{
	local name=$1 path=$2

	shift 2
	rm -f "${OUT:?}".*
	start_waiting env ${preload:+LD_PRELOAD="$preload"} "$path" tests/live/python/engine.py \
		"$TMP/truth.json" $steps
	run_tool -p "$ENGINE" "$@"
	wait_attached "$TOOL" || { sed 's/^/# /' "$OUT.err" && not_ok "$name: the tool attaches"; }
	go
	wait "$ENGINE"
	is "$name: the engine ends as ever" $? 0
	end_tool
	[ -z "${SHOW:-}" ] || cat "$OUT.err"
}

check_python()
{
	fact "$1: each call is a step" \
		"len($core) == T['core_calls'] == $steps and len($model) == T['model_calls'] == $steps"
	fact "$1: tokens are recorded" "sum(s['arg.n_tokens'] for s in $model) == T['tokens']"
	fact "$1: requests are recorded" "sum(s['arg.n_requests'] for s in $core) == T['requests']"
	fact "$1: an exception ends its step" \
		"sum(s['end'] == 'raised' for s in $model) == T['raised'] > 0 and
		all(s['end'] == 'return' for s in $core)"
	fact "$1: calls are those of their step" \
		"all(s['by']['other']['calls'] == 2 for s in $model) and all(s['by']['other']['calls'] == 1 for s in $core)"
	fact "$1: nothing lost" 'lost == 0'
	holds "$1: outputs are valid" "$FBT" validate "$OUT.profile" "$OUT.trace"
}

while read -r version path; do
	preload=$LIBRARY run_python "$version, started with it" "$path"
	check_python "$version, started with it"
	preload='' run_python "$version, injected" "$path" --python=inject
	check_python "$version, injected"
done < <(interpreters)

# The first interpreter, once more: a function that --step names, and what is refused.
path=/usr/bin/python3
preload=$LIBRARY run_python 'by --step' "$path" \
	--step 'py:__main__:GPUModelRunner.execute_model(tokens=scheduler_output.total_num_scheduled_tokens)'
fact 'by --step: only that one' "len(S) == T['model_calls'] and
	sum(s['arg.tokens'] for s in S) == T['tokens']"

# A program that closes all of its descriptors, as a daemon does, has closed the library's too.
closing='import os, runpy, sys
os.closerange(3, 1 << 16)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")'
rm -f "${OUT:?}".*
start_waiting env LD_PRELOAD="$LIBRARY" "$path" -c "$closing" tests/live/python/engine.py "$TMP/truth.json" $steps
run_tool -p "$ENGINE"
wait_attached "$TOOL" || not_ok 'all descriptors closed: the tool attaches'
go
wait "$ENGINE"
is 'all descriptors closed: the engine ends as ever' $? 0
end_tool
check_python 'all descriptors closed'

# tell LINE: the engine does that
tell()
{
	rm -f "$TMP/truth.json.$1"
	echo "$1" >&7
	wait_for 30 [ -e "$TMP/truth.json.$1" ]
}

# Another tool takes the function while it is armed: that is told, and the next trace has it all the same.
while read -r version path; do
	name="$version, taken by another tool"
	rm -f "${OUT:?}".*
	start_waiting env LD_PRELOAD="$LIBRARY" "$path" tests/live/python/held.py "$TMP/truth.json"
	run_tool -p "$ENGINE" --step 'py:__main__:step(n=batch.number)'
	wait_attached "$TOOL" || not_ok "$name: the tool attaches"
	holds "$name: there are steps" await_steps 20
	holds "$name: it is taken" tell take
	stop_tool
	has "$name: that is told" "$OUT.err" "process $ENGINE: py:__main__:step was changed by something else"
	tell give
	rm -f "${OUT:?}".*
	run_tool -p "$ENGINE" --step 'py:__main__:step(n=batch.number)'
	wait_attached "$TOOL" || not_ok "$name: the next tool attaches"
	holds "$name: there are steps again" await_steps 20
	exec 7>&-
	wait "$ENGINE"
	is "$name: the engine ends as ever" $? 0
	end_tool
	fact "$name: and none is missing" \
		"[s['arg.n'] for s in S] == list(range(S[0]['arg.n'], T['steps'] + 1)) and len(S) > 20"
	is "$name: it is not taken now" "$(grep -c 'was changed' "$OUT.err")" 0
done < <(interpreters)

# Batches of all kinds: what cannot be read without running code of the program is absent, and stays so.
while read -r version path; do
	rm -f "${OUT:?}".*
	start_waiting env LD_PRELOAD="$LIBRARY" "$path" tests/live/python/attributes.py "$TMP/truth.json" 220
	run_tool -p "$ENGINE" --step \
		'py:__main__:Step.step(tokens=batch.tokens,requests=len(batch.requests),costly=batch.costly)'
	wait_attached "$TOOL" || not_ok "$version, batches of all kinds: the tool attaches"
	go
	wait "$ENGINE"
	is "$version, batches of all kinds: the engine ends as ever" $? 0
	end_tool
	fact "$version, batches of all kinds: numbers that can be read are there, and no others" \
		"[[s.get('arg.' + name) for name in ('tokens', 'requests', 'costly')] for s in S] == T['expected']"
	fact "$version, batches of all kinds: nothing of the program ran for it" "T['ran'] == []"
done < <(interpreters)

path=/usr/bin/python3
preload=$LIBRARY
start_waiting env LD_PRELOAD="$LIBRARY" "$path" tests/live/python/engine.py "$TMP/truth.json" 1
for wrong in 'py:nowhere:f' 'py:__main__:EngineCore.nothing' 'py:__main__:EngineCore' \
	'py:__main__:EngineCore.step(n=absent.x)'; do
	run_tool -p "$ENGINE" --step "$wrong"
	end_tool 1 "refused: $wrong"
	has 'and it is named' "$OUT.err" "${wrong%%(*}"
done
for wrong in py: py:main 'py:a:b(' 'py:a:b(n)' 'py:a:b(n=f())' 'py:a:b(a=c,b=c,d=c,e=c,f=c)'; do
	run_tool -p "$ENGINE" --step "$wrong"
	end_tool 2 "a usage error: $wrong"
done
run_tool -p "$ENGINE" --python=off --step 'py:__main__:EngineCore.step'
end_tool 1 '--python=off: no step function'

# The tool has no CPU for longer than its lease: the library disarms, and is asked again afterwards.
rm -f "${OUT:?}".*
start_waiting env LD_PRELOAD="$LIBRARY" "$path" tests/live/python/engine.py "$TMP/truth.json" 12000
run_tool -p "$ENGINE"
wait_attached "$TOOL"
go
sleep 0.5
kill -STOP "$TOOL"
sleep 8
kill -CONT "$TOOL"
wait "$ENGINE"
is 'the tool is stopped for long: the engine ends as ever' $? 0
end_tool
has 'that steps are missing is said' "$OUT.err" 'Python steps are missing'
fact 'steps are missing' "1000 < len($core) < T['core_calls'] - 500"
fact 'and those after it are there' "(${core})[-1]['arg.n_requests'] == 11999 % 5 and
	(${core})[-1]['start_us'] - (${core})[0]['start_us'] > 10e6"

# The tool is killed while functions are armed.
run_tool -p "$ENGINE"
wait_attached "$TOOL"
kill -KILL "$TOOL"
wait "$TOOL" 2>/dev/null
go
wait "$ENGINE"
is 'the tool is killed: the engine ends as ever' $? 0
finish

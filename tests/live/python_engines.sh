#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Engines of several Python processes, by the names of vLLM (with each of its model runners), SGLang and
# TensorRT-LLM: from any process of one, without -f, all that have a step are traced, and each step is one
# that the process made.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/python/lib.sh
. tests/live/python/lib.sh
# shellcheck source=tests/live/python/tree.sh
. tests/live/python/tree.sh

# SGLang's batch keeps the tokens of its prefill while it decodes.
# check_batches: each step says what its batch was, and none says tokens that it did not have
check_batches()
{
	fact "$NAME: no step has tokens that it did not run" \
		'all(s.get("arg.n_tokens") in (None, each["tokens"]) for pid in tables
			for s, each in zip([s for s in S if s["pid"] == pid and s["kind"] == "Scheduler.run_batch"],
				T[str(pid)]["each"]))'
	fact "$NAME: the mode of a batch tells its prefill from what is left of it" \
		'all((s["arg.mode"], s["arg.n_extend"], s["arg.n_requests"]) ==
			(each["mode"], each["n_extend"], each["n_requests"]) for pid in tables
			for s, each in zip([s for s in S if s["pid"] == pid and s["kind"] == "Scheduler.run_batch"],
				T[str(pid)]["each"]))'
}

for engine in vllm vllm_v2 sglang tensorrt_llm; do
	case $engine in
	vllm*) others=(api core) ;; # the API server of the real one loads the engine's module too
	*) others=() ;;
	esac
	preload=$LIBRARY run_tree "$engine, started with it" "$engine" api
	check_tree
	[ $engine != sglang ] || check_batches
	only_steps "${others[@]}" worker0 worker1
	[[ $engine = vllm* ]] ||
		has "$NAME: the named process has no step, and others have" "$OUT.err" \
			"$(pid_of api) .* no step.* $(pid_of worker0) "
	preload='' run_tree "$engine, injected" "$engine" worker1 --python=inject
	check_tree
	[ $engine != sglang ] || check_batches
	only_steps "${others[@]}" worker0 worker1
	is "$NAME: nothing is put into multiprocessing's tracker" \
		"$(grep -c "process $(pid_of tracker).*injected" "$OUT.err")" 0
done

# What has the function and never calls it is named, once others have made steps for two seconds.
steps=2500
preload=$LIBRARY run_tree 'a function that is not called' vllm core
has "$NAME: it is told where the steps are" "$OUT.err" "no step .*in $(pid_of api) .*: .* $(pid_of core) "
steps=300

# A function of --step is looked for in the whole tree too.
preload=$LIBRARY run_tree '--step' vllm launch \
	--step 'py:vllm.v1.engine.core:EngineCore.step(n_requests=len(self.scheduler.running))'
fact "$NAME: its calls" 'len(S) == 300 and {s["kind"] for s in S} == {"EngineCore.step"}'
preload=$LIBRARY run_tree '--python=off' vllm core --python=off
fact "$NAME: nothing but the process" "set(tables) == {$(pid_of core)}"

# What would be done, and that nothing is done without a word; what must be there.
start_waiting /usr/bin/python3 tests/live/python/tree.py vllm "$TMP/truth.json" 10
api=$(pid_of api)
"$FBT" -p "$api" --python=inject --dry-run >"$TMP/dry" 2>&1
is '--dry-run: it would' $? 0
is '--dry-run: all processes of the engine but the tracker' \
	"$(sed -n 's/^process \([0-9]*\):$/\1/p' "$TMP/dry" | sort)" \
	"$(for role in launch api core worker0 worker1; do pid_of $role; done | sort)"
has '--dry-run: what it would look for' "$TMP/dry" 'look for vllm: EngineCore.step, '
"$FBT" -p "$api" --gpu=inject --dry-run >"$TMP/dry" 2>&1
is '--dry-run: the shim would not be loaded' $? 1
"$FBT" -p "$api" --inject --dry-run >"$TMP/dry" 2>&1
is '--inject: the library for Python alone would be loaded' $? 0
run_tool -p "$api" --python=require
end_tool 1 '--python=require: without the library it fails'
has 'and says what is missing' "$OUT.err" '--python require: .*--python inject'
run_tool -p "$api" -d 0.1
end_tool
has 'without an option it is told what one would gain' "$OUT.err" "process $api runs Python: with --python=inject"
fact 'and the report says so' \
	"[p['python'].get('inject_advised') for p in R['processes'] if p['pid'] == $api] == [True]"
"$FBT" doctor "$api" >"$TMP/doctor" 2>&1
has 'doctor: what it is, and what would be looked for' "$TMP/doctor" 'Python +CPython 3.* without libferrum_python'
"$FBT" --list-steps -p "$api" >"$TMP/list" 2>&1
is '--list-steps: nothing without the library' $? 1
has '--list-steps: it is told how to get it' "$TMP/list" '--python=inject loads .*looks for vllm: '
go
wait "$ENGINE"
preload=$LIBRARY run_tree '--python=require' vllm api --python=require
check_tree

# Calls are counted without probes, in each process of the engine.
start_waiting /usr/bin/python3 tests/live/python/tree.py vllm "$TMP/truth.json" 60000
go
"$FBT" --list-steps -p "$(pid_of core)" --python=inject >"$TMP/list" 2>"$TMP/list.err"
is '--list-steps: it ends with 0' $? 0
for role in core worker0 worker1; do
	has "--list-steps: calls in $role" "$TMP/list" "^ *[0-9]*[1-9][0-9]*\\.[0-9] .* py:vllm.*process $(pid_of $role) "
done
has '--list-steps: none in the API server' "$TMP/list" "^ *0\\.0 .* py:vllm.*EngineCore.step .*process $(pid_of api) "
kill_tree launch api core worker0 worker1

# Windows by flag: the second one is prepared by a tool that has given up its rights.
start_waiting /usr/bin/python3 tests/live/python/tree.py sglang "$TMP/truth.json" 60000
rm -f "${OUT:?}".*
run_tool -p "$(pid_of api)" --python=inject --flag "$TMP/flag" --trace none --max-steps 100
seen=0
for n in 1 2; do
	await_lines "$n" 'waiting for' "$OUT.err"
	[ $n = 2 ] || go
	touch "$TMP/flag"
	await_lines "$n" 'the next window opens' "$OUT.err"
	rm "$TMP/flag"
	count=$(grep -c step_prof "$OUT.profile")
	holds "with --flag: steps in window $n" [ $((count - seen)) -ge 100 ]
	seen=$count
done
stop_tool
kill_tree launch api worker0 worker1 detokenizer

# A process that begins after the trace, without the library (tests/live/python_joins.sh: with it).
preload=$LIBRARY
start_waiting env LD_PRELOAD="$LIBRARY" /usr/bin/python3 tests/live/python/tree.py late "$TMP/truth.json" 100
run_tool -p "$ENGINE" -n 100
wait_attached "$TOOL"
echo >&7
end_tool
exec 7>&-
wait "$ENGINE"
# Which of the two was seen first is chance.
late='began after the trace without .*: ([0-9]+ \(late-newcomer\); [0-9]+ |[0-9]+ \([^)]+\); [0-9]+ \(late-newcomer\))'
has 'a process that begins later is named' "$OUT.err" "$late"
start_waiting env LD_PRELOAD="$LIBRARY" /usr/bin/python3 tests/live/python/tree.py late "$TMP/truth.json" 100
run_tool -p "$ENGINE" -f -n 100
wait_attached "$TOOL"
echo >&7
end_tool
exec 7>&-
wait "$ENGINE"
has 'and so it is with -f' "$OUT.err" "$late"
finish

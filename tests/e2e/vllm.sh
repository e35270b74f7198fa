#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Attaches to a real vLLM on the CPU while it serves, given the PID of its API server. The forward
# passes of its other processes are steps, and are compared with vLLM's own metrics. vllm/install.sh
# installs it.
. "$(dirname "$0")/../live/lib.sh"
# shellcheck source=tests/live/flag/lib.sh
. tests/live/flag/lib.sh

# shellcheck source=tests/e2e/vllm/lib.sh
. tests/e2e/vllm/lib.sh

# The metrics count the first token of each answer, which the pass over its prompt makes, and the
# last, which no pass reads. Passes without tokens are not counted.
check_steps()
{
	local of='{k: [s for s in S if s["kind"].startswith(k)] for k in ("EngineCore.step", "GPUModelRunner.execute_model")}'

	echo "# $ITERATIONS iterations, $SUM tokens, $DONE requests"
	is "$1: all requests are answered" "$DONE" $((2 * REQUESTS))
	fact "$1: vLLM's steps are found" 'all(('"$of"').values())'
	fact "$1: as many forward passes as vLLM counts" \
		"len([s for s in ($of)['GPUModelRunner.execute_model'] if s['arg.n_tokens']]) == $ITERATIONS"
	fact "$1: as many tokens" \
		"sum(s['arg.n_tokens'] for s in ($of)['GPUModelRunner.execute_model']) == $SUM - $DONE"
	fact "$1: one step of the engine around each" \
		"0 <= len(($of)['EngineCore.step']) - len(($of)['GPUModelRunner.execute_model']) <= 1"
	fact "$1: each is whole" \
		"all(s['end'] == 'return' and s['complete'] for k in ($of).values() for s in k) and
		all(v == 0 for k, v in W.items() if k.startswith('lost_'))"
	holds "$1: the outputs are valid" "$FBT" validate -q "$OUT.profile" "$OUT.trace"
}

# shellcheck disable=SC2119 # no options besides
start_server
ask 4 1 >"$TMP/first"
"$FBT" doctor "$PID" >"$TMP/doctor" 2>&1 </dev/null
has 'doctor says what would be looked for' "$TMP/doctor" 'EngineCore\.step'

trace_requests --python=inject
check_steps injected

# The library is loaded by now, so nothing is injected.
trace_requests
check_steps 'again, without an option'

# PyTorch's own profiler, for one window. The engine is idle at its end, so it gets one more request.
run_waiting -p "$PID" --python=inject --torch-trace
open_window 1
read_metrics
passes=$ITERATIONS
ask "$TOKENS" 2 >"$TMP/asked"
read_metrics
rm "$FLAG"
wait_for_line 'send an idle engine a request'
ask 4 1 >"$TMP/asked"
wait_for_line '^waiting for /' 2
kill -INT "$TOOL"
wait "$TOOL"
is 'with PyTorch'"'"'s profiler: the tool succeeds' $? 0
python3 tests/e2e/vllm/torch_trace.py "$DIR" $((ITERATIONS - passes)) || FAILED=1
read -r _ hta _ < <(tests/e2e/hta/install.sh)
[ "$hta" = - ] || "$hta/bin/python" tests/e2e/hta/read.py "$DIR"/kineto_*.json 2>"$TMP/hta" || FAILED=1
ask "$TOKENS" 1 >"$TMP/asked" && ok 'vLLM goes on'

kill -TERM "$PID"
wait "$PID"
is 'vLLM ends as it wants' $? 0
finish

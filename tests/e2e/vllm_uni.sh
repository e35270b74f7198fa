#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A real vLLM whose engine core is its own worker (UniProcExecutor), as it is by default with one GPU: the
# worker's functions are called inside of EngineCore.step, on its thread. Once without a server, held against
# vLLM's scheduler pass by pass, and once as a server, held against its metrics.
. "$(dirname "$0")/../live/lib.sh"
# shellcheck source=tests/e2e/vllm/lib.sh
. tests/e2e/vllm/lib.sh

# The steps that executed something. Without a request a call of the engine's step does nothing.
passes='[s for s in S if s["arg.n_tokens"] is not None]'

check_uni()
{
	fact "$NAME: all steps are the engine's" '{s["kind"] for s in S} == {"EngineCore.step"}'
	fact "$NAME: each is whole" \
		"all(s['end'] == 'return' and s['complete'] for s in S) and
		all(v == 0 for k, v in W.items() if k.startswith('lost_'))"
	fact "$NAME: each has the times of its parts" \
		"all(0 < s['arg.execute_us'] and 0 < s['arg.sample_us'] and
			s['arg.execute_us'] + s['arg.sample_us'] <= s['us']['total'] for s in $passes if s['arg.n_tokens'])"
	fact "$NAME: classes are by tokens" "'n_tokens' in {c['by'] for k in R['kinds'] for c in k.get('classes', [])}"
	holds "$NAME: the outputs are valid" "$FBT" validate -q "$OUT.profile" "$OUT.trace"
	echo "# $(q "[(a['name'], a['count'], a['mean']) for k in R['kinds'] for a in k.get('args', [])]")"
}

# shellcheck disable=SC2317,SC2329 # called by name
undo()
{
	[ -z "${PID:-}" ] || kill -- -"$PID" 2>/dev/null
}

# Its threads would wait for each other in loops, which takes long where other programs run too.
export OMP_NUM_THREADS=1
NAME='without a server'
make_model
# shellcheck disable=SC2016 # of the inner shell
start_waiting bash -c 'exec "${@:2}" 2>"$1"' - "$TMP/offline" env HOME="$TMP" HF_HUB_OFFLINE=1 \
	VLLM_ENABLE_V1_MULTIPROCESSING=0 VLLM_CPU_KVCACHE_SPACE=1 VLLM_NO_USAGE_STATS=1 PATH="$VENV/bin:$PATH" \
	"$VENV/bin/python" tests/e2e/vllm/offline.py "$TMP/model" "$TMP/truth.json" "$TOKENS"
run_tool -p "$ENGINE" --python=inject
if ! wait_attached "$TOOL"; then
	tail -n 20 "$TMP/offline" | sed 's/^/# /'
	sed 's/^/# /' "$OUT.err"
	not_ok 'the tool attaches'
	finish
fi
go
wait "$ENGINE"
is "$NAME: vLLM ends as ever" $? 0
end_tool
fact "$NAME: its executor is the one for one GPU" 'T["executor"] == "UniProcExecutor"'
fact "$NAME: each step has the tokens of its pass" \
	"[s['arg.n_tokens'] for s in $passes] == T['passes'] and len(T['passes']) > 100"
check_uni

# With this value several processes are wanted, as without it, and vLLM does not take another executor for
# the CPU, as it does for 1 (its platform for the CPU decides).
NAME='as a server'
export VLLM_ENABLE_V1_MULTIPROCESSING=2
start_server --dtype float32
unset VLLM_ENABLE_V1_MULTIPROCESSING
ask 4 1 >"$TMP/first"
trace_requests --python=inject
echo "# $ITERATIONS iterations, $SUM tokens, $DONE requests"
is "$NAME: all requests are answered" "$DONE" $((2 * REQUESTS))
fact "$NAME: as many forward passes as vLLM counts" \
	"len([s for s in $passes if s['arg.n_tokens']]) == $ITERATIONS"
fact "$NAME: as many tokens" "sum(s['arg.n_tokens'] for s in $passes) == $SUM - $DONE"
check_uni
kill -TERM "$PID"
wait "$PID"
is "$NAME: vLLM ends as it wants" $? 0
finish

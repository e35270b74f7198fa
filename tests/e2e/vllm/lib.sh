# shellcheck shell=bash disable=SC2034,SC2153
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What the tests of a real vLLM share; they have sourced live/lib.sh before.

# shellcheck source=tests/e2e/lib/server.sh
. tests/e2e/lib/server.sh

read -r VERSION VENV WHY < <(tests/e2e/vllm/install.sh)
if [ "$VENV" = - ]; then
	echo "SKIP vLLM $VERSION: $WHY"
	exit 77
fi

# metric NAME: the sum over its labels
metric()
{
	ask get /metrics | awk -v name="$1" 'index($1, name "{") == 1 { sum += $2 } END { printf "%d\n", sum }'
}

# COMPILED: the model is compiled, as it is by default.
eager=(--enforce-eager)
[ -z "${COMPILED:-}" ] || eager=()

make_model()
{
	python3 tests/e2e/ferrum/model.py "$TMP/model"
}

# start_server OPTION…: PID is its API server
start_server()
{
	choose_port
	make_model
	serve vLLM /metrics '^vllm:' VLLM_CPU_KVCACHE_SPACE=1 VLLM_NO_USAGE_STATS=1 PATH="$VENV/bin:$PATH" \
		"$VENV/bin/python" "$VENV/bin/vllm" serve "$TMP/model" --served-model-name model \
		--load-format dummy --port "$PORT" --max-model-len 1024 --dtype bfloat16 "${eager[@]}" \
		--no-enable-prefix-caching "$@"
}

# read_metrics: sets ITERATIONS, SUM and DONE
read_metrics()
{
	ITERATIONS=$(metric vllm:iteration_tokens_total_count)
	SUM=$(metric vllm:iteration_tokens_total_sum)
	DONE=$(metric vllm:request_success_total)
}

# trace_requests TOOL-OPTION…: sets the same variables to their increase during the trace
trace_requests()
{
	local before

	rm -f "${OUT:?}".*
	# EngineCore calls sched_yield up to 300,000 times a second, in a loop.
	run_tool -p "$PID" --ring-records 1048576 "$@"
	wait_attached "$TOOL" || { sed 's/^/# /' "$OUT.err" && not_ok 'the tool attaches' && finish; }
	read_metrics
	before=("$ITERATIONS" "$SUM" "$DONE")
	ask "$TOKENS" "$REQUESTS" >"$TMP/asked" &
	ask "$TOKENS" "$REQUESTS" >>"$TMP/asked"
	wait $!
	read_metrics
	stop_tool
	ITERATIONS=$((ITERATIONS - before[0])) SUM=$((SUM - before[1])) DONE=$((DONE - before[2]))
}

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

# start_server OPTION…: PID is its API server
start_server()
{
	choose_port
	python3 tests/e2e/ferrum/model.py "$TMP/model"
	serve vLLM /metrics '^vllm:' VLLM_CPU_KVCACHE_SPACE=1 VLLM_NO_USAGE_STATS=1 PATH="$VENV/bin:$PATH" \
		"$VENV/bin/python" "$VENV/bin/vllm" serve "$TMP/model" --served-model-name model \
		--load-format dummy --port "$PORT" --max-model-len 1024 --dtype bfloat16 "${eager[@]}" \
		--no-enable-prefix-caching "$@"
}

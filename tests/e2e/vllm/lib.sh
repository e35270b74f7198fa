# shellcheck shell=bash disable=SC2034,SC2153
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What the tests of a real vLLM share; they have sourced live/lib.sh before.

REQUESTS=6 TOKENS=30
read -r VERSION VENV WHY < <(tests/e2e/vllm/install.sh)
if [ "$VENV" = - ]; then
	echo "SKIP vLLM $VERSION: $WHY"
	exit 77
fi

ask()
{
	python3 tests/e2e/ferrum/load.py "$PORT" "$@"
}

# metric NAME: the sum over its labels
metric()
{
	ask get /metrics | awk -v name="$1" 'index($1, name "{") == 1 { sum += $2 } END { printf "%d\n", sum }'
}

# shellcheck disable=SC2317,SC2329 # called by name
answers()
{
	! kill -0 "$PID" 2>/dev/null || ask get /metrics 2>/dev/null | grep -q '^vllm:'
}

# shellcheck disable=SC2317,SC2329 # called by name
undo()
{
	kill -- -"$PID" 2>/dev/null
}

# start_server OPTION…: PID is its API server
start_server()
{
	PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	python3 tests/e2e/ferrum/model.py "$TMP/model"
	HOME=$TMP VLLM_CPU_KVCACHE_SPACE=1 HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 \
		PATH=$VENV/bin:$PATH setsid "$VENV/bin/python" "$VENV/bin/vllm" serve "$TMP/model" \
		--served-model-name model --load-format dummy --port "$PORT" --max-model-len 1024 \
		--dtype bfloat16 --enforce-eager --no-enable-prefix-caching "$@" >"$TMP/server" 2>&1 </dev/null 7>&- &
	PID=$!
	wait_for 300 answers && kill -0 "$PID" 2>/dev/null && return
	tail -n 20 "$TMP/server" | sed 's/^/# /'
	not_ok 'vLLM starts'
	finish
}

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Attaches to a real `transformers serve` with continuous batching, on the CPU, while it serves: its
# batches are steps, held against the tokens that its answers say. transformers/install.sh installs it.
. "$(dirname "$0")/../live/lib.sh"

# shellcheck source=tests/e2e/lib/server.sh
. tests/e2e/lib/server.sh

# Of the prompt of ferrum/load.py: a token is a byte.
PROMPT=22
read -r VERSION VENV FOLDER < <(tests/e2e/transformers/install.sh)
if [ "$VENV" = - ]; then
	echo "SKIP transformers $VERSION: $FOLDER"
	exit 77
fi

# The model's name is its path as the server was given it, so it starts beside it.
start_server()
{
	choose_port
	python3 tests/e2e/ferrum/model.py "$TMP/model" whole
	serve 'transformers serve' /health ok -C "$TMP" PYTHONPATH="$FOLDER" "$VENV/bin/python" \
		"$VENV/bin/transformers" serve model --continuous-batching --device cpu --host 127.0.0.1 \
		--port "$PORT" --cb-num-blocks 64 --cb-block-size 32
}

# trace_requests CLIENTS TOOL-OPTION…
trace_requests()
{
	local clients=$1 jobs=() n

	shift
	rm -f "${OUT:?}".* "$TMP"/asked.*
	run_tool -p "$PID" "$@"
	wait_attached "$TOOL" || { sed 's/^/# /' "$OUT.err" && not_ok 'the tool attaches' && finish; }
	for ((n = 0; n < clients; n++)); do
		ask "$TOKENS" "$REQUESTS" >"$TMP/asked.$n" &
		jobs+=($!)
	done
	wait "${jobs[@]}"
	stop_tool
	ANSWERED=$(awk '{ sum += $2 } END { print sum }' "$TMP"/asked.*)
	ASKED=$((clients * REQUESTS))
}

# The pass over a prompt makes the first token of an answer, and no pass reads the last.
check_steps()
{
	fact "$1: its function is found" '{s["kind"] for s in S} == {"ContinuousBatchingManager._generation_step"}'
	is "$1: all requests are answered" "$ANSWERED" $((ASKED * TOKENS))
	fact "$1: as many tokens as were read" \
		"sum(s['arg.n_tokens'] for s in S) == $ANSWERED + $ASKED * ($PROMPT - 1)"
	fact "$1: as many as were made, over the requests of each step" \
		"sum(s['arg.n_requests'] for s in S) == $ANSWERED"
	fact "$1: each is whole" \
		"all(s['end'] == 'return' and s['complete'] for s in S) and
		all(v == 0 for k, v in W.items() if k.startswith('lost_'))"
	holds "$1: the outputs are valid" "$FBT" validate -q "$OUT.profile" "$OUT.trace"
}

start_server
ask 4 1 >"$TMP/first"
"$FBT" doctor "$PID" >"$TMP/doctor" 2>&1 </dev/null
has 'doctor says what would be looked for' "$TMP/doctor" 'ContinuousBatchingManager\._generation_step'

trace_requests 1 --python=inject
check_steps 'one client'
fact 'one client: a step for each token' "len(S) == $ANSWERED"

# The library is there now; nothing is injected.
trace_requests 3
check_steps 'three clients'
fact 'three clients: they share steps' "$ANSWERED / 3 <= len(S) < $ANSWERED"

kill -TERM "$PID"
wait "$PID"
is 'it ends by the signal, as without the library' $? 143
finish

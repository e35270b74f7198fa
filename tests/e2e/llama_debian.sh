#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# llama.cpp of Debian unstable: its own server, in a folder of unpacked packages (chroot). bpftrace
# must count as many steps. Under load it is judged as llama_trouble.sh judges 0.5. FBT_LLAMA_CACHE
# is where the packages are kept.
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/../live/lib.sh"

HERE=$PWD/tests/e2e
# shellcheck source=tests/e2e/lib/engine.sh
. "$HERE/lib/engine.sh"
# shellcheck source=tests/e2e/lib/trouble.sh
. "$HERE/lib/trouble.sh"

LLAMA_CACHE=${FBT_LLAMA_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ferrum-bpftrace/llama}
MODEL=/tmp/fbt_model_$$.gguf
LOAD_ARGS=(completion)

# fetch_engine: sets ROOT to the folder, and VERSION
fetch_engine()
{
	local status

	[ "$(uname -m)" = x86_64 ] || skip 'tried on x86-64 only'
	ROOT=$(tests/kernels/fetch.sh root x86_64 sid "$HERE/llama/packages.txt" "$LLAMA_CACHE" 2>"$TMP/fetch")
	status=$?
	[ $status = 0 ] || sed 's/^/# /' "$TMP/fetch"
	[ $status != 77 ] || skip "Debian's archive cannot be reached"
	is "Debian's llama.cpp is unpacked" $status 0
	[ $status = 0 ] || finish
}

# start_debian_server ARGUMENT…: sets PID and PORT
start_debian_server()
{
	PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	cp "$TMP/model.gguf" "$ROOT$MODEL"
	chroot "$ROOT" /usr/bin/llama-server -m "$MODEL" --host 127.0.0.1 --port "$PORT" -np 4 -c 8192 \
		--no-ui "$@" >"$TMP/server.out" 2>&1 </dev/null 7>&- &
	PID=$!
	wait_for 120 get health >"$TMP/health" 2>&1
	rm -f "$ROOT$MODEL"
	if ! grep -q ok "$TMP/health"; then
		sed 's/^/# /' "$TMP/server.out"
		not_ok 'its server starts'
		finish
	fi
	VERSION=$(chroot "$ROOT" /usr/bin/llama-server --version 2>&1 | sed -n 's/^version: \([0-9.]*\).*/\1/p')
	NAME="llama.cpp $VERSION"
}

# start_bpftrace: sets COUNTER to one that counts the calls of the step function
# shellcheck disable=SC2317,SC2329 # called by name
start_bpftrace()
{
	cat >"$TMP/count.bt" <<-PROGRAM
		uprobe:$(realpath "$ROOT/usr/lib/x86_64-linux-gnu/libllama.so.0"):llama_process /pid == $PID/ {
			@steps = count();
		}
		interval:ms:200 { if (@armed == 0) { @armed = 1; printf("armed\n"); } }
		$(counter_ends "$(counter_code 0)")
		END { clear(@armed); }
	PROGRAM
	bpftrace -B line "$TMP/count.bt" >"$TMP/count" 2>"$TMP/count.err" &
	COUNTER=$!
	until_true 120 grep -qs armed "$TMP/count"
}

# Each call is a step, with the tokens that the server says it read and gave: all tokens of an
# answer but the last are read again.
check_steps()
{
	local wanted

	OUT=$TMP/steps
	run_tool -p "$PID"
	holds "$NAME: the tool attaches" wait_attached "$TOOL"
	holds "$NAME: bpftrace counts" start_bpftrace
	node "$HERE/load.mjs" "$PORT" 40 4 24 "${LOAD_ARGS[@]}" >"$TMP/load"
	is "$NAME: every request is answered" $? 0
	end_counter "$(counter_code 0)" "$COUNTER"
	stop_tool
	wanted=$(sed -n 's/^@steps: //p' "$TMP/count")
	fact "$NAME: as many steps as bpftrace counts calls ($wanted)" "len(S) == ${wanted:-0} > 0"
	wanted=$(node -p 'const s = JSON.parse(fs.readFileSync(0)); s.tokens_in + s.tokens_out - s.ok' <"$TMP/load")
	fact "$NAME: n_tokens are those of the requests ($wanted)" \
		"sum(s['arg.n_tokens'] for s in S) == $wanted > 0"
	# llama_process has no exits, and where it returns to was found in the code of its callers.
	fact "$NAME: the first one too" "sum(k.get('untraced_steps', 0) for k in R['kinds']) == 0 < sum(k.get('call_sites', 0) for k in R['kinds'])"
	# llama_process only jumps to that function, which a stripped program identifies by this
	# text.
	timeout -s INT 20 "$FBT" -p "$PID" --step 'string:%s: cannot decode batches with this context' -d 1 \
		--trace none --profile none --report json >"$TMP/report" 2>"$TMP/err" </dev/null
	has "$NAME: its decoder is known by a text" "$TMP/report" \
		"llama_context::decode\(llama_batch_ext const&\) \(by the text|llama_context::decode \(by the text"
	fact "$NAME: each step has returned" "all(s['end'] == 'return' and s['complete'] for s in S)"
}

[ -x "$FBT" ] || skip "no $FBT: build it first"
command -v node >"$TMP/which" || skip 'node is not installed'
node "$HERE/model.mjs" "$TMP/model.gguf" || skip 'the model could not be written'
fetch_engine
start_debian_server -t 1
check_steps
check_healthy 600
check_trouble
holds "$NAME serves on when the tool has gone" \
	node "$HERE/load.mjs" "$PORT" 2 2 4 "${LOAD_ARGS[@]}"
kill "$PID"
wait "$PID"
is "$NAME ends well on SIGTERM" $? 0
finish

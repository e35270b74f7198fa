#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Attaches to llama.cpp under concurrent requests, and holds what the tool says against what the
# engine counts itself and what bpftrace counts at the same tracepoints in two windows, one around
# the tool's and one inside it. FBT_E2E_CACHE is where the engine is installed (build/e2e).
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/../live/lib.sh"

CACHE=$(realpath -m "${FBT_E2E_CACHE:-build/e2e}")
HERE=$PWD/tests/e2e

skip()
{
	echo "SKIP $1"
	exit 77
}

# until_true SECONDS COMMAND…: runs it until it succeeds
until_true()
{
	local tries=$(($1 * 20))

	shift
	while [ "$tries" -gt 0 ]; do
		"$@" && return 0
		sleep 0.05
		tries=$((tries - 1))
	done
	return 1
}

run_npm()
{
	npm ci --prefix "$CACHE" --omit=optional --ignore-scripts --no-audit --no-fund \
		--fetch-retries 3 --fetch-retry-mintimeout 1000 --fetch-retry-maxtimeout 5000 \
		--cache "$CACHE/npm-cache"
}

install_engine()
{
	local lock=$CACHE/package-lock.json

	[ "$(uname -m)" = x86_64 ] || skip 'the pinned llama.cpp package is for x86-64'
	command -v npm >/dev/null || skip 'npm is not installed'
	command -v node >/dev/null || skip 'node is not installed'
	if ! cmp -s "$HERE/package-lock.json" "$lock" || [ ! -e "$CACHE/installed" ]; then
		rm -rf "$CACHE"
		mkdir -p "$CACHE"
		cp "$HERE/package.json" "$HERE/package-lock.json" "$CACHE"
		if ! run_npm >"$TMP/npm" 2>&1; then
			sed 's/^/# /' "$TMP/npm"
			skip "npm could not install it: $(grep -m1 -iE '^npm err' "$TMP/npm")"
		fi
		rm -rf "$CACHE/npm-cache"
		touch "$CACHE/installed"
	fi
	node "$HERE/model.mjs" "$TMP/model.gguf" || skip 'the model could not be written'
}

# start_server THREADS: sets PID and PORT
start_server()
{
	rm -f "$TMP/server.out"
	node "$HERE/server.mjs" "$CACHE/node_modules" "$TMP/model.gguf" "$1" \
		>"$TMP/server.out" 2>"$TMP/server.err" &
	if ! until_true 60 grep -qs '^ready' "$TMP/server.out"; then
		sed 's/^/# /' "$TMP/server.err"
		not_ok 'llama.cpp starts'
		finish
	fi
	read -r _ PID PORT < <(grep '^ready' "$TMP/server.out")
}

get()
{
	node -e 'fetch(process.argv[1]).then(async (r) => process.stdout.write(await r.text()))' \
		"http://127.0.0.1:$PORT/$1"
}

# start_counter NAME: sets COUNTER to a bpftrace that counts the calls that begin and end in its
# time, and llama_decode's
start_counter()
{
	local library=$TMP/libllama.so

	# A path that its parser takes: no @ in it.
	ln -sf "$(awk '/libllama\.v?[0-9.so]+$/ {print $NF; exit}' "/proc/$PID/maps")" "$library"
	cat >"$TMP/$1.bt" <<-PROGRAM
		tracepoint:raw_syscalls:sys_enter /pid == $PID/ { @in[tid] = (uint64)1 }
		tracepoint:raw_syscalls:sys_exit /pid == $PID && @in[tid]/ {
			@calls[args->id] = count();
			if (args->ret < 0) { @errors[args->id] = count() }
			delete(@in[tid]);
		}
		uprobe:$library:llama_decode /pid == $PID/ {
			// The batch is passed by value, n_tokens comes first.
			@decodes = count(); @tokens = sum(*(int32 *)(reg("sp") + 8));
		}
		interval:ms:200 { if (@armed == 0) { @armed = 1; printf("armed\n"); } }
		END { clear(@in); clear(@armed); }
	PROGRAM
	rm -f "$TMP/$1.json" # of the round before: it says armed
	bpftrace -f json -B line "$TMP/$1.bt" >"$TMP/$1.json" 2>"$TMP/$1.err" &
	COUNTER=$!
	until_true 20 grep -qs armed "$TMP/$1.json"
}

# stop PROCESS: as Ctrl-C does; its exit status
stop()
{
	kill -INT "$1"
	wait "$1"
}

# start_tool ARGUMENT…
start_tool()
{
	rm -f "$TMP/profile" "$TMP/trace" # the round before's: a profile is appended to
	"$FBT" -p "$PID" --report json --profile "$TMP/profile" --trace "$TMP/trace" "$@" \
		>"$TMP/report" 2>"$TMP/tool.err" &
	TOOL=$!
	holds 'the tool attaches to llama.cpp' wait_attached "$TOOL"
}

# trace_one_load REQUESTS TOKENS DETAIL: one window, between two of bpftrace's, all requests in all
trace_one_load()
{
	local outer inner

	start_counter outer || return
	outer=$COUNTER
	start_tool --detail "$3"
	start_counter inner || return
	inner=$COUNTER
	get stats >"$TMP/before"
	get perf >/dev/null
	holds 'every request is answered while the tool watches' \
		node "$HERE/load.mjs" "$PORT" "$1" 4 "$2"
	get stats >"$TMP/after"
	get perf >"$TMP/perf"
	stop "$inner"
	stop "$TOOL"
	is 'the tool ends well on SIGINT' $? 0
	stop "$outer"
}

check_server_is_well()
{
	holds 'llama.cpp serves on when the tool has gone' node "$HERE/load.mjs" "$PORT" 2 2 4
	kill "$PID"
	wait "$PID"
	is 'llama.cpp ends well on SIGTERM' $? 0
}

check_outputs()
{
	holds 'the profile and the trace are valid' "$FBT" validate \
		--require-events step_prof,syscall_prof,window_prof "$TMP/profile" "$TMP/trace"
	node "$HERE/compare.mjs" "$TMP" || FAILED=1
}

[ -x "$FBT" ] || skip "no $FBT: build it first"
command -v bpftrace >/dev/null || skip 'bpftrace, the independent counter, is not installed'
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
install_engine
# With one thread a step is all computing. With two, llama.cpp starts a thread in every step and
# both spin, which takes long where cores are few: less work.
for round in '1 16 24 steps' '2 6 6 all'; do
	read -r threads requests tokens detail <<<"$round"
	echo "# llama.cpp with $threads threads, --detail $detail"
	start_server "$threads"
	if ! trace_one_load "$requests" "$tokens" "$detail"; then
		sed 's/^/# /' "$TMP"/*.err
		not_ok 'bpftrace counts at the same tracepoints'
		finish
	fi
	check_outputs
	check_server_is_well
done
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Attaches to llama.cpp under concurrent requests. Compares the tool's results with what the engine
# counts itself, and with what bpftrace counts at the same tracepoints in two windows, one around
# the tool's and one inside it. FBT_E2E_CACHE is where the engine is installed (build/e2e).
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/../live/lib.sh"

HERE=$PWD/tests/e2e
# shellcheck source=tests/e2e/lib/engine.sh
. "$HERE/lib/engine.sh"

# start_counter NAME CODE: sets COUNTER to a bpftrace that counts the syscalls, and the calls of
# llama_decode, that begin and end while it runs; until end_counter CODE
start_counter()
{
	local library=$TMP/libllama.so

	# bpftrace's parser needs a path without @.
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
		$(counter_ends "$2")
		END { clear(@in); clear(@armed); }
	PROGRAM
	rm -f "$TMP/$1.json" # of the round before: it says armed
	bpftrace -f json -B line "$TMP/$1.bt" >"$TMP/$1.json" 2>"$TMP/$1.err" &
	COUNTER=$!
	until_true 120 grep -qs armed "$TMP/$1.json"
}

# start_tool ARGUMENT…
start_tool()
{
	rm -f "$TMP/profile" "$TMP/trace" # the round before's: a profile is appended to
	launch "$FBT" --ready-fd 6 -p "$PID" --report json --profile "$TMP/profile" --trace "$TMP/trace" "$@" \
		>"$TMP/report" 2>"$TMP/tool.err"
	holds 'the tool attaches to llama.cpp' wait_attached "$TOOL"
}

# trace_one_load REQUESTS TOKENS DETAIL: one window between two of bpftrace's; all requests are
# within all three
trace_one_load()
{
	local outer inner

	start_counter outer "$(counter_code 0)" || return
	outer=$COUNTER
	start_tool --detail "$3"
	start_counter inner "$(counter_code 1)" || return
	inner=$COUNTER
	get stats >"$TMP/before"
	get perf >/dev/null
	holds 'every request is answered while the tool watches' \
		node "$HERE/load.mjs" "$PORT" "$1" 4 "$2"
	get stats >"$TMP/after"
	get perf >"$TMP/perf"
	end_counter "$(counter_code 1)" "$inner"
	kill -INT "$TOOL"
	wait "$TOOL"
	is 'the tool ends well on SIGINT' $? 0
	end_counter "$(counter_code 0)" "$outer"
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
# With one thread a step only computes. With two, llama.cpp starts a thread in every step and both
# spin, which takes long on few cores, so there is less work.
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

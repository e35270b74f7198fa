#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# llama.cpp under mixed prompt lengths. A healthy server gives at most one escalation in 1,000
# steps. The same server, with a lock that another thread sometimes holds for 300 ms, gives exactly
# the steps that waited for the lock, by the account of the library that holds it (held_lock.c).
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/../live/lib.sh"

HERE=$PWD/tests/e2e
# shellcheck source=tests/e2e/lib/engine.sh
. "$HERE/lib/engine.sh"

# The server goes before other programs: a step without a CPU is rightly named, but here nothing
# else may be wrong with the server. node's threads exist when it is ready.
favour()
{
	local task

	for task in /proc/"$1"/task/*; do
		chrt -f -p 1 "${task##*/}" 2>/dev/null || renice -n -20 -p "${task##*/}" >/dev/null
	done
}

# start_load REQUESTS: prompts of 20 to 140 tokens, four at once
start_load()
{
	node "$HERE/load.mjs" "$PORT" "$1" 4 24 >"$TMP/load" &
	LOAD=$!
	favour "$LOAD"
}

# Starts the tool, and beside it the kernel's counters of the server.
start_tool()
{
	OUT=$TMP/$1
	python3 "$HERE/trouble/counters.py" "$PID" "$OUT.counters" /none/cpu.stat &
	COUNTERS=$!
	until_true 10 test -e "$OUT.counters"
	run_tool -p "$PID"
	holds "$1: the tool attaches" wait_attached "$TOOL"
}

end_tool_and_counters()
{
	stop_tool
	kill "$COUNTERS"
	wait "$COUNTERS"
}

# verdict NAME ARGUMENT…: the verdict of named.mjs
verdict()
{
	node "$HERE/named.mjs" "$@" >"$TMP/verdict" || FAILED=1
	cat "$TMP/verdict"
}

check_healthy()
{
	start_tool healthy
	start_load 200
	wait "$LOAD"
	is 'healthy: every request is answered' $? 0
	end_tool_and_counters
	verdict healthy "$OUT" "$OUT.counters"
}

# shellcheck disable=SC2317
has_steps()
{
	[ "$(grep -c '"event":"step_prof"' "$OUT.profile")" -ge "$1" ]
}

check_lock()
{
	start_tool lock
	start_load 100000
	# Waits until the classes are known.
	until_true 120 has_steps 300
	for _ in $(seq 12); do
		printf x >&8
		sleep 1
	done
	end_tool_and_counters
	kill "$LOAD"
	wait "$LOAD" 2>/dev/null
	verdict lock "$OUT" "$OUT.counters" "$TMP/waits"
}

[ -x "$FBT" ] || skip "no $FBT: build it first"
install_engine
start_server_with_lock 1
favour "$PID"
check_healthy
check_lock
kill "$PID"
wait "$PID"
is 'llama.cpp ends well on SIGTERM' $? 0
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# node is injected again and again: an HTTP server with workers, timers and signals, and llama.cpp
# while it generates, whose texts must equal those of an undisturbed run.
# shellcheck source=tests/e2e/inject/lib.sh
. "$(dirname "$0")/inject/lib.sh"

SIGNALS=200

check_server()
{
	local server load port

	start node-server node "$PARTS/node_server.mjs"
	server=$STARTED
	read -r _ port <"$TMP/node-server.out"
	start node-load python3 "$PARTS/http_load.py" "$port" 4 sha256
	load=$STARTED
	python3 "$PARTS/signals.py" "$server" "$port" "$SIGNALS" >"$TMP/node-signals.out" &
	inject node-server "$server"
	wait $!
	facts node-signals
	python3 "$PARTS/signals.py" "$server" "$port" "$SIGNALS" >"$TMP/node-signals.out" &
	inject 'node-server, event loop' "$server" -t "$server"
	wait $!
	facts node-signals
	end node-load "$load"
	end node-server "$server"
}

# run_llama: sets PID, PORT; the first run writes the texts
run_llama()
{
	start_server 2
	node "$PARTS/generate.mjs" "$PORT" "$TMP/texts" 2 >"$TMP/llama-before.out"
	facts llama-before
}

end_llama()
{
	kill "$PID"
	wait "$PID"
	is 'llama.cpp ends in order' $? 0
}

check_llama()
{
	install_engine
	run_llama
	end_llama
	run_llama
	# A text takes a second or more.
	PAUSE=40
	start llama-texts node "$PARTS/generate.mjs" "$PORT" "$TMP/texts"
	inject llama.cpp "$PID"
	inject 'llama.cpp, event loop' "$PID" -t "$PID"
	end llama-texts "$STARTED"
	end_llama
}

command -v node >/dev/null || skip 'node is not installed'
check_server
check_llama
finish

# shellcheck shell=bash disable=SC2034,SC2153
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What the tests of real Python engines share, which serve over HTTP; sourced after live/lib.sh.

REQUESTS=6 TOKENS=30

ask()
{
	python3 tests/e2e/ferrum/load.py "$PORT" "$@"
}

choose_port()
{
	PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
}

# shellcheck disable=SC2317,SC2329 # called by name
undo()
{
	kill -- -"$PID" 2>/dev/null
}

# shellcheck disable=SC2317,SC2329 # called by name
answers()
{
	! kill -0 "$PID" 2>/dev/null || ask get "$1" 2>/dev/null | grep -q "$2"
}

# serve NAME PATH PATTERN [VARIABLE=VALUE]… COMMAND…: PID is the server, in a process group of its own, once
# what it has at PATH matches the pattern
serve()
{
	local name=$1 path=$2 pattern=$3

	shift 3
	HOME=$TMP HF_HUB_OFFLINE=1 DO_NOT_TRACK=1 setsid env "$@" >"$TMP/server" 2>&1 </dev/null 7>&- &
	PID=$!
	wait_for 300 answers "$path" "$pattern" && kill -0 "$PID" 2>/dev/null && return
	tail -n 20 "$TMP/server" | sed 's/^/# /'
	not_ok "$name starts"
	finish
}

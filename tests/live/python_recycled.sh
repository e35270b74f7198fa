#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A program that gets the number of an engine's process that has ended is not taken for that process: the
# library is not put into it.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/python/lib.sh
. tests/live/python/lib.sh

python=/usr/bin/python3
PIDS=$TMP/pids
# One word each.
sleeper=("$python" -c "__import__('time').sleep(1000)")

# tell COMMAND: the launcher does that; the child's id is in CHILD
tell()
{
	local before

	before=$(wc -l <"$PIDS")
	echo "$*" >&7
	wait_for 30 has_more "$before" || not_ok "the launcher does $*"
	CHILD=$(tail -1 "$PIDS")
}

# shellcheck disable=SC2317,SC2329 # called by name
has_more()
{
	[ "$(wc -l <"$PIDS")" -gt "$1" ]
}

# await_injected PID: each process is looked at about once a second
await_injected()
{
	await_lines 1 "process $1: libferrum_python.so injected" "$OUT.err" || not_ok "process $1 is injected"
}

: >"$PIDS"
start_waiting $python tests/live/python/launcher.py "$PIDS"
run_tool -p "$ENGINE" --python=inject
wait_attached "$TOOL" || { sed 's/^/# /' "$OUT.err" && not_ok 'the tool attaches'; }

# It is no interpreter, so nothing is put into it. It is known once one that began later is injected.
tell sleep 1000
gone=$CHILD
tell "${sleeper[@]}"
await_injected "$CHILD"
tell end "$gone"
$python tests/live/python/fork_as.py "$gone" "${sleeper[@]}" 7>&- 2>"$TMP/fork.err" &
other=$!
if ! wait_for 20 grep -qs 'python3\.' "/proc/$gone/maps"; then
	echo "SKIP a process cannot be given a number here: $(cat "$TMP/fork.err")"
	exit 77
fi

# Once two that began later are injected, one after the other, its turn has come too.
for _ in 1 2; do
	tell "${sleeper[@]}"
	await_injected "$CHILD"
done
is 'the other program is left alone' "$(grep -c "process $gone:" "$OUT.err")" 0
is 'and has nothing of ours' "$(grep -c ferrum "/proc/$gone/maps")" 0
kill "$other"
wait "$other"
exec 7>&-
wait "$ENGINE"
end_tool
finish

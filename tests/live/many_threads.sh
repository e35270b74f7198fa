#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# More threads than there is room for: threads without room are counted, and followed once there is
# room.
. "$(dirname "$0")/lib.sh"

# The tool has 2 s to count the threads that begin later; and after half of the threads have ended, 2 s
# to notice before the others make their calls.
go_first FBT

# FBT_SLOTS_MAX minus the unused first slot.
room=4095
start_program many_threads 5000 50
if ! kill -0 "$ENGINE" 2>/dev/null; then
	echo 'SKIP the limits here do not allow 5000 threads'
	exit 77
fi
run_tool -p "$ENGINE"
wait_attached "$TOOL"
# Time for another look, in which the same threads must not be counted twice.
sleep 1.2
go
wait "$ENGINE"
end_tool
fact 'those that found no room are counted, once' \
	"0 <= R['lost']['threads'] - (T['threads'] - $room) <= 4"
fact 'they are followed once others have ended: each call is there' 'table["getppid"] == T["getppid"]'
fact 'nothing else is lost' 'R["lost"]["total"] == R["lost"]["threads"]'

# Threads that begin while those that are there are listed, with no room left.
rm -f "${OUT:?}".*
start_program many_threads 4200 0 1 8000
run_tool -p "$ENGINE"
wait_attached "$TOOL"
go
wait "$ENGINE"
end_tool
fact 'those that begin meanwhile are counted once, too' \
	"-2 <= R['lost']['threads'] - (T['threads'] - $room) <= 4"

# start_beside NAME FD: one more, of two threads. Its go comes by that descriptor; its id is in BESIDE.
start_beside()
{
	mkfifo "$TMP/go.$1" "$TMP/ready.$1"
	"$FBT_BUILD/tests/live_many_threads" "$TMP/$1.json" 1 <"$TMP/go.$1" >"$TMP/ready.$1" 7>&- 8>&- &
	BESIDE=$!
	eval "exec $2>\"\$TMP/go.$1\""
	read -r _ <"$TMP/ready.$1"
}

# Two processes beside a crowd that has all the room. When one thread of the crowd ends, one of the two
# finds room for a thread, and the other finds none; when the crowd has ended, both do.
rm -f "${OUT:?}".*
start_program many_threads 4200 0 1
start_beside first 8
first=$BESIDE
start_beside second 9
second=$BESIDE
run_tool -p "$ENGINE" -p "$first" -p "$second"
wait_attached "$TOOL"
go
wait "$ENGINE"
echo >&8
echo >&9
exec 8>&- 9>&-
wait "$first" "$second"
end_tool
fact 'a process of which no thread has room is not taken for one that has ended' \
	"[tables.get(pid, {}).get('getppid') for pid in ($first, $second)] == [20, 20]"
finish

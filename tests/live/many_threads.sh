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
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# No program of uprobes has a stack that belongs to the CPU: it may be preempted, and another thread
# that runs it there would write into the stack of the first (bpf/own_stack.bpf.h).
. "$(dirname "$0")/lib.sh"

[ "$(uname -m)" = x86_64 ] || { echo 'SKIP the machine code of this architecture is not known' && exit 77; }

# taken NAME [SECONDS]: how many functions of that program take such a stack, once it is loaded
taken()
{
	python3 tests/live/jited.py "$1" "${2:-0}"
}

start_engine --steps 0 --compute-us 2000
attach
go
# Programs of tracepoints have them, where the kernel does that at all: so one would be seen.
if [ "$(taken handle_sys_exit)" = - ]; then
	echo 'SKIP the kernel shows no machine code'
	stop_tool
	exit 77
fi
if printf '%s\n' 6.13 "$(uname -r)" | sort -VC; then
	holds 'a program of tracepoints has one, and it is seen' test "$(taken handle_sys_exit)" -gt 0
else
	echo 'SKIP a program of tracepoints has one: not before Linux 6.13'
fi
is 'that of the steps has none' "$(taken handle_step)" 0
stop_tool

taken handle_rate 120 >"$TMP/taken" &
waiter=$!
"$FBT" --list-steps -p "$ENGINE" >"$TMP/list" 2>&1
wait $waiter
is 'that of candidates has none' "$(cat "$TMP/taken")" 0
kill -TERM "$ENGINE"
wait "$ENGINE"
finish

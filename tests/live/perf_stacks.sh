#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The stacks of slow calls, held against those that perf takes at the end of the same calls, from DWARF
# too, with its own copy of the stack.
. "$(dirname "$0")/lib.sh"

events=(-e syscalls:sys_exit_clock_nanosleep -e syscalls:sys_exit_futex -e syscalls:sys_exit_read)
if ! perf record -q -o "$TMP/probe" "${events[@]}" --call-graph dwarf -k CLOCK_MONOTONIC true >/dev/null 2>"$TMP/perf"; then
	echo "SKIP no perf with DWARF here: $(head -1 "$TMP/perf")"
	exit 77
fi
if ! g++ -D_GNU_SOURCE -O2 -g -fomit-frame-pointer -Wl,--build-id=sha1 tests/live/stacks.cc -o "$TMP/stacks" \
	-lpthread -ldl 2>"$TMP/g++"; then
	echo "SKIP no g++ for it here: $(head -1 "$TMP/g++")"
	exit 77
fi

start_waiting "$TMP/stacks" "$TMP/truth.json" 2
run_tool -p "$ENGINE" --step engine_step --record "$OUT.capture"
wait_attached "$TOOL"
mkfifo "$TMP/control" "$TMP/answer"
exec 8<>"$TMP/control" 9<>"$TMP/answer"
perf record -q -o "$TMP/perf.data" "${events[@]}" -k CLOCK_MONOTONIC --call-graph dwarf,65528 -m 64M -t "$ENGINE" \
	--control "fd:8,9" -D -1 7>&- >/dev/null 2>"$TMP/perf" &
recorder=$!
echo enable >&8
read -r -t 60 _ <&9
go
wait "$ENGINE"
wait "$recorder"
end_tool
"$FBT_BUILD/tests/live_capture_json" "$OUT.capture" >"$OUT.json" || not_ok 'a capture'
perf script -i "$TMP/perf.data" --no-inline --ns -F tid,time,ip,sym,symoff,dso >"$OUT.perf" 2>/dev/null
python3 tests/live/perf_stacks.py "$OUT.json" "$OUT.perf" "$ENGINE" || FAILED=1
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The stacks of slow calls: of C++ without frame pointers, with a large frame, recursion, a stack that
# is too large, of who ended a wait, of a stripped program; against backtrace(3) and gdb.
. "$(dirname "$0")/lib.sh"

if ! g++ -D_GNU_SOURCE -O2 -g -fomit-frame-pointer -Wl,--build-id=sha1 tests/live/stacks.cc -o "$TMP/stacks" \
	-lpthread -ldl 2>"$TMP/g++"; then
	echo "SKIP no g++ for it here: $(head -1 "$TMP/g++")"
	exit 77
fi

# trace_stacks PROGRAM STEP ARGUMENT…
trace_stacks()
{
	local program=$1 step=$2

	shift 2
	rm -f "${OUT:?}".*
	start_waiting "$program" "$TMP/truth.json" "$@"
	run_tool -p "$ENGINE" --step "$step" --record "$OUT.capture"
	wait_attached "$TOOL"
	go
}

finish_trace()
{
	wait "$ENGINE"
	end_tool
	"$FBT_BUILD/tests/live_capture_json" "$OUT.capture" >"$OUT.json" || not_ok 'a capture'
}

trace_stacks "$TMP/stacks" engine_step 3
finish_trace
python3 tests/live/stacks.py "$TMP/truth.json" "$OUT.json" || FAILED=1
if grep -q ABCDEFGHIJKLM "$OUT.capture"; then
	not_ok 'the capture has no bytes of a stack'
else
	ok 'the capture has no bytes of a stack'
fi
"$FBT" --replay "$OUT.capture" -o "$TMP/again" >/dev/null 2>&1
is 'a replay has the same stacks' "$(grep -o '"cause_stack":"[^"]*"' "$TMP/again.jsonl")" \
	"$(grep -o '"cause_stack":"[^"]*"' "$OUT.profile")"

named()
{
	fact "$1: the profile says where" \
		"any(g.get('cause_stack') == '$2' and g['cause'] in '$3'.split() for g in G.values())"
}
named pipe 'read_pipe <- engine_step' 'socket_io late_thread'
named nap 'pause_for <- engine_step' sleep
named deep 'deep_frame <- engine_step' sleep
named recursion 'forward x9 <- engine_step' sleep
named cut 'too_deep <- ... (the stack is cut off)' sleep
named lock 'take_lock <- engine_step' lock_contention
fact 'lock: and in which function it was given back' \
	"any(g.get('waker_stack', '').startswith('Holder::evict_sleep+0x') for g in G.values() if g['cause'] == 'lock_contention')"
has 'the alert has the stack' "$OUT.err" '; in take_lock <- engine_step'
has 'the report has the commonest of a cause' "$OUT.report" '"take_lock <- engine_step"'

# Without symbols: what can be named later, by build-id and address.
cp "$TMP/stacks" "$TMP/bare"
strip "$TMP/bare"
step=$(nm "$TMP/stacks" | sed -n 's/^0*\([0-9a-f]*\) T engine_step$/\1/p')
trace_stacks "$TMP/bare" "$TMP/bare+0x$step" 3
finish_trace
fact 'stripped: functions are addresses' \
	"all({n.split('+')[0] for n in g['cause_stack'].split(' <- ')} == {'bare'} for g in G.values()
		if g.get('cause_stack') and 'cut off' not in g['cause_stack'])"
fact 'stripped: the stack is as long' "any(' <- bare+0x' in g.get('cause_stack', '') for g in G.values())"
python3 tests/live/stacks.py "$TMP/truth.json" "$OUT.json" || FAILED=1

if ! command -v gdb >/dev/null; then
	finish
fi
trace_stacks "$TMP/stacks" engine_step 1 deep
until grep -q nanosleep "/proc/$ENGINE/stack" 2>/dev/null || [ ! -e "/proc/$ENGINE" ]; do sleep 0.01; done
sleep 0.2
gdb -p "$ENGINE" -batch -ex 'thread 1' -ex bt >"$OUT.gdb" 2>&1
finish_trace
python3 tests/live/stacks.py "$OUT.json" "$OUT.gdb" || FAILED=1
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# C++ steps that are left by exceptions, and by the end of their thread.
. "$(dirname "$0")/lib.sh"

if ! g++ -D_GNU_SOURCE -O2 -g tests/live/thrown.cc -o "$TMP/thrown" -lpthread 2>"$TMP/g++"; then
	echo "SKIP no g++ for it here: $(head -1 "$TMP/g++")"
	exit 77
fi
start_waiting "$TMP/thrown" "$TMP/truth.json" 600
run_tool -p "$ENGINE" "${calm[@]}" --step by_throw --step by_far --step by_own --step by_tail --step by_exit
wait_attached "$TOOL"
go
wait "$ENGINE"
end_tool

# The steps of a function, each with the engine's account of its call; times are whole microseconds.
pairs()
{
	echo "list(zip([s for s in S if s['kind'] == '$1'], T['$1']))"
}

# On arm64 the first calls of a function with a tail call are not traced.
tail=by_tail
[ "$(uname -m)" = x86_64 ] || tail=
in_range="t[1] - 1 <= s['us']['total'] <= t[2]"
for name in by_throw by_far by_own $tail; do
	fact "$name: every call is a step" "len([s for s in S if s['kind'] == '$name']) == len(T['$name']) > 600"
	fact "$name: those that returned have, and are as long as their calls" \
		"all(s['end'] == 'return' and $in_range for s, t in $(pairs "$name") if not t[0])"
done
fact 'caught farther out: those that were thrown are marked' \
	"all(s['end'] == 'unwound' for s, t in $(pairs by_far) if t[0]) and any(t[0] for t in T['by_far'])"
fact 'caught within: none is marked' "not any(t[0] for t in T['by_own'])"
# If the handler continues after the call, control is back in the caller there.
for name in by_throw $tail; do
	fact "$name: caught by the caller: those are marked, or as long as until the handler is done" \
		"all(s['end'] == 'unwound' or s['end'] == 'return' and $in_range for s, t in $(pairs "$name") if t[0])"
done
fact 'the end of the thread is that of the step, which is marked' \
	"[s['end'] for s in S if s['kind'] == 'by_exit'] == (['return'] * (T['exits'] - 1) + ['exited']) * T['threads']"
fact 'and none of these is short' "all(s['us']['total'] >= 20 for s in S if s['kind'] == 'by_exit')"
finish

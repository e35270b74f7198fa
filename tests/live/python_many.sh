#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Many Python functions in many processes: a function is one kind in all of them, whether they share the
# library's file or each has a copy, as injected ones do.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/python/lib.sh
. tests/live/python/lib.sh

# trace_five LIBRARY…: five programs, each with one of these libraries or the only one, traced at once, as
# processes of -p or, if ALL is set, with all others
trace_five()
{
	local pids=() steps=() n

	# Those of the programs before would say that these run.
	rm -f "$TMP"/ready.*
	for n in 0 1 2 3 4; do
		LD_PRELOAD=${!#} /usr/bin/python3 tests/live/python/many.py >"$TMP/ready.$n" &
		pids+=($!)
		[ $# = 1 ] || set -- "${@:1:$#-1}"
	done
	for n in 0 1 2 3 4; do
		await_file "$TMP/ready.$n" "${pids[n]}" || not_ok 'the program runs'
	done
	rm -f "${OUT:?}".*
	for n in {0..15}; do
		steps+=(--step "py:__main__:f$n")
	done
	if [ -n "${ALL:-}" ]; then
		run_tool -a -d 1 "${steps[@]}"
	else
		run_tool -p "$(IFS=, && echo "${pids[*]}")" -d 1 "${steps[@]}"
	fi
	end_tool
	{ kill -9 "${pids[@]}" && wait "${pids[@]}"; } 2>/dev/null
}

trace_five "$LIBRARY"
is 'one file: nothing is left out' "$(grep -c 'not probed' "$OUT.err")" 0
fact 'one file: 16 kinds' 'len({s["kind"] for s in S}) == 16'
fact 'one file: of five processes' 'len({s["pid"] for s in S}) == 5'
ALL=1 trace_five "$LIBRARY"
fact 'one file, all processes: each of five has its 16 kinds' \
	'len({(s["pid"], s["kind"]) for s in S if s["kind"] != "interval"}) == 80'
for n in 0 1 2 3 4; do
	cp "$LIBRARY" "$TMP/libferrum_python.$n.so"
done
trace_five "$TMP"/libferrum_python.?.so
is 'five files: nothing is left out' "$(grep -c 'not probed' "$OUT.err")" 0
fact 'five files: 16 kinds' 'len({s["kind"] for s in S}) == 16'
fact 'five files: each of five processes' 'len({(s["pid"], s["kind"]) for s in S}) == 80'

LD_PRELOAD=$LIBRARY /usr/bin/python3 tests/live/python/many.py >"$TMP/ready" &
many=$!
await_file "$TMP/ready" $many || not_ok 'the program runs'
run_tool -p $many -d 0.5 --step py:__main__:Wide.step
end_tool
has 'that a method has more definitions than are armed is said' "$OUT.err" 'Wide\.step: 8 definitions only'
run_tool -p $many -d 0.5 --step py:__main__:f0
end_tool
is 'and nothing of a function that has one' "$(grep -c 'definitions\? only' "$OUT.err")" 0
{ kill -9 $many && wait $many; } 2>/dev/null
finish

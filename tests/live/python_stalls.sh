#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What an interpreter keeps its own steps from: garbage collections, and waits for its lock, in each
# interpreter that is here. Times and counts are held against the engine's own clock and counters.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/python/lib.sh
. tests/live/python/lib.sh

steps=$(at_length 300 2000)
# Neighbours on this machine take their CPUs from neither, where that is allowed.
go_first FBT
first=()
! chrt -f 1 true 2>/dev/null || first=(chrt -f 1)
# A step's own number is one less than that of the tool.
# shellcheck disable=SC2089
collect='{int(n): (S[int(n)], t) for n, t in T["collect"].items()}'
wait='{int(n): (S[int(n)], t) for n, t in T["wait"].items()}'
# shellcheck disable=SC2089
evidence='{n - 1: e["cause_evidence"] for n, e in H.items() if e["cause"] == "gil"}'

# Those of these steps that have another cause. The first 60 steps are too few to tell what is usual
# where their work differs by the machine's noise. One without a verdict must be among those that the
# report says were not judged, beside the first ten of the window.
# shellcheck disable=SC2089
misnamed='lambda slow, cause: [(n, H[n + 1]["cause"], H[n + 1]["cause_evidence"], S[n]["us"]) for n in slow
	if n + 1 in H and H[n + 1]["cause"] != cause] + [("no verdict", n, S[n]["us"]) for n in slow if n + 1 not in H][
	max(R["escalations"]["unjudged"] - 10, 0):] + ["few"][:len(slow) <= 2]'

# Of a step: what it took to wake other threads, as its calls say. Those of a step that was not judged
# are not sent.
# shellcheck disable=SC2089
wakes='sum(x["dur"] for x in inside(n + 1) if x["name"] == "futex" and x["args"]["op"] == "wake")'

# shellcheck disable=SC2016
# trace_stalls INTERPRETER TOOL-OPTION…: one run from the go to the end of both; $preload is loaded
trace_stalls()
{
	local path=$1

	shift
	rm -f "${OUT:?}".*
	start_waiting env ${preload:+LD_PRELOAD="$preload"} "${first[@]}" "$path" tests/live/python/stalls.py \
		"$TMP/truth.json" "$steps"
	cp "/proc/$ENGINE/maps" "$TMP/maps"
	run_tool -p "$ENGINE" --rate-limit 100000 --record "$OUT.fbt" "$@"
	wait_attached "$TOOL" || { sed 's/^/# /' "$OUT.err" && not_ok 'the tool attaches'; }
	go
	wait "$ENGINE"
	end_tool
}

check_collections()
{
	fact "$1: each collection is in its step" \
		"all(s['gc_collections'] == 1 for s, t in ($collect).values())"
	fact "$1: no other is, but those that its own objects started" \
		"sum(s['gc_collections'] for s in S) == T['collections'] - T['others'] > $steps / 20"
	fact "$1: what their probes cost is counted" \
		"R['cost']['collections'] >= T['collections'] and R['cost']['per_collection_ns'] >= 1000"
	fact "$1: nor one of another thread" \
		"T['others'] == $steps / 20 and not any(s['gc_collections'] for s, t in ($wait).values())"
	fact "$1: those that were asked for are of generation 2" \
		"all(s['gc_generation'] == 2 for s, t in ($collect).values())"
	fact "$1: none takes longer than by the engine's clock" \
		"all(s['us']['gc_longest'] <= t['wall_ns'] / 1000 + 1 for s, t in ($collect).values())"
	# The host of a virtual machine may take the CPU between the engine's clock and the probe.
	none "$1: nor is one cut, but for what kept the thread off its CPU" \
		"[(n, s, t) for n, (s, t) in ($collect).items()
		if s['us']['gc_longest'] + s['us']['cpu_wait'] + s['us']['off_cpu'] < t['inner_ns'] / 1100 - 200]"
	fact "$1: and most are as long as by the engine's clock" \
		"sorted(t['inner_ns'] / 1000 - s['us']['gc_longest'] - s['us']['cpu_wait'] - s['us']['off_cpu']
		for s, t in ($collect).values())[len($collect) // 2] < 120"
	# What the host of a virtual machine took since the last tick (of 4 ms at most) is in the thread's time still.
	none "$1: on a CPU no longer than the thread was" \
		"[(n, t, s['us']) for n, (s, t) in ($collect).items()
		if s['us']['gc'] > (t['cpu_ns'] + min(t['wall_ns'] - t['cpu_ns'], 4000000)) / 1000 + 100 or
		s['us']['gc'] > s['us']['own']]"
	none "$1: a step that mostly collects is named for that" \
		"($misnamed)([n for n, (s, t) in ($collect).items()
		if n > 60 and s['us']['gc'] > s['us']['total'] * 3 / 4], 'garbage_collection')"
	fact "$1: such are all that collect, but for the first and those that had no CPU" \
		"all(s['us']['gc'] > s['us']['total'] * 3 / 4 for s, t in ($collect).values()
		if (s['us']['cpu_wait'] + s['us']['off_cpu']) * 8 < s['us']['total'])"
}

# The other thread may be late: only what the step and its hold have in common is a wait.
check_gil()
{
	fact "$1: waits for the GIL are part of the time in futex" \
		"all(s['us']['gil'] <= s['us']['futex_net'] <= s['us']['total'] for s in S)"
	fact "$1: they are no longer than by the engine's clock" \
		"all(s['us']['gil'] <= t['wall_us'] - t['slept_us'] + 200 for s, t in ($wait).values())"
	none "$1: nor shorter: nothing else is in futex, but waking others" \
		"[(n, s['us'], t, [(x['dur'], x['args']) for x in inside(n + 1) if x['name'] == 'futex'])
		for n, (s, t) in ($wait).items() if inside(n + 1) and s['us']['futex_net'] > s['us']['gil'] + $wakes + 200]"
	fact "$1: of most of them that is known" \
		"sum(len(inside(n + 1)) > 0 for n in $wait) * 2 > len($wait)"
	fact "$1: and make up most of it" \
		"sum(s['us']['gil'] for s, t in ($wait).values()) * 2 >
		sum(t['wall_us'] - t['slept_us'] - s['us']['cpu_wait'] for s, t in ($wait).values())"
	fact "$1: other steps hardly wait" \
		"sum(s['us']['gil'] for n, s in enumerate(S) if n not in $wait and n > 0) <
		sum(s['us']['gil'] for s, t in ($wait).values()) / 10"
	none "$1: a step that mostly waits is named for that" \
		"($misnamed)([n for n, (s, t) in ($wait).items()
		if n > 60 and s['us']['gil'] > s['us']['total'] * 3 / 4], 'gil')"
	fact "$1: such are most of those that wait, but for those that had no CPU" \
		"sum(s['us']['gil'] > s['us']['total'] * 3 / 4 for s, t in ($wait).values()) * 2 >=
		sum((s['us']['cpu_wait'] + s['us']['off_cpu']) * 8 < s['us']['total'] for s, t in ($wait).values())"
	fact "$1: mostly with the thread that held it" \
		"sum(f'thread {T[\"holder\"]}' in e for e in $evidence.values()) * 2 >= len($evidence)"
	fact "$1: and with what that did" \
		"sum('which computed' in e for n, e in $evidence.items() if n % 20 == 8) * 2 >=
		sum('which waited for a CPU' not in e for n, e in $evidence.items() if n % 20 == 8) and
		sum('which was in clock_nanosleep' in e for n, e in $evidence.items() if n % 40 == 13) * 2 >=
		sum('which waited for a CPU' not in e for n, e in $evidence.items() if n % 40 == 13)"
	fact "$1: in all of the wait, not only in the last call of it" \
		"sum('which was in clock_nanosleep' in e for n, e in $evidence.items() if n % 40 == 33) * 2 >=
		sum('which waited for a CPU' not in e for n, e in $evidence.items() if n % 40 == 33)"
}

linked=
while read -r version path; do
	preload=$LIBRARY trace_stalls "$path" --step 'py:__main__:Engine.step'
	fact "$version: each call is a step" "len(S) == $steps"
	check_collections "$version"
	check_gil "$version"
	none "$version: and if it collected, with that" \
		"[(n, e) for n, e in $evidence.items() if 'of it for thread' in e and 'waited for a CPU' not in e and
		('which collected garbage' in e) != (n % 20 == 16)]"
	holds "$version: outputs are valid" "$FBT" validate "$OUT.profile" "$OUT.trace"

	# Nothing is loaded: steps are intervals.
	preload='' trace_stalls "$path"
	fact "$version, intervals: all collections are seen" \
		"sum(s['gc_collections'] for s in S) == T['collections'] and
		sum(s['us']['gc'] for s in S) * 1000 >= sum(t['wall_ns'] for t in T['collect'].values()) * 0.5"
	fact "$version, intervals: so are waits for the GIL" \
		"all(s['us']['gil'] <= s['six']['futex'] for s in S) and
		sum(s['us']['gil'] for s in S) * 1000 > sum(b - a for a, b in T['holds']) * 0.5"
	is "$version, intervals: nothing was loaded" \
		"$(grep -c -e 'libferrum_python' "$OUT.err")" 0
	! ldd "$path" | grep -q libpython || linked=$path
done < <(interpreters)

# Without USDT probes and local symbols collections are not measured, and nothing says that there were none.
library=$(ldd "${linked:-/bin/true}" | awk '/libpython/ { print $3 }')
if [ -z "$library" ] || readelf -n "$library" 2>/dev/null | grep -q gc__start; then
	echo 'SKIP stripped: no interpreter here is a library without USDT probes'
else
	strip -o "$TMP/$(basename "$library")" "$library"
	preload="$TMP/$(basename "$library") $LIBRARY" trace_stalls "$linked" --step 'py:__main__:Engine.step'
	fact 'stripped: collections are not measured' \
		"len(S) == $steps and not any('gc' in s['us'] or 'gc_collections' in s for s in S)"
	fact 'stripped: the report says so' 'R["processes"][0]["python"]["collections"] == "none"'
	check_gil stripped
	"$FBT" --replay "$OUT.fbt" >"$TMP/report" 2>&1
	has 'stripped: so does its text' "$TMP/report" 'garbage collections are not'
fi

# A program that is an interpreter itself, beside whose library nothing runs, as TensorRT-LLM maps it.
own=$(/usr/bin/python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')
idle=$(compgen -G "/usr/lib/*/lib$(basename "$own").so.1.0" | head -1)
if [ -z "$idle" ] || ldd "$own" | grep -q libpython; then
	echo 'SKIP idle library: no interpreter here has its own code and a library beside it'
else
	preload="$idle $LIBRARY" trace_stalls "$own" --step 'py:__main__:Engine.step'
	holds 'idle library: it is mapped' grep -q libpython "$TMP/maps"
	fact 'idle library: each call is a step' "len(S) == $steps"
	check_collections 'idle library'
	check_gil 'idle library'
fi

# So many collections that their probes would cost too much.
/usr/bin/python3 -c 'import gc
while True: gc.collect(0)' &
hot=$!
rm -f "${OUT:?}".*
RATE_GUARD=0.1 run_tool -p $hot
wait_attached "$TOOL"
holds 'often: the probes are removed' wait_for 60 grep -q 'collections are not measured any more' "$OUT.err"
stop_tool
kill $hot
fact 'often: the report says so' 'R["processes"][0]["python"]["collections"] == "off"'
fact 'often: and nothing is told of later intervals' "'gc' in S[0]['us'] and 'gc' not in S[-1]['us']"

# Neither is anything with --python=off.
preload='' trace_stalls /usr/bin/python3 --python=off
fact 'off: nothing is measured' "not any('gc' in s['us'] or 'gil' in s['us'] for s in S)"
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The rate guard: a function that is called as fast as possible is let go, and its traced steps are
# a sample. A slow function, within which it is called too, has all of its steps.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/hot/lib.sh
. tests/live/hot/lib.sh

RATE_GUARD=5

# pace: calls of hot_step so far, and how many ns its thread ran
pace()
{
	echo "$(number 0) $(cut -d' ' -f1 "/proc/$ENGINE/task/$(number 2)/schedstat")"
}

# calls_per_ms: per ms of the thread's own running time, whatever else this machine does
calls_per_ms()
{
	local before after

	read -ra before < <(pace)
	sleep 1
	read -ra after < <(pace)
	echo $(((after[0] - before[0]) * 1000000 / (after[1] - before[1] + 1)))
}

# times_told: 0 if the tool has not opened its stderr yet
times_told()
{
	local count

	count=$(grep -c 'times a second' "$OUT.err" 2>/dev/null)
	echo "${count:-0}"
}

# await_told N
await_told()
{
	for _ in $(seq 600); do
		[ "$(times_told)" -lt "$1" ] || return 0
		kill -0 "$TOOL" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

# trace_hot ARGUMENT…: attaches, and waits until the guard has acted
trace_hot()
{
	rm -f "${OUT:?}".*
	run_tool -v -p "$ENGINE" --detail steps "${calm[@]}" "$@"
	await_told 1
}

# own_calls NAME: calls that pass a call site while the probes are switched count for nothing. If
# they did, the function would get probes on its exits while it is let go: in one run of three one of
# them stays, but the tool says so in nearly every run.
own_calls()
{
	is "$1: its own calls are not taken for those of others" \
		"$(grep -c 'others pass its call sites' "$OUT.err")" 0
}

# compare NAME ROUNDS ARGUMENT…: the target's speed under trace and alone, in turns
compare()
{
	local name=$1 rounds=$2 alone=0 traced=0

	shift 2
	for _ in $(seq "$rounds"); do
		alone=$((alone + $(calls_per_ms)))
		trace_hot "$@"
		traced=$((traced + $(calls_per_ms)))
		stop_tool
	done
	echo "# $name: $((traced / rounds)) calls per ms, alone $((alone / rounds))"
	holds "$name: no probe is left while it is let go" [ $((3 * traced)) -gt "$alone" ]
	has "$name: the user is told, and what to do" "$OUT.err" \
		'hot_step: .*--step'
	is "$name: once" "$(times_told)" 1
	own_calls "$name"
}

start_hot()
{
	rm -f "$TMP/counts"
	start_program hot "$TMP/counts" "$1"
	go
	wait_for 60 exceeds 0 1000 || not_ok 'the program runs'
}

stop_hot()
{
	kill "$ENGINE"
	wait "$ENGINE"
}

start_hot 0
compare 'a hot function' 2 --step hot_step --step slow_step

compare 'all children' 1 --step hot_step --step slow_step -f
FBT_UPROBES=perf compare 'perf uprobes' 1 --step hot_step
has 'perf uprobes: they stay off for long' "$OUT.err" 'for a moment each minute'

# Alone, so that no other probe is in the code.
trace_hot --step hot_step
probed=$(python3 tests/live/breakpoints.py "$ENGINE" 3)
stop_tool
own_calls 'alone'
echo "# alone: a probe was in the code in $probed of 100 looks"
holds 'alone: for most of the time no probe is in the code' [ "$probed" -le 50 ]
stop_hot

# One longer run, checked by its outputs. The slow function calls the hot one too.
start_hot 100
alone=$(calls_per_ms)
first=$(number 1)
trace_hot --step hot_step --step slow_step
least=$(number 1)
sleep 3
# On a busy machine it may take a while until there was a slice.
for _ in $(seq 600); do
	! grep -q '"sampled":true' "$OUT.profile" || break
	sleep 0.1
done
pace=$(calls_per_ms)
echo "# beside a slow step: $pace calls per ms, alone $alone"
holds 'beside a slow step: no probe is left while it is let go' [ $((3 * pace)) -gt "$alone" ]
least=$(($(number 1) - least))
stop_tool
own_calls 'beside a slow step'
most=$(($(number 1) - first))
slow='[s for s in S if s["kind"] == "slow_step"]'
hot='[s for s in S if s["kind"] == "hot_step"]'
of_slow='{k["name"]: k for k in R["kinds"]}["slow_step"]["sampling"]'
of_hot='{k["name"]: k for k in R["kinds"]}["hot_step"]["sampling"]'
fact 'each step of the slow function is there' "$least <= len($slow) <= $most"
fact 'and whole: its calls, its end, its gap but where probes were switched' \
	"all(s['by']['other']['calls'] == 4 and s['end'] == 'return' and 'sampled' not in s
		for s in ${slow}[:-1]) and
	sum('gap' in s['us'] for s in $slow) > len($slow) / 2"
fact 'no gap reaches over a switch' "all(s['us'].get('gap', 0) < 900000 for s in S)"
fact 'no step of the hot function does either' \
	"all(s['us']['total'] - s['us'].get('run_delay', 0) < 500000
		for s in $hot if s['end'] == 'return')"
fact 'those of the first moment are no sample, others are' \
	"'sampled' not in ${hot}[0] and sum('sampled' in s for s in $hot) > 0"
fact 'the window says so' \
	"W['sampled_functions'] == 1 and W['sampled_function'] == 'hot_step' and
	0 < W['sampled_percent'] < 90 and W['sampled_calls_per_s'] > 100"
fact 'the report says of what time, and how often it is called' \
	"$of_slow is None and
	${of_hot}['watched_percent'] == W['sampled_percent'] and
	${of_hot}['calls'] >= len($hot) and
	${of_hot}['off_ns'] > 10**9"
fact 'all but those that were cut are whole' \
	"sum(s['end'] == 'truncated' for s in $hot) <= ${of_hot}['cut_steps'] + 1"
holds 'outputs are valid' "$FBT" validate -q "$OUT.profile" "$OUT.trace"
holds 'steps of the trace say that they are a sample' grep -q '"sampled":true' "$OUT.trace"

# Windows by flag.
rm -f "${OUT:?}".*
env --default-signal=INT "$FBT" -p "$ENGINE" --step hot_step --flag "$TMP/flag" --dir "$TMP" \
	--detail steps --report none "${calm[@]}" --rate-guard 1 2>"$OUT.err" 7>&- &
TOOL=$!
await_lines 1 '^waiting for /' "$OUT.err" || not_ok 'by flag: the tool waits'
for window in 1 2; do
	touch "$TMP/flag"
	holds "window $window by flag says so" await_told $window
	rm "$TMP/flag"
	await_lines $((window + 1)) '^waiting for /' "$OUT.err" ||
		not_ok "window $window by flag ends"
done
stop_tool

# Without the guard no function is let go.
rm -f "${OUT:?}".*
run_tool -p "$ENGINE" --step hot_step --detail steps "${calm[@]}" --rate-guard 0 -n 20000
end_tool
is 'without a guard nobody is told' "$(times_told)" 0
fact 'and nothing is a sample' \
	'"sampled_functions" not in W and all("sampled" not in s for s in S) and len(S) == 20000'

trace_hot --step hot_step --record "$TMP/capture" --rate-guard 1
stop_tool
was=$(q '[k["sampling"] for k in R["kinds"]]')
"$FBT" -q --replay "$TMP/capture" --report json --trace none --profile none >"$OUT.report" 2>/dev/null
is 'a replay says the same' "$(q '[k["sampling"] for k in R["kinds"]]')" "$was"
stop_hot
finish

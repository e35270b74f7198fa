#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The rate guard and functions that become hot and cool down again, also two at once. The probes are
# links for one process or for all, --uretprobe, or USDT places, also in a COMMAND.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/hot/lib.sh
. tests/live/hot/lib.sh

RATE_GUARD=5

# heat N: 0 none, 1 the first, 2 the second, 3 both
heat()
{
	printf '%b' "\\x$1" | dd of="$TMP/counts" bs=1 seek=16 conv=notrunc status=none
}

# await_line N REGEX: until stderr, which may not be open yet, has that many matching lines
# shellcheck disable=SC2317
await_line()
{
	local count

	for _ in $(seq 2400); do
		count=$(grep -cE "$2" "$OUT.err" 2>/dev/null)
		[ "${count:-0}" -lt "$1" ] || return 0
		kill -0 "$TOOL" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

# shellcheck disable=SC2317
await_sample()
{
	for _ in $(seq 600); do
		! grep -q '"sampled":true' "$OUT.profile" || return 0
		sleep 0.1
	done
	return 1
}

told='_step: called at least .* times a second'
steps=(--step first_step --step second_step --detail steps "${calm[@]}")
rm -f "$TMP/counts"
start_program hot_turns "$TMP/counts"
go
wait_for 60 exceeds 1 3 || not_ok 'the program runs'

# Within a window both functions become hot and cool down.
run_tool -p "$ENGINE" "${steps[@]}"
wait_attached "$TOOL"
await_calls 0 20
heat 3
holds 'both are let go once they are hot' await_line 2 "$told"
holds 'and are a sample' await_sample
heat 0
holds 'both are traced again once they are not' await_line 2 'called less often now'
first=$(number 0)
await_calls 0 50
last=$(number 0)
stop_tool
one='[s for s in S if s["kind"] == "first_step"]'
two='[s for s in S if s["kind"] == "second_step"]'
fact 'before, all steps were whole' "all('sampled' not in s for s in ${one}[:20])"
fact 'meanwhile they were a sample' \
	"sum('sampled' in s for s in $one) > 0 and sum('sampled' in s for s in $two) > 0"
fact 'afterwards each step is there, and no sample' \
	"len($one) - 1 - max(i for i, s in enumerate($one) if 'sampled' in s) >= $last - $first"
fact 'the window names them' "W['sampled_functions'] == 2"

# Each kind of probe. On a busy machine the hot thread may have little of a CPU, so the limit is
# small.
steps+=(--rate-guard 3)
for way in --uretprobe -f -a; do
	rm -f "${OUT:?}".*
	heat 1
	if [ $way = -a ]; then
		run_tool -a "${steps[@]}"
	else
		run_tool -p "$ENGINE" $way "${steps[@]}"
	fi
	holds "$way: it is let go" await_line 1 "first$told"
	await_calls 1 20
	stop_tool
	fact "$way: the other has all of its steps" \
		"all('sampled' not in s for s in $two) and len($two) >= 20 and
		all(k['sampling'] is None for k in R['kinds'] if k['name'] == 'second_step')"
done
kill "$ENGINE"
wait "$ENGINE"
is 'the program has come to no harm' "$?" 0

# Steps of eight calls between two USDT places, without a pause.
rm -f "${OUT:?}".*
start_waiting sh -c "echo ready; exec '$FBT_BUILD/tests/live_usdt_loop' 1000000000000"
wait_for 30 [ "/proc/$ENGINE/exe" -ef "$FBT_BUILD/tests/live_usdt_loop" ]
run_tool -p "$ENGINE" --step usdt:fake:step_begin,step_end --detail steps --rate-guard 3 "${calm[@]}"
wait_attached "$TOOL"
go
holds 'usdt: it is let go' await_line 1 'called at least .* times a second'
holds 'usdt: and is a sample' await_sample
stop_tool
fact 'usdt: its steps are whole' \
	'all(s["calls"] == 8 and s["step_source"] == "usdt" for s in S if s["end"] == "return") and
	sum("sampled" in s for s in S) > 0 and "sampled" not in S[0]'
fact 'usdt: but for those that were cut' \
	'sum(s["end"] != "return" for s in S) <= R["kinds"][0]["sampling"]["cut_steps"] + 1'
holds 'usdt: the program goes on' kill -0 "$ENGINE"
kill "$ENGINE"
wait "$ENGINE" 2>/dev/null

rm -f "${OUT:?}".*
run_tool "${steps[@]}" -- "$FBT_BUILD/tests/live_hot_turns" "$TMP/truth.json" "$TMP/counts"
holds 'a COMMAND: it is let go' await_line 1 "first$told"
# The command outlives the tool.
command=$(cat "/proc/$TOOL/task/$TOOL/children")
stop_tool
# shellcheck disable=SC2086
kill $command
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The rate guard by thread: a thread that sleeps in its steps does not lose them because another
# thread with little CPU time spends all of it on probes.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/hot/lib.sh
. tests/live/hot/lib.sh

# heat N: 1 makes the first thread hot, 0 stops that
heat()
{
	printf '%b' "\\x$1" | dd of="$TMP/counts" bs=1 seek=16 conv=notrunc status=none
}

# shellcheck disable=SC2317
await_told()
{
	for _ in $(seq 1200); do
		! grep -q 'times a second' "$OUT.err" || return 0
		kill -0 "$TOOL" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

start_program hot_beside "$TMP/counts"
go
wait_for 60 exceeds 1 3 || not_ok 'the program runs'
# 800 steps a second cost little of a quarter of a CPU, except where every instruction is emulated.
run_tool -p "$ENGINE" --step any_step --detail steps --rate-guard 25 "${calm[@]}"
wait_attached "$TOOL"
await_calls 1 2000
told=$(grep -c 'times a second' "$OUT.err")
heat 1
begin=$(number 0) seconds=$SECONDS
holds 'a thread is hot beside those that sleep, and has little of its CPU: it is let go' await_told
echo "# after $(($(number 0) - begin)) calls, $((SECONDS - seconds)) s"
heat 0
stop_tool
sampling='R["kinds"][0]["sampling"]'
fact 'the first steps are no sample' '"sampled" not in S[0]'
dear='R["cost"]["per_step_ns"] > 150000'
fact 'steps that are slept in are let be' "$told == 0 or $dear"
fact 'until then all steps are there' "sum('sampled' not in s for s in S) >= 2000 or $dear"
fact 'what it costs is said of the thread that it costs' "${sampling}['cost_percent'] >= 40 or $dear and ${sampling}['cost_percent'] >= 10"
holds 'outputs are valid' "$FBT" validate -q "$OUT.profile" "$OUT.trace"
kill "$ENGINE"
wait "$ENGINE"
is 'the program has come to no harm' "$?" 0
finish

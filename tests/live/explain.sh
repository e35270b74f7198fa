#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Who took the CPU of a step, as --explain finds out after the first such step: the program knows it
# by the clock of the one who did.
. "$(dirname "$0")/lib.sh"

chrt -f 1 true 2>/dev/null || { echo 'SKIP no thread may go first here' && exit 77; }

# explained MODE [ARGUMENT…]: runs the program, and the tool with these arguments
explained()
{
	local mode=$1

	shift
	OUT=$TMP/$mode${TAG:-}
	start_program explain "$mode" "${STEPS:-520}" 40
	run_tool --step explained_step -p "$ENGINE" --record "$OUT.capture" "$@"
	wait_attached "$TOOL" || { cat "$OUT.err" && not_ok "$mode: attached"; }
	go
	wait "$ENGINE"
	wait "$TOOL"
	is "$mode: the tool ends with 0" $? 0
}

# judged MODE: compares the profile with the program's account
judged()
{
	python3 tests/live/explain.py "$1" "$TMP/truth.json" "$OUT" || FAILED=1
}

# What else runs on the machine must not make it too dear; how the price ends it is demand_test.c's.
export FBT_EXPLAIN_LIMIT_PPM=1000000

explained hog
judged hog
has 'it is said when it begins' "$OUT.err" '^who takes the CPU is looked at from now on, for about '
has 'an alert names who took the CPU' "$OUT.err" ', taken by .*fbt_hog \(pid [0-9]+'
"$FBT" --replay "$OUT.capture" --report json --trace none --profile none >"$OUT.replay" 2>/dev/null
holds 'a replay has the same causes' python3 - "$OUT.report" "$OUT.replay" <<'PY'
import json
import sys

runs = [json.load(open(name))["escalations"]["causes"] for name in sys.argv[1:]]
sys.exit(runs[0] != runs[1])
PY

explained own
judged own
has 'its own thread is named' "$OUT.err" ', taken by its own thread [0-9]+ "fbt_own"'

explained hog+own
judged hog+own

# More than are told apart in one wait, and the hog comes after them.
explained hog+crew
judged hog+crew
has 'its own threads together' "$OUT.err" ', taken by .*its own threads [0-9.]+ ms'

# More processes than have places, none of which is there when it is judged: the cgroup is what
# a user can do something about.
mounted=$(awk '$(NF - 2) == "cgroup2" { print $5; exit }' /proc/self/mountinfo)
export FBT_GROUP=$mounted/fbt_build_$$
if [ -n "$mounted" ] && mkdir "$FBT_GROUP" 2>/dev/null; then
	explained build
	judged build
	has 'the cgroup of a build is named' "$OUT.err" \
		", taken by many processes of cgroup /fbt_build_$$ [78][0-9.]* ms"
	explained build+hog
	judged build+hog
	rmdir "$FBT_GROUP"
else
	echo 'SKIP build: no cgroup of version 2 can be made here'
fi

# A step that spins for a thread which has no CPU.
if [ "$(nproc)" -ge 2 ]; then
	explained worker
	judged worker
	has 'a worker is named with who took its CPU' "$OUT.err" \
		'thread [0-9]+ "fbt_worker" had no CPU, taken by fbt_hog \(pid [0-9]+'
else
	echo 'SKIP worker: needs two CPUs'
fi

TAG=_dear FBT_EXPLAIN_LIMIT_PPM=1 explained hog
has 'too dear: refused, with the price' "$OUT.err" \
	'^who takes the CPU is not looked at: that would take [0-9.e-]+ % .* more than 0.0001 %'
judged dear

TAG=_always FBT_EXPLAIN_LIMIT_PPM=1 explained hog --explain always
judged always

TAG=_off explained hog --explain off
judged off

# After the sixth slow step the engine is healthy for seconds.
TAG=_idle STEPS=900 FBT_EXPLAIN_IDLE_MS=600 explained hog6
has 'without need: it ends' "$OUT.err" '^who takes the CPU is no longer looked at: no step has needed it for 600 ms'
judged idle

for mode in pipe socket timer; do
	explained $mode
	judged $mode
done

# Only a budget names steps that compute for longer.
STEPS=700 explained compute --budget-us 10000 --folded "$TMP/compute.folded"
judged compute
has 'an alert names the function and its caller' "$OUT.err" '; grew: slow_part <- explained_step \+[78][0-9.]* ms'

# More threads in turn than are sampled at once.
STEPS=800 explained turns --budget-us 10000
judged turns

# The cgroup is at its limit of CPU time: there is no hog.
for group in /sys/fs/cgroup/cpu /sys/fs/cgroup; do
	[ ! -e "$group/cpu.cfs_quota_us" ] && [ ! -e "$group/cpu.max" ] && continue
	group=$group/fbt_explain_$$
	mkdir "$group" 2>/dev/null && break
done
# shellcheck disable=SC2317
undo()
{
	rmdir "$group" 2>/dev/null
}
if echo 10000 >"$group/cpu.cfs_quota_us" || echo '10000 100000' >"$group/cpu.max"; then
	# shellcheck disable=SC2317 # called by name
	quota_engine()
	{
		exec sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
	} 2>/dev/null
	start_program() { start_waiting quota_engine "$FBT_BUILD/tests/live_$1" "$TMP/truth.json" "${@:2}"; }
	STEPS=250 explained quota
	judged quota
else
	echo 'SKIP quota: no cgroup with a limit of CPU time can be made here'
fi 2>/dev/null
finish

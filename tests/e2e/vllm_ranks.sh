#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A real vLLM with two ranks on two CPUs (-tp 2), one of which is stopped, slowed by another program on its
# CPU, or starved by a limit: the report names the rank that was stopped, or at its limit.
. "$(dirname "$0")/../live/lib.sh"
# shellcheck source=tests/e2e/vllm/lib.sh
. tests/e2e/vllm/lib.sh
[ "$(nproc)" -ge 2 ] || { echo 'SKIP two ranks need two CPUs' && exit 77; }

TIMES=4
group=
go_first FBT

# shellcheck disable=SC2317,SC2329 # called by name
undo()
{
	touch "$TMP/enough"
	kill -- -"$PID" 2>/dev/null
	[ -z "$group" ] || wait_for 10 rmdir "$group" 2>/dev/null
}

# A cgroup in which a process has a tenth of a CPU, of either version.
make_group()
{
	local root

	for root in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/cpu /sys/fs/cgroup/cpu,cpuacct; do
		[ -w "$root/cgroup.procs" ] || continue
		echo +cpu 2>/dev/null >"$root/cgroup.subtree_control"
		group=$root/fbt_test_$$ outside=$root/cgroup.procs
		mkdir "$group" 2>/dev/null || continue
		echo 10000 100000 2>/dev/null >"$group/cpu.max" && return
		echo 10000 2>/dev/null >"$group/cpu.cfs_quota_us" && return
		rmdir "$group"
	done
	group=
	return 1
}

# trouble KIND NUMBER PID: for the rank with that number
trouble()
{
	case $1 in
	stopped)
		began=${EPOCHREALTIME/./}
		kill -STOP "$3"
		sleep 0.3
		kill -CONT "$3"
		stopped_us=$((${EPOCHREALTIME/./} - began))
		;;
	slowed)
		# The scheduler moves other programs away from that CPU, to that of the other rank.
		for _ in 1 2 3; do timeout 1 taskset -c "$2" sh -c 'while :; do :; done' & done
		wait $!
		;;
	starved)
		echo "$3" >"$group/cgroup.procs"
		sleep 1
		echo "$3" >"$outside"
		;;
	esac
}

# steps_more COUNT: until the profile has so many more steps
steps_more()
{
	await_steps $(($(grep -c step_prof "$OUT.profile") + $1))
}

# trace_ranks [KIND NUMBER PID]: one window, with that trouble in the middle of it
trace_ranks()
{
	rm -f "${OUT:?}".*
	run_tool -p "$PID" --detail steps --rate-limit 0 --python=inject
	wait_attached "$TOOL" || { sed 's/^/# /' "$OUT.err" && not_ok 'the tool attaches' && finish; }
	steps_more 400
	[ $# = 0 ] || trouble "$@"
	steps_more 400
	stop_tool
}

team='[t for t in R["iterations"] if len(t["ranks"]) == 2][0]'
ranks="sorted(($team)['ranks'], key=lambda r: r['title'])"

# tell_ranks: both, and why each was late
tell_ranks()
{
	echo "# $(q "[(r['title'], r['late'], r['late_ns'] // 10**6, r['causes'][:2], r['worst'] and (r['worst']['where'], r['worst']['late_ns'] // 10**6, r['worst']['cause'])) for r in $ranks]")"
}

# names_limit NUMBER: it alone was late at a limit of its cgroup
names_limit()
{
	tell_ranks
	fact "$NAME: the right rank" \
		"[r['title'] for r in $ranks if any(c['cause'] == 'cpu_limit' for c in r['causes'])] == [($ranks)[$1]['title']]"
}

# names_stop NUMBER: it alone was stopped, and was late for that longest, for as long as the stop
names_stop()
{
	fact "$NAME: the right rank" \
		"[r['title'] for r in $ranks if any(c['cause'] == 'stopped' for c in r['causes'])] == [($ranks)[$1]['title']]"
	fact "$NAME: why" \
		"(lambda w: (w['cause'], w['stop_reason']))(($ranks)[$1]['worst']) == ('stopped', 'signal')"
	fact "$NAME: for how long" \
		"abs(($ranks)[$1]['worst']['late_ns'] / 1000 - $stopped_us) < 50000 + $stopped_us / 5"
	tell_ranks
}

export VLLM_CPU_OMP_THREADS_BIND='0|1'
start_server --tensor-parallel-size 2
# The first request compiles something, for some seconds.
ask 4 1 >"$TMP/first"

# Of a batch each rank reads all tokens. What the metrics count besides: vllm.sh, check_steps.
trace_requests --python=inject
echo "# $ITERATIONS iterations, $SUM tokens, $DONE requests"
is 'in health: all requests are answered' "$DONE" $((2 * REQUESTS))
each='{pid: [s["arg.n_tokens"] for s in S if s["pid"] == pid and s["kind"] == "GPUModelRunner.execute_model"]
	for pid in {s["pid"] for s in S if s["kind"] == "GPUModelRunner.execute_model"}}'
fact 'in health: each rank has the forward passes that vLLM counts' \
	"[len(list(filter(None, n))) for n in ($each).values()] == 2 * [$ITERATIONS]"
fact 'in health: and their tokens' "[sum(n) for n in ($each).values()] == 2 * [$SUM - $DONE]"

for _ in 1 2; do ask 200 until "$TMP/enough" >/dev/null & done

trace_ranks
fact 'both ranks, by their titles' "[r['title'] for r in $ranks] == ['VLLM::Worker_TP0', 'VLLM::Worker_TP1']"
fact 'all forward passes of both are joined to iterations' \
	"(lambda k: all(0 <= n - ($team)['iterations'] <= 2 for n in k.values()) and len(k) == 2)(
	dict(__import__('collections').Counter(s['pid'] for s in S if s['kind'] == 'GPUModelRunner.execute_model')))"
fact 'EngineCore.step contains them' \
	"($team)['engine']['name'] == 'EngineCore.step' and
	($team)['engine']['within_one_step'] >= ($team)['engine']['iterations'] * 0.95"
fact 'both functions are parts of them' \
	"[p['name'] for p in ($team)['parts']] == ['GPUModelRunner.execute_model', 'GPUModelRunner.sample_tokens']"
echo "# healthy: $(q "(($team)['iterations'], ($team)['p50_ns'], ($team)['late'])")"
tell_ranks
read -ra pids < <(q "' '.join(str(r['pid']) for r in $ranks)")

for time in $(seq $TIMES); do
	number=$((time % 2))
	NAME="stopped, $time"
	trace_ranks stopped $number "${pids[$number]}"
	names_stop $number
	NAME="slowed, $time"
	trace_ranks slowed $number "${pids[$number]}"
	# No fact: on two CPUs both ranks and EngineCore spin, so each waits for the others as long.
	tell_ranks
	NAME="starved, $time"
	make_group || { echo "SKIP $NAME: no cgroup with a limit of CPU time can be made here" && continue; }
	trace_ranks starved $number "${pids[$number]}"
	names_limit $number
	rmdir "$group" && group=
done
touch "$TMP/enough"
kill -TERM "$PID"
wait "$PID"
is 'vLLM ends as it wants' $? 0
finish

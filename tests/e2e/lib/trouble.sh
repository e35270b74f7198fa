# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A server under load that is well, and the same one in four kinds of trouble, held against what the
# kernel itself counts; sourced after engine.sh. The server is process $PID, which the load reaches with
# LOAD_ARGS of load.mjs. NAME is what facts begin with.
TROUBLE=$HERE/trouble
GROUP=
COUNTERS=

start_load()
{
	node "$HERE/load.mjs" "$PORT" "$1" 4 24 "${LOAD_ARGS[@]}" >"$TMP/load" 2>&1 &
	LOAD=$!
}

start_counters()
{
	python3 "$TROUBLE/counters.py" "$PID" "$TMP/counters" "${GROUP:-/none}/cpu.stat" &
	COUNTERS=$!
	until_true 10 test -s "$TMP/counters"
}

end_counters()
{
	kill "$COUNTERS"
	wait "$COUNTERS"
}

begin_watch()
{
	OUT=$TMP/$1
	start_counters
	run_tool -p "$PID"
	holds "$NAME, $1: the tool attaches" wait_attached "$TOOL" || sed 's/^/# /' "$OUT.err"
}

end_watch()
{
	stop_tool
	end_counters
}

score()
{
	node "$TROUBLE/score.mjs" "$NAME, $1" "$OUT" "$TMP/counters" "${@:2}" || FAILED=1
}

check_healthy()
{
	begin_watch healthy
	start_load "$1"
	wait "$LOAD"
	is "$NAME, healthy: every request is answered" $? 0
	end_watch
	score healthy
}

# favour PID: its threads go before others in its cgroup, but not by a real-time priority, to which
# no limit applies
favour()
{
	local task

	for task in /proc/"$1"/task/*; do
		renice -n -20 -p "${task##*/}"
	done >"$TMP/renice" 2>&1
}

# make_group: creates a cgroup in $GROUP that can be limited; v2, or v1 if v1 has the controller
make_group()
{
	local root

	for root in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/cpu /sys/fs/cgroup/cpu,cpuacct; do
		[ -w "$root/cgroup.procs" ] || continue
		echo +cpu 2>/dev/null >"$root/cgroup.subtree_control"
		GROUP=$root/fbt_test_$$
		mkdir "$GROUP" 2>/dev/null || continue
		[ -w "$GROUP/cpu.max" ] || [ -w "$GROUP/cpu.cfs_quota_us" ] || { rmdir "$GROUP" && continue; }
		# The group goes before other programs, because here nothing else may be wrong with
		# the server.
		echo 10000 2>/dev/null >"$GROUP/cpu.weight" || echo 262144 >"$GROUP/cpu.shares"
		echo "$PID" >"$GROUP/cgroup.procs" && return
		rmdir "$GROUP"
	done
	GROUP=
	return 1
}

undo()
{
	local pid

	[ -n "$GROUP" ] || return
	while read -r pid; do
		echo "$pid" >"${GROUP%/*}/cgroup.procs"
	done <"$GROUP/cgroup.procs"
	rmdir "$GROUP"
	GROUP=
}

# run_episodes KIND
run_episodes()
{
	python3 "$TROUBLE/episodes.py" "$1" "$OUT.profile" "$PID" "$GROUP" >>"$TMP/episodes" 7>&-
	is "$NAME, $1: was done" $? 0
}

# shellcheck disable=SC2317,SC2329 # called by name
has_steps()
{
	[ "$(grep -c '"event":"step_prof"' "$OUT.profile")" -ge "$1" ]
}

check_trouble()
{
	make_group || echo "SKIP $NAME, quota: no cgroup with a limit of CPU time can be made here"
	begin_watch trouble
	start_load 1000000
	favour "$PID"
	favour "$LOAD"
	# Waits until the classes are known.
	until_true 120 has_steps 500
	: >"$TMP/episodes"
	run_episodes freeze
	if command -v gdb >"$TMP/which"; then
		run_episodes gdb
	else
		echo "SKIP $NAME, gdb: it is not installed"
	fi
	run_episodes hog
	[ -z "$GROUP" ] || run_episodes quota
	end_watch
	kill "$LOAD"
	wait "$LOAD" 2>/dev/null
	score trouble "$TMP/episodes"
	undo
}

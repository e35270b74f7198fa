#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What processes do while they are watched: an engine starts again before its tracer has ended, or takes
# its name later; health checks come and go in its cgroup, and a worker loses its parent.
# shellcheck disable=SC2119,SC2317 # called by name, and without options
. "$(dirname "$0")/lib.sh"
BUDGET=150ms # its facts are about the first slow step: a busy machine has to make none
# shellcheck source=tests/live/watch/lib.sh
. tests/live/watch/lib.sh
sed -i 's/^calls = .*/calls = 0/' "$CONFIG"

start_watch
start_watched --slow-futex-every 300 --slow-us 800000
await_watching "$ENGINE"
go
await_log 1 'dump .*_escalation\.\*'
first=$ENGINE
tracer=$(tracer_of "$first")
stopped=$SECONDS
stop_process "$tracer"
kill -TERM "$first"
wait "$first"
start_watched --slow-futex-every 300 --slow-us 800000
await_watching "$ENGINE"
# After 30 s without a word from it, it is killed.
if [ $((SECONDS - stopped)) -lt 25 ]; then
	is 'an engine is watched while the tracer of the one before is still at work' \
		"$(kill -0 "$tracer" && grep -c "^$first .* has ended" "$LOG")" 0
fi
go
await_log 1 "^$ENGINE: engine_step .*: no dump, because of --cooldown\$"
is 'it goes on with the cooldown' "$(count_dumps escalation)" 1
kill -CONT "$tracer"
await_log 1 "^$first .* has ended"
is 'then that tracer ends' $? 0
kill -TERM "$ENGINE"
wait "$ENGINE"
await_log 1 "^$ENGINE .* has ended"

# Its process has another name at first, as under a shell script. A reload reads all names.
# shellcheck disable=SC2016 # the shell's own
start_waiting sh -c 'echo ready; read -r _; exec "$@" >/dev/null' sh "$WATCHED" --wait --steps 0 --steady \
	--compute-us 1000 --sleep-us 2000 --slow-futex-every 300 --slow-us 800000
sed -i "s/^comm = .*/pid = $ENGINE/" "$CONFIG"
kill -USR2 "$TOOL"
await_watching "$ENGINE"
echo >&7
wait_for 20 grep -qx "$COMM" "/proc/$ENGINE/comm"
kill -USR2 "$TOOL"
await_log 2 'reload: done'
go
await_log 1 "^$ENGINE: engine_step .*: no dump, because of --cooldown\$"
is 'so does one that takes the name later' "$(count_dumps escalation)" 1

kill -TERM "$ENGINE"
wait "$ENGINE"
await_log 1 "^$ENGINE .* has ended"

# in_group COMMAND…
in_group()
{
	echo "$BASHPID" >"$group/cgroup.procs" && exec "$@"
}

# Until the file is removed, in each look of watch there are some of them.
check_health()
{
	while [ -e "$TMP/checks" ]; do
		in_group sleep 0.5 &
		sleep 0.2
	done
	wait
}

root=$(awk '$3 == "cgroup2" || ($3 == "cgroup" && /pids/) { print $2 }' /proc/mounts | tail -1)
group=$root/fbt$$
if [ -n "$root" ] && mkdir "$group" 2>/dev/null; then
	undo()
	{
		rmdir "$group"
	}
	touch "$TMP/checks"
	check_health &
	checks=$!
	sed -i "s|^pid = .*|cgroup = /fbt$$|" "$CONFIG"
	kill -USR2 "$TOOL"
	await_log 3 'reload: done'
	start_waiting in_group "$WATCHED" --wait --steps 0
	await_watching "$ENGINE"
	is 'an engine that starts in a cgroup is watched' $? 0
	is 'health checks there are not' "$(grep -c '(sleep)' "$LOG")" 0
	rm "$TMP/checks"
	wait "$checks"
	go
	kill -TERM "$ENGINE"
	wait "$ENGINE"

	# A worker whose parent dies has another one then, but the same tracer.
	# shellcheck disable=SC2016 # the shells' own
	start_waiting in_group sh -c 'sh -c '\''"$1" --steps 0 >/dev/null & echo $! >"$2"; wait'\'' sh "$1" "$2" &
		echo $! >"$3"; echo ready; exec sleep 600' sh "$WATCHED" "$TMP/worker" "$TMP/middle"
	first=$ENGINE
	await_watching "$first"
	wait_for 20 test -s "$TMP/worker"
	worker=$(cat "$TMP/worker")
	# A look before, and one after: each finds another engine.
	start_waiting in_group "$WATCHED" --wait --steps 0
	await_watching "$ENGINE"
	kill -KILL "$(cat "$TMP/middle")"
	last=$ENGINE
	start_waiting in_group "$WATCHED" --wait --steps 0
	await_watching "$ENGINE"
	holds 'a worker outlives its parent' kill -0 "$worker"
	is 'it has no second tracer' "$(tracer_of "$worker")" ''
	kill -TERM "$first" "$last" "$ENGINE"
	wait "$first" "$last" "$ENGINE"
	await_log 1 "^$ENGINE .* has ended"
	kill -USR1 "$TOOL"
	await_log 1 "dump .*_${first}_manual\\.\\*"
	is 'it is traced on, also when its engine has ended' $? 0
	kill -TERM "$worker"
	await_log 1 "^$first .* has ended"
else
	echo 'SKIP processes of a cgroup: cannot make one'
fi

kill -TERM "$TOOL"
wait "$TOOL"
is 'it ends with 0' $? 0
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The flight recorder: finds an engine that starts later, dumps a slow step once, dumps on request,
# reads its configuration again, follows a restart, and leaves nothing when it is killed.
. "$(dirname "$0")/lib.sh"
BUDGET=150ms # its facts are about the first slow step: a busy machine has to make none
# shellcheck source=tests/live/watch/lib.sh
. tests/live/watch/lib.sh

start_watch
is 'it says that the engine does not run yet' "$(grep -c 'no such process runs yet' "$LOG")" 1
await_notice 'READY=1'
is 'systemd is told that it is ready' $? 0

start_watched --slow-futex-every 1200 --slow-us 800000
await_watching "$ENGINE"
is 'an engine that starts later is found' $? 0
tracer=$(tracer_of "$ENGINE")
is 'without memory the tracer is killed first, not watch' \
	$(($(cat "/proc/$tracer/oom_score_adj") - $(cat "/proc/$TOOL/oom_score_adj"))) 300
is 'no tracepoint of system calls is attached' "$(count_syscall_links)" 0
go
await_log 1 'dump .*_escalation\.\*'
is 'a slow step is dumped' $? 0
await_log 1 'dump .*_escalation_calls\.\*'
is 'system calls are traced after it' $? 0
wait_for 30 no_calls
is 'and then no more' "$(count_syscall_links)" 0
await_log 3 'engine_step [89][0-9][0-9] ms'
is 'more steps are slow' $? 0
is 'only the first one is dumped, because of the cooldown' "$(count_dumps escalation)" 1
await_log 1 "^$ENGINE: engine_step .*: no dump, because of --cooldown\$"
is 'that is told' $? 0
is 'once in a cooldown' "$(grep -c 'no dump, because of --cooldown' "$LOG")" 1
stem=$(stem_of escalation)
python3 tests/live/watch_facts.py escalation "$stem" 600 || FAILED=1
python3 tests/live/watch_facts.py calls "${stem}_calls" 600
holds 'all files are valid' "$FBT" validate "$stem".jsonl.gz "$stem".trace.json.gz
is 'they are for the user alone' "$(stat -c %a "$stem"* | sort -u)" 600

kill -USR1 "$TOOL"
await_log 1 'dump .*_manual\.\*'
is 'SIGUSR1 dumps in spite of the cooldown' $? 0
python3 tests/live/watch_facts.py manual "$(stem_of manual)" 600

echo 'cooldown = 2h' >>"$CONFIG"
kill -USR2 "$TOOL"
await_log 1 'reload: done$'
is 'the configuration is read again' $? 0
await_notice 'RELOADING=1 MONOTONIC_USEC=[0-9]+'
is 'systemd is told' $? 0
echo 'cooldwn = 2h' >>"$CONFIG"
kill -USR2 "$TOOL"
await_log 1 "watch.conf:$(wc -l <"$CONFIG"): unknown option 'cooldwn': did you mean cooldown"
is 'a mistake is told with its line' $? 0
await_log 1 'reload: the configuration stays as it was'
is 'and changes nothing' $? 0
sed -i '$d' "$CONFIG"
is 'the tracer has gone on' "$(tracer_of "$ENGINE")" "$tracer"
await_notice 'WATCHDOG=1'
is 'the watchdog is fed' $? 0

first=$ENGINE
kill -TERM "$ENGINE"
wait "$ENGINE"
await_log 1 "^$first .* has ended"
is 'the end of the engine is told' $? 0
start_watched --slow-futex-every 1200 --slow-us 800000
await_watching "$ENGINE"
is 'it is found again with another PID' $? 0
go
await_log 1 "^$ENGINE: engine_step .*: no dump, because of --cooldown\$"
is 'the cooldown goes on' "$(count_dumps escalation)" 1

kill -USR1 "$TOOL"
wait_for 60 has_partial
children=$(pgrep -P "$TOOL")
tracer=$(tracer_of "$ENGINE")
kill -KILL "$TOOL"
wait "$TOOL" 2>/dev/null
wait_for 30 have_ended "$children"
is 'killed, it leaves no process' $? 0
is 'and nothing attached' "$(count_links "$tracer")" 0
holds 'the engine runs' kill -0 "$ENGINE"
is 'the files that are there are whole' "$(broken_files)" ''
start_watch
await_log 2 "^watching $ENGINE "
is 'it can be watched again' $? 0
is 'what was not completed is removed' "$(find "$DIR"/*/ -type f | wc -l)" 0
kill -TERM "$TOOL"
wait "$TOOL"
is 'it ends with 0' $? 0
await_notice 'STOPPING=1'
is 'and has told systemd so' $? 0
start_watch
await_log 3 "^watching $ENGINE "
kill -HUP "$TOOL"
wait "$TOOL"
is 'SIGHUP ends it too' $? 0
is 'and its tracer' "$(tracer_of "$ENGINE")" ''
IGNORES=HUP start_watch
await_log 4 "^watching $ENGINE "
reloads=$(grep -c '^reload: done' "$LOG")
kill -HUP "$TOOL"
kill -USR2 "$TOOL"
await_log $((reloads + 1)) '^reload: done'
is 'under nohup SIGHUP does not' $? 0
kill -TERM "$TOOL"
wait "$TOOL"
is 'but SIGTERM does' $? 0
kill -TERM "$ENGINE"
wait "$ENGINE"

# As Ctrl-C does: the signal is for the whole process group, in which only watch is to be.
# shellcheck disable=SC2317
traces_calls()
{
	pgrep -P "$TOOL" -f -- '--detail=escalated' >/dev/null
}
before=$(count_dumps manual)
setsid "$FBT" watch --config "$CONFIG" --after 30s >>"$LOG" 2>&1 </dev/null &
TOOL=$!
start_watched
await_watching "$ENGINE"
go
kill -USR1 "$TOOL"
wait_for 30 traces_calls
is 'a dump is due' $? 0
kill -INT -- "-$TOOL"
wait "$TOOL"
is 'Ctrl-C ends it with 0' $? 0
is 'and it has written the dump' "$(count_dumps manual)" $((before + 1))
kill -TERM "$ENGINE"
wait "$ENGINE"

# As under ProtectSystem=strict without ReadWritePaths=; the folder may be there from before.
# shellcheck disable=SC2016,SC2317
refused()
{
	unshare -m sh -c 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"' sh \
		"$TMP/ro" timeout 20 "$FBT" watch --comm "none$$" --dir "$TMP/ro/dumps" 2>"$TMP/said" </dev/null
	[ $? = 1 ] && [ "$(wc -l <"$TMP/said")" = 1 ] &&
		grep -qE "dir $TMP/ro/dumps: .*ReadWritePaths=$TMP/ro/dumps" "$TMP/said"
}
mkdir "$TMP/ro"
holds 'where it could not write dumps it does not start' refused
mkdir -p "$TMP/ro/dumps/ferrum_watch_unfinished"
holds 'nor if its folder is there' refused

# told REGEX COMMAND…: whether a watch says so before it is ended
told()
{
	local regex=$1 status

	shift
	"$@" 2>"$TMP/told" </dev/null &
	TOOL=$!
	wait_for 20 grep -qE 'runs yet|^watching' "$TMP/told"
	wait_for 2 grep -qE "$regex" "$TMP/told"
	status=$?
	kill -TERM "$TOOL"
	wait "$TOOL"
	return $status
}

if [ "$(uname -m)" = x86_64 ]; then
	inject=("$FBT" watch --comm "none$$" --dir "$DIR" --gpu inject)
	holds 'a filter of the service keeps it from injecting: it says so' \
		told 'nothing is injected' "$FBT_BUILD/tests/live_inject_seccomp" enosys-rseq -- "${inject[@]}"
	if told 'nothing is injected' "${inject[@]}"; then not_ok 'only then'; else ok 'only then'; fi
fi
cp "$WATCHED" "$TMP/nerdctl"
"$TMP/nerdctl" --steps 0 --sleep-us 2000 >/dev/null &
client=$!
wait_for 30 [ "/proc/$client/exe" -ef "$TMP/nerdctl" ]
holds 'the client of a container is no engine: it says so' \
	told "$client \\(nerdctl\\) is not the engine" "$FBT" watch --pid $client --step engine_step --dir "$DIR"
kill $client
is 'the filter of the tracers lets them be' "$(grep -c 'by our filter' "$LOG")" 0
finish

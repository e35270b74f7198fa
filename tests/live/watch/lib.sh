# shellcheck shell=bash disable=SC2034,SC2119,SC2120,SC2016
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A watch of an engine that has a name of its own. Sourced after lib.sh.

LOG=$TMP/watch.log
CONFIG=$TMP/watch.conf
DIR=$TMP/dumps
NOTICES=$TMP/notices
COMM=fbt$$
WATCHED=$TMP/$COMM
cp "$FBT_ENGINE" "$WATCHED"
FIRST=$WATCHED
go_first FIRST

# Only steps of more than four times BUDGET are escalated, whatever the machine does to others.
cat >"$CONFIG" <<END
comm = $COMM
step = engine_step
dir = $DIR
last = 60s
after = 2s
calls = 4s
sample = 0
cooldown = 1h
budget-us = ${BUDGET:-25ms}
cv-threshold = 10000
memory-cliff-threshold = 100
rate-guard = 0
END

python3 tests/live/watch_notify.py "@$COMM" "$NOTICES" &
NOTIFIED=$!
wait_for 20 grep -qs listening "$NOTICES"

# The capabilities that the systemd unit leaves, but for that of older kernels.
CAPABILITIES=$(sed -n 's/^CapabilityBoundingSet=\(.*\) CAP_SYS_ADMIN$/\1/p' packaging/ferrum-bpftrace.service |
	tr '[:upper:]' '[:lower:]' | sed 's/cap_/+/g; s/ /,/g')

# start_watch: as the systemd unit does; its id is in TOOL
start_watch()
{
	NOTIFY_SOCKET=@$COMM WATCHDOG_USEC=3000000 setpriv --bounding-set="-all,$CAPABILITIES" \
		--no-new-privs env ${IGNORES:+--ignore-signal="$IGNORES"} "$FBT" watch --config "$CONFIG" >>"$LOG" 2>&1 </dev/null &
	TOOL=$!
	wait_for 20 grep -q 'runs yet\|watching' "$LOG"
}

# start_watched OPTION…: the engine; go lets it run until SIGTERM
start_watched()
{
	start_waiting "$FIRST" --wait --truth "$TMP/truth.json" --steps 0 --steady \
		--compute-us 1000 --sleep-us 2000 "$@"
}

# await_log COUNT REGEX: at least so many lines. What writes a dump has the lowest priority there is: on a
# machine without a free CPU it takes a minute.
await_log()
{
	local count tries=15000

	while [ $((tries -= 1)) -gt 0 ]; do
		count=$(grep -cE -- "$2" "$LOG")
		[ "$count" -lt "$1" ] || return 0
		kill -0 "$TOOL" 2>/dev/null || break
		sleep 0.02
	done
	sed 's/^/# /' "$LOG" | tail -40
	return 1
}

await_watching()
{
	await_log 1 "^watching $1 "
}

await_notice()
{
	wait_for 30 grep -qE -- "$1" "$NOTICES"
}

# The tracer of a process; nothing if there is none.
tracer_of()
{
	pgrep -f -- "--pid=$1 .*--flight-fd" | head -1
}

# Links to the tracepoints of all system calls that watch and its tracers hold.
count_syscall_links()
{
	local pid count=0

	for pid in $TOOL $(pgrep -P "$TOOL"); do
		count=$((count + $(grep -lsE 'tp_name:.*sys_(enter|exit)$' /proc/"$pid"/fdinfo/* | wc -l)))
	done
	echo $count
}

no_calls()
{
	[ "$(count_syscall_links)" = 0 ] && ! pgrep -P "$TOOL" -f -- '--detail=escalated' >/dev/null
}

# count_dumps REASON
count_dumps()
{
	find "$DIR" -name "ferrum_watch_*_$1.fbt.gz" 2>/dev/null | wc -l
}

# The path that all files of the latest dump of that reason begin with.
stem_of()
{
	find "$DIR" -name "ferrum_watch_*_$1.fbt.gz" | sort | tail -1 | sed 's/\.fbt\.gz$//'
}

has_partial()
{
	[ -n "$(find "$DIR" -name '*.partial' 2>/dev/null)" ]
}

have_ended()
{
	local pid

	for pid in $1; do
		! grep -q ferrum-bpftrace "/proc/$pid/comm" 2>/dev/null || return 1
	done
}

# Files that cannot be read to their ends.
broken_files()
{
	find "$DIR" -maxdepth 1 -name '*.gz' -exec gzip -tq {} \; 2>&1
	find "$DIR" -maxdepth 1 -name '*.html' -print | while read -r page; do
		tail -c 20 "$page" | grep -q '</html>' || echo "$page"
	done
}

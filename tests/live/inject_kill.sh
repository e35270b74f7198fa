#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The injecting process is killed at each of its steps, and at random moments. The target must
# continue unharmed and untraced, can be injected again, and has no file left open.
# One effect cannot be hidden: a thread in epoll_wait() that was asked to stop sees EINTR if the
# injecting process dies before it has said how to continue. Such threads may see that; all others
# must see nothing.
#	INJECT_KILLS=5 INJECT_KILLS_LOADED=3 INJECT_KILLS_EPOLL=2 INJECT_RANDOM=200 INJECT_SEED=1
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/inject/lib.sh"

: "${INJECT_KILLS:=5}" "${INJECT_KILLS_LOADED:=3}" "${INJECT_KILLS_EPOLL:=2}"
: "${INJECT_RANDOM:=200}" "${INJECT_SEED:=1}"

loaded=(s_poll_timed r_read_pipe altstack s_futex r_nanosleep fibre_4k s_clock_absolut)
epolls=(epoll s_epoll epoll_pwait r_epoll)
turn=0
all=0
declare -A held

# kill_at POINT NAMES…: a driver that injects into one of TARGET's threads of these names, or into
# any; failures are added to $trouble
kill_at()
{
	local point=$1 status thread=()

	shift
	if [ $# != 0 ]; then
		turn=$((turn % $# + 1))
		thread=(-t "$(thread_of "${!turn}")")
	fi
	drive -T 60 -k "$point" "${thread[@]}" 2>/dev/null
	status=$?
	[ $status = 137 ] || trouble+=" driver=$status:$(cat "$TMP/rounds")"
	wait_until 20 is_let_go || trouble+=" held:$(grep -hE '^(State|TracerPid)' \
		"/proc/$TARGET/task/"*/status | sort | uniq -c | tr '\n\t' ' ')"
}

# kill_often POINT TIMES NAMES…: then a complete round
kill_often()
{
	local point=$1 times=$2

	shift 2
	for ((i = 0; i < times; i++)); do
		kill_at "$point" "$@"
		kills=$((kills + 1))
	done
	drive -T 60 || trouble+=" after:$(cat "$TMP/rounds" "$TMP/drive.err")"
}

# check_clean: TARGET's report on itself goes to $trouble, its number of EINTRs to $all
check_clean()
{
	local said

	report_target || trouble+=' silent'
	said=$(ask '"%d %s" % (T["eintr_stray"], wrong)')
	all=${said%% *}
	[ "${said#* }" = '[]' ] || trouble+=" check:${said#* }"
}

# The stub is written once in a process, so these points need a new process each time.
is_first_only()
{
	[[ $1 == stub_part || $1 == stub_written ]]
}

# fresh_targets POINT: the driver is killed there once in each new target, then the target is
# injected
fresh_targets()
{
	local before

	for ((n = 0; n < INJECT_KILLS + INJECT_KILLS_LOADED; n++)); do
		if [ $n -lt "$INJECT_KILLS" ]; then
			start_target --light
			before=$(count_held)
			kill_often "$1" 1
		else
			start_target
			before=$(count_held)
			kill_often "$1" 1 "${loaded[@]}"
		fi
		wait_until 30 holds_as "$before" || trouble+=" held $(count_held), not $before"
		kill -TERM "$TARGET"
		wait "$TARGET" || trouble+=" check:$(ask wrong)"
	done
}

start_target --light
idle=$TARGET
start_target
busy=$TARGET
start_target --stray-epoll
epoll=$TARGET
for TARGET in $idle $busy $epoll; do
	drive -T 60
	is 'the first time: it is loaded' "$(ask '[r["ok"] or r for r in R]')" '[True]'
	held[$TARGET]=$(count_held)
done

stray=0
"$DRIVE" -k list >"$TMP/points"
while read -r number point; do
	trouble=
	kills=0
	if is_first_only "$point"; then
		fresh_targets "$number"
	else
		TARGET=$idle
		kill_often "$number" "$INJECT_KILLS"
		TARGET=$busy
		kill_often "$number" "$INJECT_KILLS_LOADED" "${loaded[@]}"
		TARGET=$epoll
		kill_often "$number" "$INJECT_KILLS_EPOLL" "${epolls[@]}"
		for TARGET in $idle $busy $epoll; do
			wait_until 30 holds_as "${held[$TARGET]}" ||
				trouble+=" held $(count_held), not ${held[$TARGET]}"
			check_clean
		done
		case $point in
		interrupted | stopped | registers_read | filters_read | stub_compared) window=yes ;;
		*) window=no ;;
		esac
		more=$((all - stray))
		stray=$((stray + more))
		[ "$more" -le "$([ $window = yes ] && echo "$INJECT_KILLS_EPOLL" || echo 0)" ] ||
			trouble+=" $more EINTR"
	fi
	is "killed at $point, $kills times: unharmed, and injected after" "$trouble" ''
done <"$TMP/points"
holds 'there were points' [ "$(wc -l <"$TMP/points")" -ge 20 ]
echo "# $stray EINTR of threads in epoll_wait"

TARGET=$busy
read -r killed ended whole < <(tests/live/inject/kill.py "$INJECT_SEED" "$INJECT_RANDOM" \
	"$DRIVE" -T 60 "$TARGET")
echo "# killed $killed times in the middle of $whole us, $ended times too late"
holds "killed $INJECT_RANDOM times at random: mostly in the middle" \
	[ "$killed" -ge $((INJECT_RANDOM / 2)) ]
holds 'killed at random: nobody holds it' wait_until 20 is_let_go
drive -T 60 -n 3
is 'killed at random: it can be injected after' "$(ask '[r["ok"] or r for r in R]')" '[True, True, True]'
back_to 'killed at random' "${held[$TARGET]}"
for TARGET in $idle $busy $epoll; do
	end_target 'killed'
done
finish

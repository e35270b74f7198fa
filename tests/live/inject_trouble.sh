#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Trouble during an injection: the target ends, calls execve, forks, is stopped, has reached a
# limit, may not be inspected, or is injected by several at once. Each case has an answer and does
# no harm.
#	INJECT_EXITS=100 INJECT_EXECS=150 INJECT_STOPS=10 INJECT_LIMITS=3
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/inject/lib.sh"

: "${INJECT_EXITS:=100}" "${INJECT_EXECS:=150}" "${INJECT_STOPS:=10}" "${INJECT_LIMITS:=3}"
RANDOM=5

# tally_answers: how often each status was given, in all lines of $TMP/answers
tally_answers()
{
	python3 -c 'import json, sys
for text in sorted({r["status"] + ": " + r["text"] for r in map(json.loads, sys.stdin) if not r["ok"]}):
	print("#  ", text)' <"$TMP/answers" >&2
	grep -o '"status":"[a-z_]*"' "$TMP/answers" | cut -d'"' -f4 | sort | uniq -c | tr -s ' \n' ' '
}

# answers NAME STATUS…: the last drive has answered once, with one of these; a text says why
answers()
{
	local name=$1

	shift
	is "$name: there is one clear answer" \
		"$(ask 'len(R) == 1 and R[0]["status"] in "'"$*"'".split() and bool(R[0]["text"]) or R')" True
	ask '"# " + R[0]["text"]'
}

goes_on()
{
	drive -T 60
	is "$1: then it can be injected" "$(ask '[r["ok"] or r for r in R]')" '[True]'
	is_clean "$1"
}

# The target ends during the injection.
: >"$TMP/answers"
bad=0
for ((i = 0; i < INJECT_EXITS; i++)); do
	INJECT_PROBE_FILE=/dev/null "$INJECT_TARGET" --light --seconds 0.01 >"$TMP/short" 2>&1 &
	TARGET=$!
	sleep "0.0$((RANDOM % 60 + 10))"
	drive -T 0.2
	[ $? -le 1 ] && [ -s "$TMP/rounds" ] || bad=$((bad + 1))
	cat "$TMP/rounds" >>"$TMP/answers"
	wait $TARGET || { bad=$((bad + 1)) && tail -n 1 "$TMP/short" | cut -c 1-300; }
done
echo "# $INJECT_EXITS that end:$(tally_answers)"
is 'it ends: all is well each time' $bad 0
# Except for a process that has not begun yet, or of which only this thread has ended.
is 'it ends: none is refused for what a process at its end lacks' \
	"$(grep '"refused"' "$TMP/answers" | grep -vE '"text":"(libc: no libc|stub: no library|.*: No such process")')" ''

# The target calls execve during the injection.
start_target --light --exec --seconds 0.02
drive -T 0.2 -n "$INJECT_EXECS"
holds 'it calls execve: an answer each time' [ "$(wc -l <"$TMP/rounds")" = "$INJECT_EXECS" ]
cp "$TMP/rounds" "$TMP/answers"
echo "# $INJECT_EXECS in one that calls execve:$(tally_answers)"
holds 'it calls execve: it lives' kill -0 "$TARGET"
end_target 'it calls execve'

# The target is stopped before, and continues only when told to. SIGSTOP by itself makes epoll_wait
# return.
start_target --stray-epoll
drive
held=$(count_held)
stop_process "$TARGET"
drive -T 1
answers 'it is stopped' refused no_thread failed
is 'it is stopped: it still is' "$(awk '/^State/ { print $2 }' "/proc/$TARGET/status")" T
kill -CONT "$TARGET"
goes_on 'it was stopped'

# shellcheck disable=SC2317,SC2329 # wait_for calls it
is_stopped()
{
	grep -q '^State:.T' "/proc/$TARGET/status"
}

# The target is stopped during the injection.
bad=
: >"$TMP/answers"
for ((i = 0; i < INJECT_STOPS; i++)); do
	drive -T 0.3 -n 20 &
	driver=$!
	sleep "0.0$((RANDOM % 90 + 10))"
	kill -STOP "$TARGET"
	wait $driver
	[ $? -le 1 ] && [ "$(wc -l <"$TMP/rounds")" = 20 ] || bad+=" driver:$(tail -n 1 "$TMP/rounds")"
	wait_for 5 is_stopped || bad+=' it runs'
	cat "$TMP/rounds" >>"$TMP/answers"
	kill -CONT "$TARGET"
done
echo "# stopped meanwhile:$(tally_answers)"
is 'it is stopped meanwhile: it stays so, with an answer each time' "$bad" ''
goes_on 'it was stopped meanwhile'
back_to 'it was stopped' "$held"

# Three drivers at once: only one can be the tracer, and the others name it.
before=$(count_probes)
drivers=()
for i in 1 2 3; do
	"$DRIVE" -T 60 -n 20 "$TARGET" >"$TMP/rounds.$i" &
	drivers+=($!)
done
wait "${drivers[@]}"
cat "$TMP/rounds".[123] >"$TMP/rounds"
cp "$TMP/rounds" "$TMP/answers"
echo "# three at once:$(tally_answers)"
is 'three at once: it is loaded, or the other is named' \
	"$(ask '[r for r in R if not r["ok"] and "live_inject_dri" not in r["text"]][:2]')" '[]'
is 'three at once: there are all answers' "$(ask 'len(R)')" 60
is 'three at once: it was called as often as is said' \
	"$(ask 'sum(r["ok"] for r in R)')" $(($(count_probes) - before))
back_to 'three at once' "$held"
end_target 'stopped, three at once'

# limits ARGUMENT…: prlimit for TARGET, as TARGET's user, because root is not always allowed to
limits()
{
	local user

	user=$(stat -c %u "/proc/$TARGET")
	setpriv --reuid "$user" --regid "$user" --clear-groups prlimit --pid "$TARGET" "$@"
}

# set_limit NAME SOFT: leaves the hard limit unchanged
set_limit()
{
	holds "its limit $1 is $2" limits "--$1=$2:"
}

get_limit()
{
	limits "--$1" --noheadings --raw --output SOFT
}

# Files: none left, then one, then two.
start_target --light
drive
held=$(count_held)
most=$(get_limit nofile)
for free in 0 1 2; do
	set_limit nofile $((${held% *} + free))
	drive -T 2
	answers "room for $free files" refused no_helper failed
done
set_limit nofile "$most"
goes_on 'no room for files'

# Memory: nothing can be mapped any more.
pages=$(cut -d' ' -f1 "/proc/$TARGET/statm")
set_limit as $((pages * 4096))
drive -T 2
answers 'no room for memory' refused no_helper failed
set_limit as unlimited
goes_on 'no room for memory'
back_to 'limits' "$held"

# Limits that are set after all checks have passed.
python3 - "$TARGET" "${held% *}" <<'END' &
import random, resource, sys, time

pid, files = int(sys.argv[1]), int(sys.argv[2])
chance = random.Random(3)
before = {kind: resource.prlimit(pid, kind) for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_AS)}
while True:
    try:
        for kind, soft in ((resource.RLIMIT_NOFILE, files + chance.randrange(3)),
                           (resource.RLIMIT_AS, 1 << 20)):
            resource.prlimit(pid, kind, (soft, before[kind][1]))
            time.sleep(chance.random() * 0.002)
            resource.prlimit(pid, kind, before[kind])
            time.sleep(chance.random() * 0.003)
    except ProcessLookupError:
        break
END
changer=$!
: >"$TMP/answers"
bad=
for ((i = 0; i < 100 && $(grep -cE 'no_helper|failed' "$TMP/answers") < INJECT_LIMITS; i++)); do
	drive -T 0.5
	[ $? -le 1 ] && [ "$(wc -l <"$TMP/rounds")" = 1 ] || bad+=" $(cat "$TMP/rounds" "$TMP/drive.err")"
	cat "$TMP/rounds" >>"$TMP/answers"
done
kill -KILL $changer
wait $changer 2>/dev/null
limits --nofile="$most:" --as=unlimited:
echo "# limits that come and go:$(tally_answers)"
is 'limits that come and go: there is an answer each time' "$bad" ''
holds 'limits that come and go: some came too late to be refused' \
	grep -qE 'no_helper|failed' "$TMP/answers"
goes_on 'limits that come and go'
back_to 'limits that come and go' "$held"
end_target 'limits'

# Threads: the user already has the maximum number.
start_target -u 65534 --light
drive
held=$(count_held)
most=$(get_limit nproc)
set_limit nproc 1
drive -T 2
answers 'no room for threads' refused no_helper failed
set_limit nproc "$most"
goes_on 'no room for threads'
back_to 'no room for threads' "$held"
end_target 'no room for threads'

# A user without the right to inject.
start_target --light
mkdir "$TMP/theirs"
cp "$DRIVE" "$INJECT_TARGET" "${DRIVE%/*}/inject_probe.so" "$TMP/theirs"
chmod -R a+rX "$TMP/theirs"
setpriv --reuid 65534 --regid 65534 --clear-groups "$TMP/theirs/live_inject_drive" -T 1 "$TARGET" \
	>"$TMP/rounds" 2>&1
answers 'not permitted' refused failed
goes_on 'not permitted'
end_target 'not permitted'
finish

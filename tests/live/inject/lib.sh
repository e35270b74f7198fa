# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What the tests of tests/fake/inject_target.c share; sourced after ../lib.sh.

[ "$(uname -m)" = x86_64 ] || { echo 'SKIP --gpu=inject is for x86-64' && exit 77; }
DRIVE=$(realpath -m "$FBT_BUILD/tests/live_inject_drive")
INJECT_TARGET=$(realpath -m "$FBT_BUILD/tests/inject_target")

# start_target [-u USER] OPTION…: its id is in TARGET, its output in $TMP/target.TARGET, and a byte
# for each load in $TMP/probes.TARGET
start_target()
{
	local log as=()

	[ "${1:-}" != -u ] || { as=(setpriv --reuid "$2" --regid "$2" --clear-groups) && shift 2; }
	log=$(mktemp -p "$TMP")
	touch "$log.probes"
	chmod 666 "$log.probes"
	# The file's name needs the target's id, which is only known later, so a link is added.
	INJECT_PROBE_FILE=$log.probes "${as[@]}" "$INJECT_TARGET" "$@" >"$log" 2>&1 &
	TARGET=$!
	ln -s "$log" "$TMP/target.$TARGET"
	ln -s "$log.probes" "$TMP/probes.$TARGET"
	wait_until 60 grep -q ready "$log" || { not_ok "the target starts: $(cat "$log")" && exit 1; }
}

# wait_until SECONDS COMMAND…
wait_until()
{
	local end=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000))

	shift
	until "$@"; do
		[ "${EPOCHREALTIME/[.,]/}" -lt "$end" ] || return 1
		sleep 0.02
	done
}
chmod 711 "$TMP"

# drive OPTION…: the driver on TARGET; its lines are in $TMP/rounds
drive()
{
	"$DRIVE" "$@" "$TARGET" >"$TMP/rounds" 2>"$TMP/drive.err"
}

# ask EXPRESSION: R is the rounds of the last drive, T the last report of TARGET, N its threads by
# name
ask()
{
	python3 - "$TMP/rounds" "$TMP/target.$TARGET" "$1" <<'END'
import json, os, sys

def lines(path):
    if not os.path.exists(path):
        return []
    return [json.loads(line) for line in open(path) if line.startswith('{')]

R = lines(sys.argv[1])
T = (lines(sys.argv[2]) or [{'threads': []}])[-1]
N = {t['name']: t for t in T['threads']}
wrong = [t for t in T['threads'] if t['errors']]
print(eval(sys.argv[3]))
END
}

# thread_of NAME: the thread's id
thread_of()
{
	grep -lx -- "$1" "/proc/$TARGET/task/"*/comm 2>/dev/null | head -1 | cut -d/ -f5
}

count_probes()
{
	stat -Lc %s "$TMP/probes.$TARGET" 2>/dev/null || echo 0
}

# count_held [EXPECTED]: the minimum number of files and threads that TARGET holds, since it opens
# and closes some itself. Stops as soon as the number is as expected.
count_held()
{
	python3 - "$TARGET" "${1:-}" <<'END'
import os, sys, time

least = [10**6, 10**6]
for i in range(25):
    if ' '.join(map(str, least)) == sys.argv[2]:
        break
    for kind, folder in enumerate(('fd', 'task')):
        least[kind] = min(least[kind], len(os.listdir(f'/proc/{sys.argv[1]}/{folder}')))
    time.sleep(0.005)
print(*least)
END
}

# holds_as BEFORE: TARGET holds as many as then
holds_as()
{
	[ "$(count_held "$1")" = "$1" ]
}

# back_to NAME BEFORE: TARGET holds as many as then, within 30 s
back_to()
{
	wait_until 30 holds_as "$2"
	is "$1: files and threads are as before" "$(count_held "$2")" "$2"
}

# No thread of TARGET is traced or stopped.
is_let_go()
{
	! cat "/proc/$TARGET/task/"*/status 2>/dev/null |
		grep -qE '^(TracerPid:[[:space:]]+[1-9]|State:[[:space:]]+[tTZX])' &&
		kill -0 "$TARGET" 2>/dev/null
}

# report_target: TARGET's report at this moment
report_target()
{
	local before

	before=$(grep -c '^{' "$TMP/target.$TARGET")
	kill -USR1 "$TARGET"
	# shellcheck disable=SC2016
	wait_until 60 sh -c '[ "$(grep -c "^{.*}$" "$1")" -gt "$2" ]' sh "$TMP/target.$TARGET" "$before"
}

# is_clean NAME: TARGET has found no error in itself so far
is_clean()
{
	report_target
	is "$1: its own check is clean" "$(ask 'T["ok"] or wrong')" True
}

# end_target NAME: TARGET ends when told to, and all that was sent has arrived
end_target()
{
	local status

	kill -TERM "$TARGET" 2>/dev/null
	wait "$TARGET"
	status=$?
	[ "$status" = 0 ] || { tail -n 3 "$TMP/target.$TARGET" | cut -c 1-300 | sed 's/^/# /' && ask wrong; }
	is "$1: its own check is clean at its end" "$status" 0
}

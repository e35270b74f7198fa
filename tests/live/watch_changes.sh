#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What processes do while they are watched: an engine starts again before its tracer has ended.
# shellcheck disable=SC2119 # called without options
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
stop_process "$tracer"
kill -TERM "$first"
wait "$first"
start_watched --slow-futex-every 300 --slow-us 800000
await_watching "$ENGINE"
is 'an engine is watched while the tracer of the one before is still at work' \
	"$(kill -0 "$tracer" && grep -c "^$first .* has ended" "$LOG")" 0
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

kill -TERM "$TOOL"
wait "$TOOL"
is 'it ends with 0' $? 0
kill -TERM "$ENGINE"
wait "$ENGINE"
finish

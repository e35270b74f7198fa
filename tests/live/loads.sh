#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The programs that a trace can do without load on this kernel: those that list threads, that see who
# sends signals, that time handlers and page faults, and those of --explain. Where one of them fails
# the tool goes on, so other tests need not see it.
. "$(dirname "$0")/lib.sh"

"$FBT" doctor --trace none --profile none >"$TMP/doctor" 2>"$TMP/err" </dev/null
is 'doctor: exit status' $? 0
has 'doctor: its trial' "$TMP/doctor" '^  ok +trial '
is 'doctor: nothing is lacking' \
	"$(grep -E -A 3 '^  (-|warn|no) +(looks|signals|explain) ' "$TMP/doctor")" ''

start_engine --steps 0 --sleep-us 2000
attach --explain always -v -d 1
go
end_tool
for what in 'load: the list of threads' 'load: who sends signals' 'attach: who sends signals' \
	'attach: handle_signal' 'page faults are not timed' \
	'what explains slow steps cannot be loaded' 'cannot be found out on this machine'; do
	is "a trace: no '$what'" "$(grep "$what" "$OUT.err")" ''
done
fact 'a trace: all that --explain has is attached' \
	"{row['what']: row['state'] for row in R['cost']['explain']} ==
		{what: 'armed' for what in ('switches', 'wakes', 'samples', 'faults')}"
fact 'a trace: it has steps' 'len(S) > 10'

# Threads get their software events when their steps ask for it, and most rights are dropped by then.
rm -f "${OUT:?}".*
start_program page_faults "$TMP/pages" rare
attach --step faults_step --explain always -v
go
wait "$ENGINE"
end_tool
has 'software events: page faults are timed' "$OUT.err" 'page faults are timed'
for what in 'page faults are not timed' 'cannot be found out on this machine'; do
	is "software events: no '$what'" "$(grep "$what" "$OUT.err")" ''
done

# A step that waits for six seconds: no matter of time where all is emulated.
rm -f "${OUT:?}".*
start_program looks 1 sleeps
run_tool -p "$ENGINE" --step look_step --hang 1s
wait_attached "$TOOL"
go
wait "$ENGINE"
end_tool
has 'a look: who holds the lock, and where' "$OUT.err" \
	' hang: look_step .*, held by thread [0-9]+ "h-first": clock_nanosleep for .* in hold_sleeping <- run_holder'
fact 'a look: all threads, with their stacks' \
	"sorted('hold_sleeping' in t['stack'] for h in R['hangs'] for t in h['threads']) == [False, True] and
		sorted('look_step' in t['stack'] for h in R['hangs'] for t in h['threads']) == [False, True]"
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Steps of an engine that is stopped for 0.3 s: by a signal, by ptrace as a debugger does, by the
# freezer of its cgroup in both versions, or only in a thread for which the step waits. And by gdb,
# if it is installed.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/judge/lib.sh
. tests/live/judge/lib.sh

# stopped NAME MODE WHO: each step that was stopped is found, and WHO is named (see stops.py)
stopped()
{
	run_mode "$2" 300
	holds "$1: the stops made steps slow" [ "$slow" -gt 0 ]
	is "$1: all of them are found" "$found" "$slow"
	is "$1: the cause is right" "$wrong" 0
	is "$1: and says who it was" "$(ask_python tests/live/judge/stops.py "$OUT.profile")" "$3"
}

# frozen VERSION FILE
frozen()
{
	local engine=$JUDGE

	if ! make_group freezer "$2"; then
		echo "SKIP the freezer of cgroups of version $1: there is none here"
		return
	fi
	engine_in_group "$JUDGE"
	stopped "freezer $1" frozen freezer:-:step
	JUDGE=$engine
	undo
	group=
}

stopped signal stop signal:SIGSTOP/judge_stopper:step
stopped tracer traced tracer:judge_stopper:step
stopped 'a worker' worker_traced tracer:judge_stopper:other
frozen 2 cgroup.freeze
frozen 1 freezer.state

# By a program that has ended when the stop is seen: its parent is named too. A stop may fall into a
# call, or between two steps, so there are several.
rm -f "${OUT:?}".*
start_waiting "$JUDGE" "$TMP/truth.json" steady 2000 "$TMP/file"
attach_judge
go
sleep 2
# shellcheck disable=SC2016 # it is the other shell's
sh -c 'for i in 1 2 3 4 5; do
		/bin/kill -STOP "$0" &
		echo "$!,"
		wait
		sleep 0.2
		/bin/kill -CONT "$0"
		sleep 0.1
	done' "$ENGINE" >"$TMP/killers" &
shell=$!
wait "$ENGINE"
wait "$shell"
end_tool 0 'kill: the tool ends with 0'
is 'kill: it is named' "$(ask_python tests/live/judge/stops.py "$OUT.profile")" signal:SIGSTOP/kill:step
fact 'kill: with its pid, and with who started it' \
	"(lambda told: bool(told) and all(h['stop_sender'] in {$(cat "$TMP/killers")} and
		(h['stop_sender_parent'], h['stop_sender_parent_name']) == ($shell, 'sh') for h in told) and
		len({h['stop_sender'] for h in told}) == len(told))(
		[h for h in H.values() if h['cause'] == 'stopped'])"
fact 'kill: the JSON report has the same' \
	"{(e['step'], e['stop']['sender']['pid'], e['stop']['sender']['signal'])
		for e in R['escalations']['last'] if e['cause'] == 'stopped'} ==
		{(n, h['stop_sender'], 'SIGSTOP') for n, h in H.items() if h['cause'] == 'stopped'}"
killers=$(tr -d '\n' <"$TMP/killers" | sed 's/,$//; s/,/|/g')
holds 'kill: the alert names both' grep -qE \
	"stopped .* by SIGSTOP from kill \(pid ($killers)\), started by sh \(pid $shell\)" "$OUT.err"

if command -v gdb >/dev/null; then
	rm -f "${OUT:?}".*
	start_waiting "$JUDGE" "$TMP/truth.json" steady 3000 "$TMP/file"
	attach_judge
	go
	sleep 2
	# One stop of 17 comes between two steps, where it makes none slow.
	for _ in 1 2 3; do
		gdb -nx -batch -iex 'set auto-load off' -p "$ENGINE" -ex 'shell sleep 0.3' -ex detach >"$TMP/gdb" 2>&1
	done
	wait "$ENGINE"
	end_tool 0 'gdb: the tool ends with 0'
	is 'gdb: it is named' "$(ask_python tests/live/judge/stops.py "$OUT.profile")" tracer:gdb:step
else
	echo 'SKIP gdb: it is not installed'
fi
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Signals that the tool was started with as ignored, and the signal that must always end it.
. "$(dirname "$0")/lib.sh"

# start_ignoring SIGNAL ARGUMENT…: starts the tool as nohup does
start_ignoring()
{
	local signal=$1

	shift
	rm -f "${OUT:?}".*
	launch env --default-signal=INT,TERM,HUP --ignore-signal="$signal" "$FBT" --ready-fd 6 --rate-guard 0 \
		--report json --trace "$OUT.trace" --profile "$OUT.profile" "$@" >"$OUT.report" 2>"$OUT.err"
}

start_engine --steps 0 --sleep-us 500
go
start_ignoring HUP -p "$ENGINE" --step engine_step
wait_attached "$TOOL"
await_steps 50
kill -HUP "$TOOL"
await_steps $(($(grep -c '"event":"step_prof"' "$OUT.profile") + 51))
holds 'SIGHUP ignored at the start stays so' kill -0 "$TOOL"
kill -TERM "$TOOL"
end_tool 0 'SIGHUP ignored: SIGTERM ends the window'
fact 'SIGHUP ignored: everything is written' 'len(S) > 100 and R["steps"] == len(S)'

# A shell ignores SIGINT in background jobs, and scripts run the tool as one.
start_ignoring INT -p "$ENGINE" --step engine_step
wait_attached "$TOOL"
await_steps 101
kill -INT "$TOOL"
end_tool 0 'SIGINT ends the window even where it was ignored'
fact 'SIGINT: everything is written' 'len(S) > 100 and R["steps"] == len(S)'

# A handler that ends an interrupted call gives it back what that returned: no error of its own.
kill -TERM "$ENGINE"
wait "$ENGINE"
python3 -c 'import signal, time
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
while True: time.sleep(1)' 7>&- &
interrupted=$!
sleep 0.5
rm -f "${OUT:?}".*
run_tool -p "$interrupted" -d 1
end_tool 0 'calls that signals interrupt are traced'
kill -KILL "$interrupted"
wait "$interrupted" 2>/dev/null
fact 'each counts as one error' "table['rt_sigreturn'] > 20 and errors['clock_nanosleep'] > 20 and
	errors.get('rt_sigreturn', 0) == 0"
start_engine --steps 0 --sleep-us 500
go

# Below a supervisor that ignores SIGCHLD, nobody would be told that COMMAND has ended.
rm -f "${OUT:?}".*
timeout 60 env --ignore-signal=CHLD "$FBT" --trace none --profile none -- sh -c 'exit 7' >/dev/null 2>"$OUT.err"
is 'SIGCHLD ignored at the start: the status of COMMAND' $? 7

# shellcheck disable=SC2317,SC2329 # wait_for calls it
tool_has_ended()
{
	! kill -0 "$TOOL" 2>/dev/null
}

# Opening a FIFO without a reader waits.
mkfifo "$TMP/fifo"
for signal in INT TERM; do
	rm -f "${OUT:?}".*
	run_tool -p "$ENGINE" --step engine_step --trace "$TMP/fifo"
	sleep 0.7
	holds "a fifo without a reader: the tool waits or traces (SIG$signal)" kill -0 "$TOOL"
	kill -$signal "$TOOL"
	# A reader never comes, so only the signal can end the tool.
	wait_for 60 tool_has_ended || kill -KILL "$TOOL"
	wait "$TOOL" 2>/dev/null
	status=$?
	is "a fifo without a reader: SIG$signal ends it, nobody else" $((status == 137)) 0
done

# The target ends, and the sender of the signal does not know that yet, as when a supervisor stops
# both. The tool is still writing until the report's reader comes.
for signal in INT TERM HUP; do
	rm -f "${OUT:?}".*
	"$FBT_ENGINE" --steps 0 --sleep-us 500 >/dev/null 2>&1 </dev/null 7>&- &
	target=$!
	mkfifo "$OUT.slow"
	exec 8<>"$OUT.slow"
	# The pipe is full, so the report waits.
	dd if=/dev/zero of="$OUT.slow" bs=4096 oflag=nonblock 2>/dev/null
	launch env --default-signal=INT,TERM,HUP "$FBT" --ready-fd 6 --rate-guard 0 --report json \
		--trace "$OUT.trace" --profile "$OUT.profile" -p "$target" --interval 50 >&8 2>"$OUT.err" 8>&-
	wait_attached "$TOOL"
	kill -TERM "$target"
	wait "$target"
	for _ in $(seq 3000); do
		[ "$(count_links "$TOOL")" = 0 ] && break
		sleep 0.02
	done
	kill -"$signal" "$TOOL"
	sleep 0.2
	holds "SIG$signal just after the target's end: the tool goes on writing" kill -0 "$TOOL"
	cat <&8 >/dev/null &
	reader=$!
	end_tool 0 "SIG$signal just after the target's end: all is written"
	kill $reader
	exec 8>&-
	holds "SIG$signal just after the target's end: the outputs are whole" \
		"$FBT" validate "$OUT.profile" "$OUT.trace"
done
kill -TERM "$ENGINE"
wait "$ENGINE"
fact 'the engine was not disturbed' 'T["exact"]'
finish

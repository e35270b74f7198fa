#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# --ready-fd: one newline and the end of the pipe once the probes of the first window are set, and
# not before. No other process holds the descriptor.
. "$(dirname "$0")/lib.sh"

# notice NAME: exactly one newline comes, then the end of the pipe, while the tool continues
notice()
{
	local text fd=${ATTACHED[$TOOL]}

	IFS= read -r -d '' -t 60 -u "$fd" text
	is "$1: one newline, then the end" "${#text} $?" "$(printf '%d %d' 1 1)"
	[ "$text" = $'\n' ] || not_ok "$1: it is a newline"
	holds "$1: and the tool goes on" kill -0 "$TOOL"
	exec {fd}<&-
	unset "ATTACHED[$TOOL]"
}

# Steps begin at the notice. None is missed, so the probes were set by then.
start_engine --steps 50
run_tool -p "$ENGINE" --step engine_step
notice '-p'
go
wait "$ENGINE"
end_tool
check_truth '-p'

# The injecting process does not hold the descriptor.
start_engine --steps 50
run_tool -p "$ENGINE" --step engine_step --gpu=inject
notice 'inject'
go
wait "$ENGINE"
end_tool

rm -f "${OUT:?}".*
start_engine --steps 50
run_tool -a --step "$FBT_ENGINE:engine_step"
notice '-a'
go
wait "$ENGINE"
stop_tool
# Other tests may run the same engine.
fact '-a: every step is seen' "len([s for s in S if s['pid'] == $ENGINE]) == T['steps']"

# A COMMAND does not get the descriptor, and makes no step before the notice.
rm -f "${OUT:?}".*
mkfifo "$TMP/hold"
# shellcheck disable=SC2016 # it is for that shell
run_tool --step engine_step -- sh -c 'ls /proc/$$/fd >"$1"; read -r _ <"$2"' sh "$TMP/fds" "$TMP/hold"
notice COMMAND
echo >"$TMP/hold"
end_tool
is 'COMMAND: does not have the descriptor' "$(grep -cx 6 "$TMP/fds")" 0
run_tool --step engine_step -- "$FBT_ENGINE" --steps 20 --sleep-us 100000 --truth "$TMP/truth.json"
notice 'COMMAND with steps'
end_tool
fact 'COMMAND with steps: every step is seen' 'len(S) == T["steps"]'

# With --flag the notice concerns the first window, not the wait for it.
start_engine --steps 0 --sleep-us 500
go
mkdir "$TMP/windows"
launch env --default-signal=INT "$FBT" --ready-fd 6 --flag "$TMP/flag" --dir "$TMP/windows" --report none \
	-p "$ENGINE" --step engine_step 2>"$OUT.err"
until grep -q '^waiting for /' "$OUT.err" || ! kill -0 "$TOOL"; do sleep 0.02; done
read -r -t 0.5 -u "${ATTACHED[$TOOL]}" _
is '--flag: no notice while it waits' $(($? > 128)) 1
touch "$TMP/flag"
notice '--flag'
is '--flag: the probes are in' $(($(count_links "$TOOL") > 5)) 1
rm "$TMP/flag"
stop_tool

# The notice does not wait for what is loaded later.
rm -f "${OUT:?}".*
run_tool -p "$ENGINE" --step no_such_function --wait-step
notice '--wait-step'
stop_tool

# Without a reader, or with a full pipe, the window continues.
rm -f "${OUT:?}".*
mkfifo "$OUT.full"
exec 8<>"$OUT.full"
dd if=/dev/zero of="$OUT.full" bs=4096 oflag=nonblock 2>/dev/null
"$FBT" -p "$ENGINE" --step engine_step -n 20 --ready-fd 8 --report none --trace none --profile none 2>"$OUT.err"
is 'a full pipe: the window goes on' "$?" 0
is 'a full pipe: one line says so' "$(grep -c '^ferrum-bpftrace: --ready-fd 8: ' "$OUT.err")" 1
exec 8>&-
(exec 8> >(:) && sleep 0.2 && exec "$FBT" -p "$ENGINE" --step engine_step -n 20 --ready-fd 8 --report none \
	--trace none --profile none 2>"$OUT.err")
is 'a reader that has gone: the window goes on' "$?" 0

# If the tool ends without a notice, the pipe ends.
launch "$FBT" --ready-fd 6 -p "$ENGINE" --step no_such_function 2>"$OUT.err"
read -r -t 60 -u "${ATTACHED[$TOOL]}" _
is 'no window: the end and no newline' $? 1
wait "$TOOL"
is 'no window: exit status 1' $? 1

# refused NAME FD ARGUMENT…: status 2 and one line that names FD
refused()
{
	local name=$1 fd=$2

	shift 2
	"$FBT" --ready-fd "$fd" "$@" >"$OUT.report" 2>"$OUT.err" 8</dev/null 9>/dev/null
	is "$name: exit status 2" $? 2
	is "$name: one line that names it" "$(grep -c -- '--ready-fd' "$OUT.err") $(grep -c . "$OUT.err")" '1 1'
}
refused 'not open' 57 -p "$ENGINE"
refused 'only read' 8 -p "$ENGINE"
refused 'a word' one -p "$ENGINE"
refused 'a negative number' -1 -p "$ENGINE"
refused 'standard output' 1 -p "$ENGINE"
refused '--replay' 9 --replay "$TMP/none"
refused '--list-steps' 9 --list-steps -p "$ENGINE"
kill -TERM "$ENGINE"
wait "$ENGINE"
finish

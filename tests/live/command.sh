#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The tool stops COMMAND before its first instruction, never again, and never for good.
. "$(dirname "$0")/lib.sh"

# A command that runs as another user writes here too.
chmod 755 "$TMP"
log=$TMP/log
: >"$log"
chmod 666 "$log"

state_of()
{
	sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" 2>/dev/null
}


# shellcheck disable=SC2317
logged()
{
	grep -qx "$1" "$log"
}

# shellcheck disable=SC2317
is_in_state()
{
	[ "$(state_of "$1")" = "$2" ]
}

# shellcheck disable=SC2317
is_held()
{
	[ "$(grep -c '^kill(' "$TMP/held")" = "$1" ] && ! tail -n 1 "$TMP/held" | grep -q ' = '
}

# kill_at_stop NUMBER COMMAND…: strace holds the tool before its kill(2) of that number, then the
# tool is killed. The third kill(2) is the first SIGCONT to COMMAND. COMMAND must not run its
# program.
# shellcheck disable=SC2317
kill_at_stop()
{
	local number=$1 tracer

	shift
	: >"$TMP/held"
	rm -f "$TMP/stopped"
	strace -D -qq -o "$TMP/held" -e trace=kill -e signal=none \
		-e inject=kill:delay_enter=600000000:when="$number" \
		"$FBT" --report none --trace none --profile none -- "$@" </dev/null 2>"$OUT.err" &
	TOOL=$!
	wait_for 60 is_held "$number" && wait_for 30 has_stopped_child && touch "$TMP/stopped"
	tracer=$(awk '/^TracerPid/ { print $2 }' "/proc/$TOOL/status")
	# The tracer holds the tool, so the tool ends only when the tracer does.
	kill -KILL "$TOOL" "$tracer"
	wait "$TOOL" 2>/dev/null
	[ -e "$TMP/stopped" ]
}

# shellcheck disable=SC2317
has_stopped_child()
{
	local child

	for child in $(pgrep -P "$TOOL"); do
		[ "$(state_of "$child")" != T ] || return 0
	done
	return 1
}

kill_tool()
{
	kill -KILL "$TOOL" 2>/dev/null
	wait "$TOOL" 2>/dev/null
}

# COMMAND is stopped when its execve returns, and once more at its entry.
for number in 3 4; do
	for as in '' 'setpriv --reuid 65534 --clear-groups'; do
		said="caught$number${as:+other}"
		# shellcheck disable=SC2086
		holds "COMMAND is stopped before its first instruction ($said)" kill_at_stop $number \
			$as sh -c "echo $said >>$log"
		holds "killed while COMMAND is stopped: COMMAND goes on ($said)" wait_for 30 logged "$said"
	done
done

# The tool is killed at various moments. Below is checked what became of the children.
for i in 02 03 04 05 06 08; do
	run_tool -- sh -c "echo \$\$ >>$TMP/pids; exec sleep 60"
	sleep 0.$i
	pgrep -P "$TOOL" >>"$TMP/pids"
	kill_tool
done

# The later life of COMMAND does not depend on the tool, which is frozen and then killed.
# A FIFO for each: the second reader must not open the one that its first writer has yet to close.
mkfifo -m 666 "$TMP/on1" "$TMP/on2"
run_tool -- sh -c "echo first >>$log; read -r go <$TMP/on1; exec setpriv --reuid 65534 --clear-groups \
	sh -c 'echo second >>$log; read -r go <$TMP/on2; exec sh -c \"echo third >>$log; exec sleep 60\"'"
wait_for 30 logged first
sleep 0.2
command=$(pgrep -P "$TOOL" -x sh)
kill -STOP "$TOOL"
echo >"$TMP/on1"
holds 'a later execve does not wait for the tool' wait_for 30 logged second
kill_tool
echo >"$TMP/on2"
holds 'killed: COMMAND goes on' wait_for 30 logged third
holds 'killed: and waits as it wants to' wait_for 15 is_in_state "$command" S
kill "$command"

# If someone else stops COMMAND, the tool must not continue it.
for how in INT KILL; do
	rm -f "${OUT:?}".*
	run_tool -- sh -c "echo stop$how >>$log; sleep 60; :"
	wait_for 30 logged stop$how
	sleep 0.1
	command=$(pgrep -P "$TOOL" -x sh)
	kill -STOP "$command"
	wait_for 15 is_in_state "$command" T
	[ $how = KILL ] || sleep 1
	is "stopped by the user: so it stays in the window (SIG$how)" "$(state_of "$command")" T
	kill -$how "$TOOL"
	wait "$TOOL" 2>/dev/null
	sleep 0.3
	is "stopped by the user: and after it (SIG$how)" "$(state_of "$command")" T
	pkill -KILL -P "$command"
	kill -KILL "$command"
done

run_tool -- sh -c "grep -E '^Sig(Blk|Ign)' /proc/self/status >$TMP/signals"
end_tool
# SIGPIPE is bit 12.
is 'COMMAND does not ignore SIGPIPE' $((0x$(awk '/SigIgn/ { print $2 }' "$TMP/signals") & 0x1000)) 0
is 'COMMAND blocks no signal' "$(awk '/SigBlk/ { print $2 }' "$TMP/signals")" 0000000000000000
# A stop may last 2 s, longer on a busy machine, so each child is waited for.
# shellcheck disable=SC2317
is_not_stopped()
{
	case $(state_of "$1") in
	T | t) return 1 ;;
	esac
}
left=0
while read -r pid; do
	wait_for 30 is_not_stopped "$pid" || left=$((left + 1))
	[ "$(cat "/proc/$pid/comm" 2>/dev/null)" != sleep ] || kill "$pid" 2>/dev/null
done < <(sort -u "$TMP/pids")
is "killed at any moment: no child of $(sort -u "$TMP/pids" | wc -l) is left stopped" $left 0
finish

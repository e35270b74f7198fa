#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# COMMAND is stopped before its first instruction, by the tool; never again, and never for good.
. "$(dirname "$0")/lib.sh"

# A command under another user writes here too.
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

# kill_at_stop COMMAND…: kills the tool while the command is stopped; the fact is that this was so
kill_at_stop()
{
	python3 - "$FBT" "$@" 2>"$OUT.err" <<'END'
import signal, subprocess, sys, time

def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""

def is_stopped(pid):
    return read("/proc/%s/stat" % pid).rpartition(") ")[2][:1] in ("T", "t")

outputs = ["--report", "none", "--trace", "none", "--profile", "none"]
tool = subprocess.Popen([sys.argv[1]] + outputs + ["--"] + sys.argv[2:], stdin=subprocess.DEVNULL)
caught = False
while not caught and tool.poll() is None:
    children = read("/proc/%d/task/%d/children" % (tool.pid, tool.pid)).split()
    stopped = [pid for pid in children if is_stopped(pid)]
    if not stopped:
        continue
    # Frozen, it has all the time in the world to let the command go on, or not.
    tool.send_signal(signal.SIGSTOP)
    time.sleep(0.02)
    caught = is_stopped(stopped[0])
    tool.send_signal(signal.SIGKILL if caught else signal.SIGCONT)
tool.wait()
sys.exit(not caught)
END
}

kill_tool()
{
	kill -KILL "$TOOL" 2>/dev/null
	wait "$TOOL" 2>/dev/null
}

caught=0
for i in 1 2 3 4; do
	as=$([ $i -le 2 ] || echo setpriv --reuid 65534 --clear-groups)
	# shellcheck disable=SC2086
	kill_at_stop $as sh -c "echo caught$i >>$log" && caught=$((caught + 1))
	holds "killed while COMMAND is stopped: COMMAND goes on ($i)" wait_for 30 logged caught$i
done
holds "and it was stopped in $caught of 4 tries" [ $caught -ge 1 ]

# At any moment: see the end for what became of their children.
for i in 02 03 04 05 06 08; do
	run_tool -- sh -c "echo \$\$ >>$TMP/pids; exec sleep 60"
	sleep 0.$i
	pgrep -P "$TOOL" >>"$TMP/pids"
	kill_tool
done

# What it becomes later does not wait for the tool, which is frozen and then killed.
mkfifo -m 666 "$TMP/on"
run_tool -- sh -c "echo first >>$log; read -r go <$TMP/on; exec setpriv --reuid 65534 --clear-groups \
	sh -c 'echo second >>$log; read -r go <$TMP/on; exec sh -c \"echo third >>$log; exec sleep 60\"'"
wait_for 30 logged first
sleep 0.2
command=$(pgrep -P "$TOOL" -x sh)
kill -STOP "$TOOL"
echo >"$TMP/on"
holds 'a later execve does not wait for the tool' wait_for 30 logged second
kill_tool
echo >"$TMP/on"
holds 'killed: COMMAND goes on' wait_for 30 logged third
holds 'killed: and waits as it wants to' wait_for 15 is_in_state "$command" S
kill "$command"

# Whoever else stops it decides when it goes on.
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
# A stop may take 2 s to come and go, and longer on a busy machine: each child is waited for.
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

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Compares the tool's counts with those of bpftrace on the same tracepoint, or of strace.
. "$(dirname "$0")/lib.sh"

# python3 makes calls that no test has counted in advance.
cat >"$TMP/load.py" <<'END'
import os, sys, threading, time
print("ready", flush=True)
sys.stdin.readline()
def work():
    for i in range(300):
        open("/etc/hostname").read()
        os.getppid()
        time.sleep(0.0005)
threads = [threading.Thread(target=work) for _ in range(3)]
[t.start() for t in threads]
[t.join() for t in threads]
os._exit(0)
END
mkfifo "$TMP/go"
python3 "$TMP/load.py" <"$TMP/go" >"$TMP/ready" &
load=$!
exec 7>"$TMP/go"
# Waits until it is in its read(), whose begin neither tracer may see.
for _ in $(seq 3000); do
	grep -q ready "$TMP/ready" && grep -q '^State:.*sleeping' "/proc/$load/status" && break
	sleep 0.02
done
run_tool -p $load --detail steps
wait_attached "$TOOL"
if bpftrace -l tracepoint:raw_syscalls:sys_exit 2>/dev/null | grep -q sys_exit; then
	how=bpftrace
	# bpftrace is ready when it has seen a call of this shell.
	bpftrace -e "$(counter_ends "$(counter_code 0)")
		tracepoint:raw_syscalls:sys_enter /pid == $load || pid == $$/ { @inside[tid] = 1; }
		tracepoint:raw_syscalls:sys_exit /pid == $load && @inside[tid]/
			{ @calls[args->id] = count(); delete(@inside[tid]); }
		tracepoint:raw_syscalls:sys_exit /pid == $$ && @inside[tid] && @said == 0/
			{ @said = 1; printf(\"counting\n\"); }" >"$TMP/counts" 2>&1 7>&- </dev/null &
	for _ in $(seq 900); do grep -q counting "$TMP/counts" && break; sleep 0.1; done
elif command -v strace >/dev/null; then
	how=strace
	strace -f -c -U name,calls -o "$TMP/counts" -p $load 7>&- </dev/null 2>/dev/null &
	for _ in $(seq 900); do grep -q '^TracerPid:.*[1-9]' "/proc/$load/status" && break; sleep 0.1; done
else
	echo 'SKIP neither bpftrace (with tracefs) nor strace works here'
	exit 77
fi
counter=$!
echo >&7
exec 7>&-
wait $load
end_tool
if [ $how = bpftrace ]; then
	end_counter "$(counter_code 0)" $counter
	theirs=$(sed -n 's/^@calls\[\([0-9]*\)\]: \([0-9]*\)/\1 \2/p' "$TMP/counts" | sort -n)
	ours=$(python3 -c '
import json, sys
for row in json.load(open(sys.argv[1]))["processes"][0]["syscalls"]:
    if row["calls"]:
        print(row["nr"], row["calls"])' "$OUT.report" | sort -n)
else
	wait $counter
	theirs=$(awk 'NF == 2 && $2 ~ /^[0-9]+$/ && $1 != "total" { print $1, $2 }' "$TMP/counts" | sort)
	ours=$(q '"\n".join(k + " " + str(v) for k, v in table.items())' | sort)
fi
# Neither counts the read() that waits for the go, because neither saw it begin. A new thread only
# returns from clone3, which bpftrace would count as a call without @inside.
diff <(echo "$theirs") <(echo "$ours") | sed 's/^/# /'
difference=$(diff <(echo "$theirs") <(echo "$ours") | grep -c '^[<>]')
total=$(echo "$ours" | awk '{ sum += $2 } END { print sum }')
holds "$how counted something" [ -n "$theirs" ]
is "the same counts as $how, of all $total calls" "$difference" 0
finish

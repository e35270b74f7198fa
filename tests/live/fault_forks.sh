#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# fault_forks.sh [COUNT]: 10,000 threads, then as many processes, that live for a moment. Each call
# is in the tables, or its thread is counted as not followed.
. "$(dirname "$0")/lib.sh"

count=${1:-10000}

# The tool's peak resident memory in KiB.
peak_of_tool()
{
	awk '/^VmHWM/ { print $2 }' "/proc/$TOOL/status"
}

# The getppid calls in the last table of each process (struct fbt_table).
sum_calls()
{
	python3 - "$1" "$(printf '#include <sys/syscall.h>\nSYS_getppid' | ${CC:-cc} -E -P - | tail -1)" <<'END'
import struct
import sys

TABLE = 7
with open(sys.argv[1], "rb") as file:
    data = file.read()
at, calls = struct.unpack_from("<12xI", data, 0)[0], {}
while at < len(data):
    kind, _, size = struct.unpack_from("<HHI", data, at)
    if kind == TABLE:
        tgid, number, _, count = struct.unpack_from("<IIQQ", data, at + 8)
        if number == int(sys.argv[2]):
            calls[tgid] = count
    at += size
print(sum(calls.values()))
END
}

# bomb NAME 'KIND AT_ONCE [REST_MS]' TOOL-OPTION…
bomb()
{
	local name=$1 peak=0 now
	local -a kind

	read -ra kind <<<"$2"
	shift 2
	rm -f "${OUT:?}".*
	start_program fault_forks "${kind[0]}" "$count" "${kind[@]:1}"
	run_tool "${@/ENGINE/$ENGINE}" --trace none --record "$OUT.capture"
	wait_attached "$TOOL"
	go
	while kill -0 "$ENGINE" 2>/dev/null; do
		now=$(peak_of_tool)
		peak=${now:-$peak}
		sleep 0.1
	done
	wait "$ENGINE"
	is "$name: the target ends as it wants" $? 0
	[ "$name" != all ] || { sleep 0.5 && kill -INT "$TOOL"; }
	end_tool 0 "$name: the tool ends"
	holds "$name: its memory is bounded ($((peak / 1024)) MiB, rings included)" [ "$peak" -lt 400000 ]
	# The report shows only the busiest processes. The recording has the tables of all.
	calls=$(sum_calls "$OUT.capture")
	fact "$name: each call is there ($calls), or its thread is counted as not followed" \
		"T['getppid'] - 3 * (R['lost']['threads'] + R['lost']['processes']) <= $calls and
		 ('$name' == 'all' or $calls <= T['getppid'])"
	fact "$name: the profile has the same figures" \
		'W["lost_threads"] == R["lost"]["threads"] and W["lost_processes"] == R["lost"]["processes"]'
	holds "$name: outputs are valid" "$FBT" validate "$OUT.profile"
	q 'R["lost"]' | sed 's/^/# lost /'
}

# There is room for some 4,000 threads. More are followed as the tool notices that others have
# ended; see many_threads.sh.
bomb threads 'threads 200 20' -p ENGINE
bomb 'threads, all at once' 'threads 1000' -p ENGINE
bomb processes 'processes 100' -p ENGINE -f
bomb all 'processes 100' -a
finish

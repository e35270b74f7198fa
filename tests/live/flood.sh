#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A record of every call of a thread that does nothing but call, up to the moment of detaching.
. "$(dirname "$0")/lib.sh"

# Not on a disk: one that stalls for 50 ms would be the loss that is seen.
capture=$(mktemp -p /dev/shm 2>/dev/null || echo "$TMP/capture")
trap 'rm -f "$capture"; clean_up' EXIT
# A ring holds some 50 ms of this: a machine that is busy elsewhere for that long may lose calls once, a
# tool that stops reading before it has detached loses them each time.
for uprobes in multi perf; do
	for try in 1 2 3; do
		rm -f "${OUT:?}".*
		start_program flood
		FBT_UPROBES=$uprobes run_tool -p "$ENGINE" --step 'flood_?' --detail all -d 2 --trace none \
			--profile none --record "$capture"
		wait_attached "$TOOL"
		go
		end_tool
		kill "$ENGINE"
		records=$(python3 tests/live/count_records.py "$capture")
		fact "$uprobes: the table has the $records calls that have a record, and the lost ones" \
			"sum(table.values()) == $records + R['lost']['calls'] and $records > 100000"
		[ "$(q 'R["lost"]["total"]')" != 0 ] || break
	done
	fact "$uprobes: nothing lost (try $try)" 'R["lost"]["total"] == 0'
done
finish

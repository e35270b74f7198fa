#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A record of each call of a thread that does nothing but call, up to the moment of detaching.
. "$(dirname "$0")/lib.sh"

# Not on a disk: if the disk stalled for 50 ms, records would be lost for that reason.
capture=$(mktemp -p /dev/shm 2>/dev/null || echo "$TMP/capture")

# shellcheck disable=SC2317
undo()
{
	rm -f "$capture"
}

# A ring holds some 50 ms of this load. If the tool has no CPU for longer, records are lost, and the
# report says how many. tests/bench measures that nothing is lost if the tool has a CPU.
# shellcheck disable=SC2317
has_grown()
{
	[ "$(stat -c %s "$capture"* 2>/dev/null | sort -n | tail -1)" -gt $((8 << 20)) ] 2>/dev/null
}
for uprobes in multi perf; do
	rm -f "${OUT:?}".* "$capture"
	start_program flood
	FBT_UPROBES=$uprobes run_tool -p "$ENGINE" --step 'flood_?' --detail all --trace none --profile none \
		--record "$capture"
	wait_attached "$TOOL"
	go
	# Some 100,000 records.
	wait_for 60 has_grown
	stop_tool
	kill "$ENGINE"
	records=$(python3 tests/live/count_records.py "$capture")
	fact "$uprobes: the table has the $records calls that have a record, and the lost ones" \
		"sum(table.values()) == $records + R['lost']['calls'] and $records > 100000"
	echo "# $uprobes: lost $(q 'R["lost"]["total"]')"
done
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Steps that wait for another process, by memory, a pipe or a socket, spinning or asleep: told as one
# wait, for that process, and with what that did meanwhile. Counts are those of the program.
. "$(dirname "$0")/lib.sh"

[ "$(nproc)" -ge 2 ] || { echo 'SKIP needs two CPUs' && exit 77; }
chrt -f 1 true 2>/dev/null || { echo 'SKIP real-time priorities are not allowed' && exit 77; }
rounds=$(at_length 4 16)
read -ra ways <<<"${PEERS_WAYS:-yield nap poll futex futex_long pipe socket}"

for way in "${ways[@]}"; do
	rm -f "${OUT:?}".*
	start_program peers "$way" "$rounds"
	attach --step waiting_step --record "$OUT.capture"
	go
	wait "$ENGINE"
	end_tool 0 "$way: the tool ends with 0"
	"$FBT_BUILD/tests/live_capture_json" "$OUT.capture" >"$OUT.json" || not_ok "$way: a capture"
	python3 tests/live/peers.py "$TMP/truth.json" "$OUT.profile" "$OUT.json" "$way" >"$OUT.facts" ||
		FAILED=1
	sed "s/ok - /ok - $way: /" "$OUT.facts"
	fact "$way: the table has the program's own number of calls" \
		"sum(s['calls'] for s in T['steps']) <= sum(table.values())"
	holds "$way: outputs are valid" "$FBT" validate "$OUT.profile" "$OUT.trace"
	"$FBT" --replay "$OUT.capture" --report json --trace none --profile "$OUT.again" \
		>/dev/null 2>&1
	is "$way: the capture has the same verdicts" \
		"$(grep '"escalation_prof"' "$OUT.again" | grep -o '"cause_evidence":"[^"]*"')" \
		"$(grep '"escalation_prof"' "$OUT.profile" | grep -o '"cause_evidence":"[^"]*"')"
done
finish

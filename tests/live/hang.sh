#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A step that does not end is told of while it is open, and is traced on when it ends.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/otlp/lib.sh
. tests/live/otlp/lib.sh

# shellcheck disable=SC2317 # called by name
is_released()
{
	[ ! -e "$TMP/release" ]
}

# release NUMBER: lets the step go on once the tool has told of that many
release()
{
	await_lines "$1" ' hang: hang_step ' "$OUT.err"
	is "$detail: hang $1 is told of before it ends" $? 0
	sleep 0.5 # it could be told of again
	touch "$TMP/release"
	wait_for 60 is_released
}

for detail in escalated probes; do
	rm -f "${OUT:?}".*
	start_program hang "$TMP/release"
	attach --step hang_step --hang 1s --detail "$detail" --record "$OUT.capture"
	go
	for number in 1 2 3 4; do
		release $number
	done
	wait "$ENGINE"
	end_tool
	python3 tests/live/hang.py "$TMP/truth.json" "$OUT.profile" "$detail" >"$OUT.facts" ||
		FAILED=1
	sed "s/ok - /ok - $detail: /" "$OUT.facts"
	"$FBT" --replay "$OUT.capture" --report json --trace none --profile none >"$OUT.json"
	is "$detail: the capture has them" \
		"$(grep -o '"hang_count":[0-9]*' "$OUT.json")" '"hang_count":4'
	start_collector 200
	"$FBT" --replay "$OUT.capture" --report none --trace "$TMP/trace.json" --profile none --otlp "$URL" 2>"$OUT.err"
	end_collector "$detail"
	sound "$detail"
	sent "$detail: a collector gets each as a span, with the stack" \
		'len(H) == 4 and all("hang_step" in h["attributes"]["hang.stack"] and h["status"]["code"] == 2 for h in H)'
	is "$detail: the trace has them" "$(grep -o '"cat":"hang"' "$TMP/trace.json" | wc -l)" 4
done

rm -f "${OUT:?}".*
start_program hang "$TMP/release"
attach --step hang_step --hang 0
go
for _ in 1 2 3 4; do
	sleep 1.5
	touch "$TMP/release"
	wait_for 60 is_released
done
wait "$ENGINE"
end_tool
is '--hang 0: nothing is told of' "$(grep -c ' hang: ' "$OUT.err")" 0
finish

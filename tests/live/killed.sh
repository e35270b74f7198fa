#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A tracer that is killed leaves the target unharmed and no probe behind.
. "$(dirname "$0")/lib.sh"

list_ours()
{
	{ bpftool prog list 2>/dev/null || /usr/sbin/bpftool prog list; } |
		grep -cE 'name handle_(sys|step|fork|exit|exec)'
}

others=$(list_ours)
start_engine --steps 0 --sleep-us 200
attach --detail all
go
sleep 1
holds 'while it runs its programs are there' [ "$(list_ours)" -gt "$others" ]
kill -KILL "$TOOL"
wait "$TOOL" 2>/dev/null
for _ in $(seq 50); do
	[ "$(list_ours)" = "$others" ] && break
	sleep 0.1
done
is 'after kill -9 none is left' "$(list_ours)" "$others"
holds 'the target lives' kill -0 "$ENGINE"
is 'its step function is as it was in the file' "$(grep -c uprobes "/proc/$ENGINE/maps")" 0
holds 'what was written is whole lines' "$FBT" validate "$OUT.profile"
is 'the trace is there as a partial file' "$(find "$TMP" -name 'out.trace.partial' | wc -l)" 1

rm -f "$OUT".*
attach -n 20
end_tool 0 'another tracer attaches at once'
fact 'and counts as ever' 'len(S) >= 20 and len({str(s["by"]) for s in S if s["end"] == "return"}) == 1'
kill -TERM "$ENGINE"
wait "$ENGINE"
is 'the target ends as it wanted' $? 0
fact 'and every step of it was whole' 'T["steps"] > 100 and T["exact"]'
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A tracer that is killed leaves the target unharmed and no probe behind.
. "$(dirname "$0")/lib.sh"

bpftool=$(command -v bpftool || echo /usr/sbin/bpftool)

# Ids of the tool's programs and links. Others may trace on this machine too.
ids_of_tool()
{
	sed -n "s/^$1_id:[[:space:]]*//p" "/proc/$TOOL/fdinfo/"* | sort -u
}

count_left()
{
	local id left=0

	for id in $programs; do "$bpftool" prog show id "$id" >/dev/null 2>&1 && left=$((left + 1)); done
	for id in $links; do "$bpftool" link show id "$id" >/dev/null 2>&1 && left=$((left + 1)); done
	echo $left
}

start_engine --steps 0 --sleep-us 200
attach --detail all
go
await_steps 100
programs=$(ids_of_tool prog)
links=$(ids_of_tool link)
holds 'while it runs its programs and links are there' [ "$(count_left)" -ge 10 ]
kill -KILL "$TOOL"
wait "$TOOL" 2>/dev/null
for _ in $(seq 600); do
	[ "$(count_left)" = 0 ] && break
	sleep 0.1
done
is 'after kill -9 none is left' "$(count_left)" 0
holds 'the target lives' kill -0 "$ENGINE"
# In a position-independent file, the address is the offset from the file's first mapping.
is 'its step function is as it is in the file' "$(python3 - "$ENGINE" "$FBT_ENGINE" <<'END'
import subprocess
import sys

pid, path = sys.argv[1:]
symbol = subprocess.run(["nm", "-S", path], capture_output=True, text=True, check=True).stdout
address, size = next((int(words[0], 16), int(words[1], 16)) for words in
                     (line.split() for line in symbol.splitlines()) if words[-1] == "engine_step")
with open("/proc/%s/maps" % pid) as maps:
    base = int(maps.readline().split("-")[0], 16)
with open("/proc/%s/mem" % pid, "rb") as memory, open(path, "rb") as file:
    memory.seek(base + address)
    found = memory.read(size)
    print(found in file.read())
END
)" True
holds 'what was written is whole lines' "$FBT" validate "$OUT.profile"
holds 'the partial trace is valid up to its last whole event' "$FBT" validate "$OUT.trace.partial"
is 'the trace is there as a partial file' "$(find "$TMP" -name 'out.trace.partial' | wc -l)" 1

# A burst of six steps, and then one that hangs: no further piece comes to flush those before it.
# Hangs are not looked for, since that would be such a piece.
engine=$ENGINE
start_engine --steps 0 --sleep-us 100 --slow-futex-every 7 --slow-us 600000000
hung=$ENGINE
run_tool -p "$ENGINE" --step engine_step --hang 0 --trace "$TMP/h.json" --profile "$TMP/h.jsonl.gz" \
	--record "$TMP/h.fbt"
wait_attached "$TOOL" || not_ok 'the tool attaches to an engine that will hang'
go
# shellcheck disable=SC2317,SC2329 # called by name
has_all_steps()
{
	[ "$(grep -o '"name":"engine_step"' "$TMP/h.json.partial" | wc -l)" = 6 ] &&
		[ "$(gzip -dc "$TMP/h.jsonl.gz" 2>/dev/null | grep -c step_prof)" = 6 ] &&
		"$FBT" --replay "$TMP/h.fbt.partial" --trace none --profile none 2>/dev/null | grep -q '^6 steps of'
}
holds 'the last second is written also if nothing follows' wait_for 60 has_all_steps
kill -KILL "$TOOL" "$hung"
wait "$TOOL" "$hung" 2>/dev/null
ENGINE=$engine

# Compressed files are flushed each second, too.
# shellcheck disable=SC2317,SC2329 # called by name
has_lines()
{
	[ "$(gzip -dc "$TMP/p.jsonl.gz" 2>/dev/null | wc -l)" -gt 20 ]
}
run_tool -p "$ENGINE" --step engine_step --profile "$TMP/p.jsonl.gz" --trace "$TMP/t.json.gz"
wait_for 60 has_lines
kill -KILL "$TOOL"
wait "$TOOL" 2>/dev/null
holds 'compressed lines are whole' "$FBT" validate "$TMP/p.jsonl.gz"
holds 'and the partial trace is valid' "$FBT" validate "$TMP/t.json.gz.partial"
before=$(gzip -dc "$TMP/p.jsonl.gz" 2>/dev/null | wc -l)
cp "$TMP/t.json.gz.partial" "$TMP/kept"
run_tool -p "$ENGINE" --step engine_step -n 20 --profile "$TMP/p.jsonl.gz" --trace "$TMP/t.json.gz"
end_tool 0 'another run appends to them'
holds 'so that gzip reads all' gzip -t "$TMP/p.jsonl.gz"
holds 'the trace of the killed run is kept beside the new one' cmp "$TMP/kept" "$TMP/old.t.json.gz.partial"
holds 'and is valid as it was' "$FBT" validate "$TMP/old.t.json.gz.partial"
has 'which is told' "$OUT.err" '/t\.json\.gz: .* killed .* kept as old\.t\.json\.gz\.partial$'
is 'and nothing is lost' "$(($(gzip -dc "$TMP/p.jsonl.gz" | wc -l) - before >= 41))" 1

rm -f "${OUT:?}".*
run_tool -p "$ENGINE" --step engine_step -n 20
end_tool 0 'another tracer attaches'
fact 'and counts as ever' 'len(S) >= 20 and len({str(s["by"]) for s in S if s["end"] == "return"}) == 1'
kill -TERM "$ENGINE"
wait "$ENGINE"
is 'the target ends as it wanted' $? 0
fact 'and every step of it was whole' 'T["steps"] > 100 and T["exact"]'
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# --folded: the stacks of slow calls for flame graphs, held against the records of the calls and what
# the engine has measured itself; by the rules of flamegraph.pl, inferno and speedscope.
. "$(dirname "$0")/lib.sh"

if ! g++ -D_GNU_SOURCE -O2 -g -fomit-frame-pointer -Wl,--build-id=sha1 tests/live/stacks.cc -o "$TMP/stacks" \
	-lpthread -ldl 2>"$TMP/g++"; then
	echo "SKIP no g++ for it here: $(head -1 "$TMP/g++")"
	exit 77
fi

start_waiting "$TMP/stacks" "$TMP/truth.json" 2
run_tool -p "$ENGINE" --step engine_step --record "$OUT.capture" --folded "$OUT.folded"
wait_attached "$TOOL"
is 'it is not there before it is complete' "$(stat -c %s "$OUT.folded" 2>/dev/null)" ''
go
wait "$ENGINE"
end_tool
"$FBT_BUILD/tests/live_capture_json" "$OUT.capture" >"$OUT.json" || not_ok 'a capture'
python3 tests/live/folded.py "$OUT.folded" "$TMP/truth.json" "$OUT.json" || FAILED=1
is 'only its owner reads it' "$(stat -c %a "$OUT.folded")" 600
is 'nothing else is left' "$(ls "$OUT".folded*)" "$OUT.folded"

"$FBT" --replay "$OUT.capture" -o "$TMP/again" >/dev/null 2>&1
holds 'a replay makes the same file' cmp "$OUT.folded" "$TMP/again.folded"
"$FBT" --replay "$OUT.capture" --folded "$TMP/stdout" --report none 2>/dev/null
holds 'a replay needs no other output' cmp "$OUT.folded" "$TMP/stdout"

# The tool itself, where there is one: https://github.com/brendangregg/FlameGraph
if flamegraph=$(command -v flamegraph.pl); then
	"$flamegraph" "$OUT.folded" >"$TMP/graph.svg" 2>"$TMP/graph.err"
	is 'flamegraph.pl has no complaint' "$(cat "$TMP/graph.err")" ''
	has 'flamegraph.pl draws it' "$TMP/graph.svg" '<title>engine_step \([0-9,]+ samples, 100.00%\)</title>'
fi

# Nothing is slow: an empty file.
rm -f "${OUT:?}".*
start_engine --steps 20 --sleep-us 500
attach -o "$TMP/base"
go
wait "$ENGINE"
end_tool
is 'without slow calls it is empty' "$(stat -c %s "$TMP/base.folded")" 0
finish

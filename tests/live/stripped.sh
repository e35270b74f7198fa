#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A stripped engine: its step is found by a text that only the step contains, given by the user or
# in the built-in table. A text in several functions is refused, with their rates.
. "$(dirname "$0")/lib.sh"

if ! command -v strip nm >"$TMP/tools"; then
	echo 'SKIP strip and nm are not installed'
	exit 77
fi
strip -o "$TMP/ferrum" "$FBT_BUILD/tests/live_stripped"
address=$(nm "$FBT_BUILD/tests/live_stripped" | awk '$3 == "model_step" { sub(/^0+/, "", $1); print $1 }')
# Without the step that the end of the window cut, if a busy machine delayed its end.
whole='[s["us"]["total"] for s in S if s["end"] == "return"]'
panic='synchronous model execution panicked: '

start_waiting "$TMP/ferrum" "$TMP/truth.json" 100
run_tool -p "$ENGINE" --step 'string:no such expert: '
wait_attached "$TOOL" || { cat "$OUT.err" && not_ok 'the tool attaches' && finish; }
go
wait "$ENGINE"
end_tool
fact 'a text that is given: its function is the step' \
	"[k['name'] for k in R['kinds'] if k['steps']] == [\"$TMP/ferrum+0x$address (by the text 'no such expert: ')\"]"
fact 'each step is seen' 'len(S) == T["steps"] == 100'
fact 'each is as long as the program makes it' 'all(s["us"]["total"] >= 2000 for s in S)'

start_waiting "$TMP/ferrum" "$TMP/truth.json" 0
go
run_tool -p "$ENGINE" -n 50
wait_attached "$TOOL" || { cat "$OUT.err" && not_ok 'the tool attaches' && finish; }
end_tool
fact 'no option: the engine is known by its text, in the function that is called as a step' \
	"[k['name'] for k in R['kinds'] if k['steps']] == [\"execute_tokens (by the text '$panic')\"] and
	min($whole) >= 2000 and len(S) >= 50"

"$FBT" -p "$ENGINE" --step "string:$panic" -d 1 --trace none --profile none >"$TMP/out" 2>"$TMP/err" </dev/null
is 'a text in several functions is refused' $? 1
has 'they are named with their rates' "$TMP/err" \
	"3 functions; name one of them: .*ferrum\+0x[0-9a-f]+ \([0-9.]+ calls/s, mean [0-9.]+ ms\), .*\+0x[0-9a-f]+ \("
has 'one of them is the step' "$TMP/err" "ferrum\+0x$address \([1-9]"
"$FBT" doctor "$ENGINE" >"$TMP/out" 2>"$TMP/err" </dev/null
is 'doctor: exit status' $? 0
has 'doctor: names it by its text' "$TMP/out" 'execute_tokens \(by the text'
kill -TERM "$ENGINE"
wait "$ENGINE"
is 'the engine ends as it wants' $? 0

# An idle engine cannot be measured. The functions with the text are checked once it computes.
start_waiting "$TMP/ferrum" "$TMP/truth.json" 0
run_tool -p "$ENGINE" -d 4
wait_attached "$TOOL" || { cat "$OUT.err" && not_ok 'the tool attaches' && finish; }
has 'an idle engine: it says that the step is not known yet' "$OUT.err" 'no step has ended yet: its step is one of 2 functions'
go
end_tool
fact 'its steps are seen' "min($whole) >= 2000"
is 'one function that is called as a step is beyond doubt' "$(grep -c 'known by a text only' "$OUT.err")" 0
kill -TERM "$ENGINE"
wait "$ENGINE"
rm "${OUT:?}".*
start_waiting "$TMP/ferrum" "$TMP/truth.json" 0 two
run_tool -p "$ENGINE" -d 4
wait_attached "$TOOL" || { cat "$OUT.err" && not_ok 'the tool attaches' && finish; }
go
end_tool
has 'two that are called: it names them with their rates' "$OUT.err" \
	"known by a text only.*ferrum\\+0x$address \\([0-9.]+ calls/s, mean [0-9.]+ ms\\)"
is 'and once' "$(grep -c 'known by a text only' "$OUT.err")" 1
kill -TERM "$ENGINE"
wait "$ENGINE"
finish

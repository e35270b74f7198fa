#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The command top in a real terminal (tmux): its figures against those of the profile, its keys,
# dumps, sizes and colours, and the terminal as it was after every exit.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/top/lib.sh
. tests/live/top/lib.sh

new_engine
start 100 30
await on_page 'own code: .*futex'
page >"$TMP/page"
has 'the title names process and step function' "$TMP/page" "ferrum-bpftrace top +engine\[$ENGINE\] engine_step"
has 'the headline says what is not own code' "$TMP/page" '^[0-9.]+ % .* not .*own code: .*futex [0-9.]+ %'
has 'percentiles' "$TMP/page" 'steps/s [0-9.]+ .*p50 .* p95 .* p99 .* max '
has 'the parts of the time' "$TMP/page" '^time .* own [0-9.]+ %'
has 'a slow step with its cause' "$TMP/page" '#[0-9]+ .* x[0-9]+ .*lock contention futex'
holds 'the causes of the last minutes' await on_page 'CAUSES .*lock contention [0-9.]+ (s|ms) x[0-9]+'

press s
holds 's sorts the classes' await on_page 'classes by steps/s'
press o
holds 'o sorts the slow steps' await on_page 'SLOW STEPS slowest first'
press o f 'lock' Enter
holds 'f filters' await on_page 'filter: lock'
press f BSpace BSpace BSpace BSpace 'nosuchcause' Enter
holds 'a filter that nothing meets leaves no step' await on_page 'newest first, 0 of'
press f Escape
await on_page 'newest first, [1-9]'
# The slowest: a step that comes for its lock late waits for less.
press f 'lock contention' Enter o e
holds 'e expands a step' await on_page 'where its time went'
page >"$TMP/page"
# The lock is held for 60 ms. Part of the wait may be for a CPU.
waited=$(sed -nE 's/^ +futex (([4-9][0-9]|[1-9][0-9]{2})[0-9.]* ms) \(usually .*/\1/p' "$TMP/page")
has 'with its lock' "$TMP/page" "^ +futex ${waited:-of 40 ms or more} .*, lock at 0x"
# The part is without what of the wait was for a CPU.
has 'with its breakdown' "$TMP/page" '^ +futex +([4-9][0-9]|[1-9][0-9]{2})[0-9.]* ms +[0-9]+%'
has 'with advice' "$TMP/page" '^what to do'
press Escape o f Escape w
holds 'w says what can be trusted' await on_page 'CAN THESE NUMBERS BE TRUSTED'
press Escape h
holds 'h helps' await on_page 'Ctrl-Z +suspend'
press Escape p
holds 'p pauses' await on_page PAUSED
await has_settled
sleep 2
# What the tool tells meanwhile comes in the last line.
is 'the page stands still' "$(page | sed '$d')" "$(sed '$d' "$TMP/page")"
press p
holds 'and p goes on' await not_on_page PAUSED
page >"$TMP/page"
holds 'and it changes again' await page_is_not "$TMP/page"

press d
holds 'd writes files' await on_page 'wrote .*ferrum_top_pid'
holds 'the trace and the profile are valid' "$FBT" validate "$TMP"/dumps/ferrum_top_*.jsonl \
	"$TMP"/dumps/ferrum_top_*.trace.json
holds 'the capture can be replayed' "$FBT" --replay "$TMP"/dumps/ferrum_top_*.fbt --trace none \
	--profile none
"$FBT" --replay "$TMP"/dumps/ferrum_top_*.fbt --trace none --profile none --report json >"$TMP/dump" 2>&1
has 'its report has what the tool has cost' "$TMP/dump" '"added_percent":[0-9]'
has 'there is a page' "$(echo "$TMP"/dumps/ferrum_top_*.html)" '<!doctype html>'
is 'the files are for their owner only' "$(stat -c %a "$TMP"/dumps/ferrum_top_* | sort -u)" 600

"${tmux[@]}" resize-window -t t -x 80 -y 24
# A page may come in two pieces, the last line with the second: both facts are of one whole page.
# shellcheck disable=SC2317,SC2329 # await calls it
has_last_line()
{
	page >"$TMP/page"
	grep -qE '^top +engine' "$TMP/page" && sed -n 24p "$TMP/page" | grep -q .
}
holds 'it follows the size of the terminal' await has_last_line
is 'the last line is the 24th' "$(sed -n '24,$p' "$TMP/page" | grep -c .)" 1
"${tmux[@]}" resize-window -t t -x 50 -y 10
holds 'a small terminal is told' await on_page '50x10 is too small: 60x16 at least'
"${tmux[@]}" resize-window -t t -x 100 -y 30
await on_page "$PATTERN"

press C-z
holds 'Ctrl-Z suspends' await on_page 'Stopped'
is 'while it is suspended the other screen is left' \
	"$("${tmux[@]}" display-message -p -t t '#{alternate_on}')" 0
rm "$TMP/rc"
press 'fg; echo $? >'"'$TMP/rc'" Enter
holds 'fg goes on' await on_page "$PATTERN"
press q
restored q
is 'its own filter refused nothing' "$(grep -c refused "$TMP/err")" 0
holds 'it has colours' grep -q $'\e\[[0-9;]*3[1-6]' "$TMP/raw"

start 100 30 NO_COLOR=1
press C-c
restored Ctrl-C
is 'NO_COLOR: no colour' "$(grep -acE $'\e\[([0-9;]*;)?(3[0-8]|4[0-8]|9[0-7])(;[0-9;]*)?m' "$TMP/raw")" 0

start 100 30 LC_ALL=C
page >"$TMP/page"
is 'another locale: ASCII only' "$(LC_ALL=C grep -c '[^ -~]' "$TMP/page")" 0
kill -TERM "$(top_pid)"
restored SIGTERM
start 100 30
kill -HUP "$(top_pid)"
restored SIGHUP
start 100 30
kill -QUIT "$(top_pid)"
restored SIGQUIT

MORE="--profile '$TMP/profile'"
start 100 30
MORE=
await on_page 'lock contention [0-9.]+ m?s x[3-9]'
kill -STOP "$ENGINE"
# Figures stand still when the second has ended in which the last step did.
await on_page '^no step for|HANGS'
page >"$TMP/page"
kill -CONT "$ENGINE"
kill -TERM "$ENGINE"
restored 'the end of the target'
cat >"$TMP/counts.py" <<'END'
import json, re, sys
page = open(sys.argv[1]).read()
lines = [json.loads(line) for line in open(sys.argv[2])]
last = max(map(int, re.findall(r"#(\d+) ", page)))
seen = [e for e in lines if e["event"] == "escalation_prof" and e["shape"]["step"] <= last
	and e["shape"].get("not_shown") in (None, "rate_limit")]
locks = sum(e["shape"]["cause"] == "lock_contention" for e in seen)
listed = re.search(r"newest first, (\d+) of (\d+)", page)
shown = re.search(r"lock contention [0-9.]+ m?s x(\d+)", page)
print(int(listed[2]) - ("HANG " in page) == len(seen), int(shown[1]) == locks, locks >= 3)
if int(listed[2]) != len(seen):
	print(page, len(seen), [e["shape"]["step"] for e in seen], file=sys.stderr)
END
is 'its counts are those of the profile' "$(python3 "$TMP/counts.py" "$TMP/page" "$TMP/profile")" 'True True True'

# What is no terminal gets one line.
new_engine
"$FBT" top -p "$ENGINE" --step engine_step >"$TMP/out" 2>"$TMP/err" </dev/null
is 'no terminal: exit status' $? 1
is 'no terminal: one line' "$(wc -l <"$TMP/err") $(wc -c <"$TMP/out")" '1 0'
has 'no terminal: it says what to do' "$TMP/err" 'top .*terminal: .* -p PID'
script -qec "env TERM=nosuch $FBT top -p $ENGINE --step engine_step" /dev/null >"$TMP/out" </dev/null
has 'an unknown terminal: it says what to do' "$TMP/out" 'TERM=nosuch .* set'
for words in "-- true" "--flag x -p $ENGINE" "--replay x"; do
	# shellcheck disable=SC2086
	"$FBT" top $words >/dev/null 2>"$TMP/err"
	is "top $words: exit status" $? 2
done
kill "$ENGINE"
exit $FAILED

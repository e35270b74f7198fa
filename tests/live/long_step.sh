#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# long_step.sh [SECONDS]: a step of that length that makes calls all the time, one that sleeps in a
# single call, and one that is still open when the window ends. Their times are those of the
# program's clock, their sums are exact, and the tool's memory does not grow.
. "$(dirname "$0")/lib.sh"

seconds=${1:-$(at_length 3 15)}
start_program long_step "$seconds" "$TMP/done"
run_tool -p "$ENGINE" --step busy_step --step asleep_step --step open_step --record "$OUT.capture" "${calm[@]}"
wait_attached "$TOOL" || { cat "$OUT.err" && not_ok 'the tool attaches' && finish; }
go

# RssAnon in KiB, at most a hundred samples. What the tool keeps of a step is complete after the
# first quarter.
pause=$(awk "BEGIN { print $seconds / 100 < 0.05 ? 0.05 : $seconds / 100 }")
while kill -0 "$ENGINE" 2>/dev/null && [ ! -e "$TMP/done" ]; do
	awk '/^RssAnon/ { print $2 }' "/proc/$TOOL/status" >>"$TMP/samples" 2>/dev/null
	sleep "$pause"
done
grown=$(awk '{ value[++count] = $1 }
	END {
		from = int(count / 4) + 1
		for (i = from; i <= count; i++) if (value[i] > most) most = value[i]
		print most - value[from]
	}' "$TMP/samples")
echo "# RssAnon $(head -1 "$TMP/samples") … $(tail -1 "$TMP/samples") KiB, $(grep -c . "$TMP/samples") samples, grown by $grown KiB"
holds 'its memory was looked at' [ "$(grep -c . "$TMP/samples")" -ge 4 ]
# 65,536 calls of a thread are kept. At that number the older half is dropped, so memory varies by 2
# MiB.
holds 'memory stays while a step is open: less than 4 MiB more after its first quarter' [ "$grown" -lt 4096 ]

is 'a step that is open is not taken for none' "$(grep -c 'no step was seen' "$OUT.err")" 0

# The window continues for a while after the steps.
sleep 0.3
stop_tool
kill -TERM "$ENGINE"
wait "$ENGINE"
is 'the program ends as it wants' $? 0

# by(K): the step. span(K): the shortest and longest possible time from its begin to its end in us,
# by the program's clock; plus a microsecond, because both are rounded.
by='(lambda kind: next(s for s in S if s["kind"] == kind))'
least="(lambda k: (T[k]['end'][0] - T[k]['begin'][1]) / 1e3 - 1)"
most="(lambda k: (T[k]['end'][1] - T[k]['begin'][0]) / 1e3 + 1)"
fact 'each is seen once, on its thread' \
	'sorted((s["kind"], s["tid"]) for s in S) == sorted((k, T[k]["tid"]) for k in T if k.endswith("_step"))'
for kind in busy_step asleep_step; do
	fact "$kind: it took as long as the program says" \
		"$seconds * 10**6 <= $least('$kind') + 1 and
		$least('$kind') <= $by('$kind')['us']['total'] <= $most('$kind')"
	fact "$kind: it ended by its return" "$by('$kind')['end'] == 'return'"
	fact "$kind: the trace says the same" \
		"[x['dur'] - $by('$kind')['us']['total'] in (0, 1) and x['ts'] == $by('$kind')['start_us']
			for x in X if x['cat'] == 'step' and x['name'] == '$kind'] == [True]"
done
# The text outputs have a step's CPU time only as a sum of its parts.
"$FBT_BUILD/tests/live_capture_json" "$OUT.capture" >"$OUT.json" || not_ok 'a capture'
python3 tests/live/long_step.py "$TMP/truth.json" "$OUT.json" || FAILED=1
fact 'busy_step: its parts add up to it' \
	"sum($by('busy_step')['us'][k] for k in ('own', 'cpu_wait', 'faults', 'stopped', 'off_cpu') if k in $by('busy_step')['us']) +
		sum(v for k, v in $by('busy_step')['us'].items() if k.endswith('_net')) == $by('busy_step')['us']['total']"

fact 'begins are as far from each other as the program says' \
	"all(T[k]['begin'][0] - T['busy_step']['begin'][1] - 2000 <=
		1000 * ($by(k)['start_us'] - $by('busy_step')['start_us']) <=
		T[k]['begin'][1] - T['busy_step']['begin'][0] + 2000 for k in ('asleep_step', 'open_step'))"
fact 'busy_step: each of its calls is in its sums' \
	"$by('busy_step')['by']['write']['calls'] == T['writes'] and
	$by('busy_step')['by']['futex']['calls'] == $by('busy_step')['by']['futex']['errors'] == T['waits']"
fact 'busy_step: it says that not all of its calls are kept' \
	"$by('busy_step')['calls_truncated'] and not $by('busy_step')['complete'] and
	$by('busy_step')['lost_calls'] == 0 and $by('asleep_step')['complete']"
fact 'busy_step: the rest of its time is where it belongs' \
	"0.1e6 * T['waits'] <= $by('busy_step')['six']['futex'] <= $by('busy_step')['us']['total']"
fact 'asleep_step: its one call is as long as it' \
	"[$seconds * 10**6 <= e['shape']['other_max_us'] <= e['stage_us']['other'] <= e['stage_us']['total']
		for e in E if e['event'] == 'syscall_prof' and e['shape']['step'] == $by('asleep_step')['step']] == [True]"
fact 'open_step: it ends with the window, which is what it says' \
	"$by('open_step')['end'] == 'truncated' and not $by('open_step')['complete'] and
	abs($by('open_step')['start_us'] + $by('open_step')['us']['total'] - R['window_ns'] / 1e3) < 2"
fact 'open_step: it is longer than the others, and counted as open' \
	"$by('open_step')['us']['total'] > $seconds * 10**6 and W['incomplete_steps'] == 2 and
	[k['ends']['truncated'] for k in R['kinds'] if k['name'] == 'open_step'] == [1]"
fact 'the table has all calls, and the one that never returns' \
	'table["write"] == T["writes"] and table["futex"] >= T["waits"]'
fact 'nothing lost' 'lost == 0'
holds 'outputs are valid' "$FBT" validate -q "$OUT.profile" "$OUT.trace"
finish

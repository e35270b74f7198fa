#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Two ranks of an engine that wait for each other: which one was late, by how much, and why, held against
# their own clocks.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/python/lib.sh
. tests/live/python/lib.sh
[ "$(nproc)" -ge 2 ] || { echo 'SKIP two ranks need two CPUs' && exit 77; }

# Each kind of lateness four times.
steps=480
go_first FBT
rm -f "${OUT:?}".*
start_waiting env LD_PRELOAD="$LIBRARY" /usr/bin/python3 tests/live/python/ranks.py "$TMP/truth.json" $steps
run_tool -p "$ENGINE" --record "$OUT.fbt"
wait_attached "$TOOL" || { sed 's/^/# /' "$OUT.err" && not_ok 'the tool attaches' && finish; }
count_others_from_here
go
wait "$ENGINE"
is 'the engine ends as ever' $? 0
end_tool
# Where others want the CPUs, the kernel keeps some time of each second for them, from both ranks.
count_others

# Iterations by number, and what a rank says of itself; one that is late in two ways is so in the longer one.
i='{x["args"]["iteration"]: x["args"] for x in X if x["cat"] == "iteration" and x["args"]["ranks"] == 2}'
late='{int(n): t for r in T["ranks"] for n, t in r["late"].items()}'
# shellcheck disable=SC2089
team='[t for t in R["iterations"] if len(t["ranks"]) == 2][0]'
where='(lambda a: max(("begins", "within", "ends"), key=lambda w: a["late_%s_us" % w]))'
# How late a rank's begin is at most by its own clock, in us: it reads that before the call and in it, and may
# lose its CPU between.
begins='(lambda n, pid: max(0, *[(a["spans"][n - 1][3] - b["spans"][n - 1][0]) / 1000
	for a in T["ranks"] for b in T["ranks"] if a["pid"] == pid]))'

fact 'each iteration is seen, with both ranks' "list($i) == list(range(1, $steps + 1))"
fact 'the report has as many, and leaves nothing out' \
	"($team)['iterations'] == $steps and ($team)['left_out'] == 0 and ($team)['function'] == 'GPUModelRunner.execute_model'"
fact 'its ranks are the processes of the engine' \
	"{(r['pid'], r['title']) for r in ($team)['ranks']} ==
	{(r['pid'], 'Worker_TP%d' % n) for n, r in enumerate(T['ranks'])} and ($team)['parent_pid'] == T['core']"
fact 'both functions are parts of each' \
	"[(p['name'].split('.')[1], p['steps']) for p in ($team)['parts']] ==
	[('execute_model', 2 * $steps), ('sample_tokens', 2 * $steps)]"
fact 'the step of the core contains them' \
	"($team)['engine']['name'] == 'EngineCore.step' and ($team)['engine']['pid'] == T['core'] and
	($team)['engine']['within_one_step'] > $steps * 0.95"
fact 'troubles are there to be found' "len($late) >= 36"
while read -r place how cause; do
	kind="$place $how"
	where_quiet fact "$kind: each time the right rank is named" \
		"(lambda I, L: len(L) >= 4 and all(I[n].get('late_pid') == t['pid'] for n, t in L.items()))($i,
		{n: t for n, t in ($late).items() if t['kind'] == '$kind'})"
	where_quiet fact "$kind: where it was late, and why" \
		"(lambda I, L: [($where(I[n]), I[n]['late_cause']) for n in L] ==
		[('$place', '$cause')] * len(L))($i, [n for n, t in ($late).items() if t['kind'] == '$kind'])"
	where_quiet fact "$kind: by how much" \
		"(lambda I, L: all(abs(I[n]['late_us'] / 1000 - t['ms']) <= t['ms'] / 5 + 3 for n, t in L.items()))($i,
		{n: t for n, t in ($late).items() if t['kind'] == '$kind'})"
done <<'END'
within stop stopped
within starve cpu_wait
within own own
within gc gc
begins stop stopped
begins starve cpu_wait
begins sleep between
ends sleep other_net
ends stop stopped
END
fact 'begins are late as by their own clocks' \
	"all(a['late_begins_us'] <= $begins(n, a['late_pid']) + 500 for n, a in ($i).items() if 'late_pid' in a)"
odd="{n: (a['late_us'], a['late_pid'], a['late_cause'], $where(a), [r['spans'][n - 2:n + 1] for r in T['ranks']])
	for n, a in ($i).items() if n not in ($late) and a.get('late_us', 0) >= 10000}"
echo "# $(q "$odd")"
where_quiet fact 'no other rank is late by a quarter of that, but for one that had no CPU' \
	"all(any((s[1] - s[0] - s[2]) / 1e6 > 5 for r in T['ranks'] for s in r['spans'][n - 2:n + 1]) or
	any((r['spans'][min(n, len(r['spans']) - 1)][4] - r['spans'][max(n - 3, 0)][4]) / 1e6 > 5 for r in T['ranks'])
	for n, a in ($i).items() if n not in ($late) and a.get('late_us', 0) >= 10000)"
fact 'the report sums up what the trace has' \
	"{r['pid']: r['late'] for r in ($team)['ranks']} ==
	{r['pid']: sum(a.get('late_pid') == r['pid'] for a in ($i).values()) for r in T['ranks']}"
fact 'so do its causes' \
	"all(sum(c['late'] for c in r['causes']) == r['late'] and
	r['begins_ns'] + r['within_ns'] + r['ends_ns'] == r['late_ns'] for r in ($team)['ranks'])"
fact 'late ranks are a finding' "{f['pid'] for f in R['findings'] if f['kind'] == 'rank'} == {r['pid'] for r in T['ranks']}"
holds 'the outputs are valid' "$FBT" validate "$OUT.profile" "$OUT.trace"
"$FBT" --replay "$OUT.fbt" --trace none --profile none >"$TMP/report" 2>&1
has 'the text has a line for each rank' "$TMP/report" '^  Worker_TP1 '
[ -z "${SHOW:-}" ] || cat "$TMP/report"
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Where steps have their page faults, counted: compared with a program that asks the kernel for their
# number, and knows which memory it touched in which function.
. "$(dirname "$0")/lib.sh"

start_program page_faults "$TMP/pages"
# Where other programs have its CPU, that is the cause.
chrt -f -p 1 "$ENGINE" 2>/dev/null
attach --step faults_step --explain always --rate-guard 0 --record "$OUT.capture" --escalate-now
go
wait "$ENGINE"
stop_tool
"$FBT_BUILD/tests/live_capture_json" "$OUT.capture" >"$OUT.json" || not_ok 'a capture'
python3 tests/live/fault_sites.py "$TMP/truth.json" "$OUT.json" "$TMP/pages" "$OUT.profile" || FAILED=1

# On demand: the first steps that are slow for their faults are counted as not explained, and all
# after them are explained. They have more faults than are counted otherwise on so few CPUs.
rm -f "${OUT:?}".*
start_program page_faults "$TMP/pages" rare
chrt -f -p 1 "$ENGINE" 2>/dev/null
FBT_EXPLAIN_LIMIT_PPM=100000 attach --step faults_step --explain auto --efficiency-threshold 60
go
wait "$ENGINE"
stop_tool
faults="[row for row in R['cost']['explain'] if row['what'] == 'faults']"
told="['; counted: ' in g['cause_evidence'] for n, g in sorted(G.items()) if g['cause'] == 'page_faults']"
fact 'auto: it is armed at the end' "[row['state'] for row in $faults] == ['armed']"
fact 'auto: the first steps are not told, and all later ones are' "$told == sorted($told)"
fact 'auto: there are some of both' "$told.count(False) >= 1 and $told.count(True) >= 8"
fact 'auto: those that are not told are counted' "[row['missed'] for row in $faults] == [$told.count(False)]"
none 'auto: what is told is what the kernel counted' \
	"[(T[n - 1], g['cause_evidence']) for n, g in G.items() if '; counted: ' in g['cause_evidence'] and
		not 0 <= T[n - 1]['minor'] + T[n - 1]['major'] - g['faults_counted'] - g['faults_in_calls'] <= 4]"
none 'auto: and where' \
	"[g['cause_evidence'] for g in G.values() if '; counted: ' in g['cause_evidence'] and
		g.get('faulted_in') != 'touch <- faults_step']"
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# --replay of a --record file gives the same outputs, byte by byte, without root: also what it finds wrong.
. "$(dirname "$0")/lib.sh"

trace_engine '--steps 83 --noise 1 --panic-every 9 --sleep-us 300 --compute-us 1000' --detail all --record "$OUT.capture" \
	--budget-us 1 --efficiency-threshold 99 --rate-limit 7 --context 0
mkdir "$TMP/again"
chmod 755 "$TMP"
chown 65534 "$TMP/again"
chmod 644 "$OUT.capture"
cp "$FBT" "$TMP/tool"
setpriv --reuid 65534 --regid 65534 --clear-groups "$TMP/tool" --replay "$OUT.capture" --report json \
	--trace "$TMP/again/trace" --profile "$TMP/again/profile" >"$TMP/again/report" 2>"$TMP/again/err"
is 'replay: exit status 0 without root' $? 0
has 'replay: by the same thresholds' "$TMP/again/err" 'recorded: --budget-us 1, --efficiency-threshold 99, --rate'
fact 'replay: which most steps were over' 'sum(r["event"] == "escalation_prof" for r in E) > 40'
for output in trace profile; do
	holds "replay: the same $output" cmp "$OUT.$output" "$TMP/again/$output"
done
# Only the names of the files differ.
strip_files()
{
	sed 's/"files":\[.*\]//' "$1"
}
is 'replay: the same report' "$(strip_files "$TMP/again/report" | cksum)" "$(strip_files "$OUT.report" | cksum)"

# What the replay is given counts.
"$FBT" --replay "$OUT.capture" --budget-us 60s --cv-threshold 10000 --report json --trace none \
	--profile "$TMP/wide.profile" >"$TMP/wide.report" 2>"$TMP/wide.err"
is 'other thresholds: nothing is wrong' "$(grep -c '"event":"escalation_prof"' "$TMP/wide.profile")" 0

# The capture of a killed tracer is used up to its last complete record.
size=$(stat -c %s "$OUT.capture")
# Cuts within a record, since records are multiples of 8 bytes.
head -c $((size * 2 / 3 / 8 * 8 + 3)) "$OUT.capture" >"$TMP/cut"
"$FBT" --replay "$TMP/cut" --report json --trace "$TMP/cut.trace" --profile "$TMP/cut.profile" \
	>"$TMP/cut.report" 2>"$TMP/cut.err"
is 'cut off: exit status 0' $? 0
has 'cut off: says so' "$TMP/cut.err" 'cut off'
holds 'cut off: outputs are valid' "$FBT" validate "$TMP/cut.trace" "$TMP/cut.profile"
OUT=$TMP/cut fact 'cut off: has what was whole' '0 < len(S) < 83 and W["cut_off"]'
finish

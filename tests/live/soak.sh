#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Many steps and calls of two step threads in one window: the tool's memory, files and maps stay as
# they are once it is warm. SOAK_STEPS=720000 is what 50 steps a second are in 8 hours.
. "$(dirname "$0")/lib.sh"

steps=${SOAK_STEPS:-30000}

# sample: RssAnon in KiB, open files, mappings
sample()
{
	echo "$(awk '/^RssAnon/ { print $2 }' "/proc/$TOOL/status") $(find "/proc/$TOOL/fd" -type l |
		wc -l) $(wc -l <"/proc/$TOOL/maps")"
}

start_engine --steps "$steps" --sleep-us 50 --step-threads 2 \
	--noise 1 --slow-futex-every 500 --slow-us 3000
attach --rate-guard 0
go
while kill -0 "$ENGINE" 2>/dev/null; do
	sample >>"$TMP/samples" 2>/dev/null
	sleep 0.2
done
wait "$ENGINE"
end_tool

# grown COLUMN: from the median of the second fifth to the largest of the last
grown()
{
	awk -v column="$1" 'NF == 3 { value[++count] = $column }
		END {
			from = int(count / 5); to = int(2 * count / 5)
			for (i = from + 1; i <= to; i++) sum += value[i]
			for (i = count - from; i < count; i++) if (value[i] > most) most = value[i]
			print int(most - sum / (to - from ? to - from : 1))
		}' "$TMP/samples"
}

samples=$(grep -c . "$TMP/samples")
echo "# $samples samples of RssAnon, files, maps: $(head -1 "$TMP/samples") … $(tail -2 "$TMP/samples" | head -1)"
echo "# grown by $(grown 1) KiB, $(grown 2) files, $(grown 3) maps"
if [ "$samples" -lt 15 ]; then
	echo 'SKIP it was over before the tool was warm: more SOAK_STEPS'
	exit 77
fi
holds 'memory stays: less than 4 MiB more at the end than when it was warm' [ "$(grown 1)" -lt 4096 ]
holds 'no files stay open' [ "$(grown 2)" -le 4 ]
holds 'no mappings stay' [ "$(grown 3)" -le 16 ]
holds 'outputs are valid' "$FBT" validate -q "$OUT.profile"
fact 'each step is there, or counted' \
	'W["steps"] + W["lost_steps"] >= 2 * '"$steps"
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# watch for hours: with SOAK_HOURS=8 for that long, else for 30 s, which only shows that this script
# works. Slow steps are dumped, requests are made, the configuration is read again and the engine starts anew
# again and again; memory and files of watch and its tracer stay what they are, and so does the step
# time of a process that is watched beside it, compared with one that is not.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/watch/lib.sh
. tests/live/watch/lib.sh

seconds=$((${SOAK_HOURS:-0} * 3600))
[ $seconds != 0 ] || seconds=30
SAMPLES=$TMP/samples
: >"$SAMPLES"

sed -i '/^\(last\|after\|calls\|sample\|cooldown\) = /d' "$CONFIG"
cat >>"$CONFIG" <<END
last = 8s
after = 1s
calls = 1s
sample = 1s
sample-every = 15s
cooldown = 4s
max-dumps = 3
step = bench_long_step
END

# anon PID: KiB of its own memory
anon()
{
	awk '/^RssAnon/ { print $2 }' "/proc/$1/status" 2>/dev/null
}

# of_memory_files PID: KiB of records that it keeps
of_memory_files()
{
	find "/proc/$1/fd" -lname '*memfd:ferrum-segment*' -exec stat -Lc %b {} + 2>/dev/null |
		awk '{ sum += $1 } END { print int(sum / 2) }'
}

# sample: of watch: KiB, files; of the tracer of what is watched all the time: KiB, files, KiB of records
sample()
{
	local tracer

	tracer=$(tracer_of "$STEADY")
	[ -n "$tracer" ] || return
	echo "$(anon "$TOOL") $(find "/proc/$TOOL/fd" | wc -l) $(anon "$tracer")" \
		"$(find "/proc/$tracer/fd" | wc -l) $(of_memory_files "$tracer")" |
		grep -E '^([0-9]+ ){4}[0-9]+$' >>"$SAMPLES"
}

# least COLUMN FROM TO: of the samples between these percentages
least()
{
	awk -v column="$1" '{ print $column }' "$SAMPLES" |
		awk -v count="$(wc -l <"$SAMPLES")" \
			'NR > count * '"$2"' / 100 && NR <= count * '"$3"' / 100' | sort -n | head -1
}

# stays WHAT COLUMN LESS-THAN
stays()
{
	local grown

	grown=$(($(least "$2" 70 100) - $(least "$2" 35 65)))
	holds "$1: grown by $grown, allowed less than $3" [ "$grown" -lt "$3" ]
}

# Two workers; the first one is watched, by its PID.
python3 tests/live/watch_pair.py "$FBT_BUILD/tests/bench_worker" "$seconds" "$TMP/pids" >"$TMP/pair" &
PAIR=$!
wait_for 300 test -s "$TMP/pids"
read -r STEADY _ <"$TMP/pids"
echo "pid = $STEADY" >>"$CONFIG"

start_watch
await_watching "$STEADY"
is 'the worker is watched' $? 0
turn=0
end=$((SECONDS + seconds))
while [ $SECONDS -lt $end ]; do
	turn=$((turn + 1))
	start_watched --slow-futex-every 700 --slow-us 300000
	await_watching "$ENGINE" >/dev/null || not_ok "turn $turn: the engine is watched"
	go
	for _ in $(seq 14); do
		sample
		sleep 1
	done
	[ $((turn % 2)) = 0 ] || kill -USR1 "$TOOL"
	[ $((turn % 3)) != 0 ] || kill -USR2 "$TOOL"
	kill -TERM "$ENGINE"
	wait "$ENGINE"
	[ "$(wc -l <"$LOG")" -lt 5000 ] || : >"$LOG"
done
wait "$PAIR"
kill -TERM "$TOOL"
wait "$TOOL"
is 'it ends with 0' $? 0
echo "# $turn engines, $(wc -l <"$SAMPLES") samples: KiB and files of watch, those of a tracer, KiB of records"
sed -n '1p; $p' "$SAMPLES" | sed 's/^/#   /'
holds 'there are samples' [ "$(wc -l <"$SAMPLES")" -ge 20 ]
stays "watch's memory, KiB" 1 1024
stays "watch's files" 2 6
stays "the tracer's memory, KiB" 3 2048
stays "the tracer's files" 4 4
stays 'records in memory, KiB' 5 4096
holds 'there are dumps' [ "$(find "$DIR" -maxdepth 1 -name '*.html' | wc -l)" -ge 1 ]
holds 'no more of them than wanted' [ "$(find "$DIR" -maxdepth 1 -name '*.fbt.gz' | wc -l)" -le 9 ]
is 'they are whole' "$(broken_files)" ''
sed 's/^/# /' "$TMP/pair"
# A minute on a machine that does other things tells nothing about half a percent.
if [ "$seconds" -ge 3600 ]; then
	# shellcheck disable=SC2016 # awk's
	holds 'a step takes at most 0.5 % longer' awk 'END { exit !($1 <= 0.5) }' "$TMP/pair"
fi
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Where outputs go, who owns them, and what a terminal shows.
. "$(dirname "$0")/lib.sh"

start_engine --steps 0 --sleep-us 500
go
mkdir "$TMP/here"
trace_here()
{
	(cd "$TMP/here" && "$FBT" -p "$ENGINE" --step engine_step -n 20 "$@" >"$OUT.report" 2>"$OUT.err" </dev/null)
}

trace_here
is 'without options: exit status 0' $? 0
name=$(cd "$TMP/here" && echo ferrum_*.json)
has 'the trace has the tag in its name' <(echo "$name") "^ferrum_trace_pid${ENGINE}_[0-9]{13}\.json$"
tag=${name#ferrum_trace_}
holds 'the profile has the same' [ -s "$TMP/here/ferrum_profile_${tag%.json}.jsonl" ]
is 'and nothing else is left' "$(find "$TMP/here" -type f | wc -l)" 2
holds 'both are valid' "$FBT" validate "$TMP"/here/ferrum_*
is 'nobody else may read them' "$(stat -c %a "$TMP"/here/ferrum_* | sort -u)" 600
for word in engine_step "$ENGINE" p50 p99 futex own code mmap nanosleep; do
	has "the report says $word" "$OUT.report" "$word"
done
is 'no colour where there is no terminal' "$(grep -c $'\033' "$OUT.report")" 0
is 'and no status line' "$(grep -c $'\r' "$OUT.err")" 0
rm "$TMP"/here/*

FERRUM_TRACE_OUT=$TMP/here/t FERRUM_PROFILE_JSONL=$TMP/here/p FERRUM_PROFILE_MODEL=tiny \
	FERRUM_PROFILE_CONCURRENCY=7 trace_here --report none
is 'the environment names the files' "$(cd "$TMP/here" && echo *)" 'p t'
has 'and the metadata' "$TMP/here/p" '"model":"tiny","concurrency":7,'
is '--report none prints nothing' "$(cat "$OUT.report")" ''
FERRUM_TRACE_OUT=$TMP/here/t FERRUM_PROFILE_MODEL=tiny \
	trace_here --profile "$TMP/here/p" --profile-model large --trace none
is 'none is no file' "$(cd "$TMP/here" && echo *)" 'p t'
has 'an option comes before the environment' "$TMP/here/p" '"model":"large"'
is 'a profile is added to' "$(grep -c '"event":"window_prof"' "$TMP/here/p")" 2
holds 'and valid' "$FBT" validate "$TMP/here/p"
rm "$TMP"/here/*

chown 65534:65534 "$TMP/here"
chmod 755 "$TMP"
SUDO_UID=65534 SUDO_GID=65534 trace_here
is 'under sudo files are the user'"'"'s' "$(stat -c %u:%g "$TMP"/here/ferrum_* | sort -u)" 65534:65534

# On a terminal: colour, unless it is turned off, and a status line every second.
command="'$FBT' -p $ENGINE --step engine_step -d 2.5 --trace none --profile none"
unset NO_COLOR
TERM=xterm script -qec "$command" /dev/null >"$TMP/terminal" </dev/null
has 'terminal: a status line' "$TMP/terminal" 'steps/s'
has 'terminal: colour' "$TMP/terminal" $'\033\\[[0-9;]*m'
TERM=xterm NO_COLOR=1 script -qec "$command" /dev/null >"$TMP/terminal" </dev/null
is 'terminal: no colour with NO_COLOR' "$(grep -c $'\033\\[[0-9;]*m' "$TMP/terminal")" 0

trace_here --trace none --profile none --report json --html "$TMP/here/page.html"
holds 'the page of a run has the figures of its report' python3 tests/html_check.py "$TMP/here/page.html" "$OUT.report"
rm "$TMP/here/page.html"

trace_here --trace none --profile none
is 'run time statistics of the kernel stay off' "$(cat /proc/sys/kernel/bpf_stats_enabled)" 0

# Secrets of the target reach no output. The engine accepts no unknown options, so the secrets are
# in its name.
kill "$ENGINE"
wait "$ENGINE"
rm "$TMP"/here/*
# shellcheck disable=SC2016
start_waiting env FERRUM_API_KEY=sEcReT-1 HF_TOKEN=sEcReT-2 \
	FERRUM_PROFILE_RUNTIME_FLAGS_JSON='{"api_key":"sEcReT-3","batch":8}' \
	bash -c 'exec -a "engine --api-key sEcReT-4 --top-k 40" "$0" "$@"' "$FBT_ENGINE" --wait --truth \
	"$TMP/truth.json" --steps 0 --sleep-us 500 --file https://me:sEcReT-5@host/x
go
holds 'secrets: the engine has them' grep -q sEcReT-4 "/proc/$ENGINE/cmdline"
for report in text json; do
	trace_here -v --report "$report" -o "$report" --record "$report.fbt" --compute-env-hash --detail all
	mv "$OUT.report" "$TMP/here/$report.report"
	mv "$OUT.err" "$TMP/here/$report.err"
	"$FBT" --replay "$TMP/here/$report.fbt" --report json --trace none --profile none \
		>"$TMP/here/$report.replay" 2>&1
	"$FBT" doctor -v "$ENGINE" --report "$report" >"$TMP/here/$report.doctor" 2>&1
done
"$FBT" -v --list-steps -p "$ENGINE" >"$TMP/here/list" 2>&1
"$FBT" -o "$TMP/here/command" --record "$TMP/here/command.fbt" -d 0.2 -- \
	sh -c 'sleep 0.5; :' sh --api-key sEcReT-6 --port 80 >"$TMP/here/command.report" 2>&1
is 'secrets: no output has one' "$(grep -la sEcReT "$TMP"/here/*)" ''
has 'secrets: text.report has the rest' "$TMP/here/text.report" '--api-key \[redacted\] --top-k'
for file in json.report text.replay text.fbt; do
	holds "secrets: $file has the rest" grep -qa -e \
		'--api-key \[redacted\] --top-k 40.*https://me:\[redacted\]@host/x' "$TMP/here/$file"
done
holds 'secrets: so has that of COMMAND' grep -qa -e '--api-key \[redacted\] --port 80' \
	"$TMP/here/command.fbt"
has 'secrets: the runtime flags have the rest' "$TMP/here/text.jsonl" \
	'"runtime_flags":\{"api_key":"\[redacted\]","batch":8\}'
has 'secrets: the document has the rest' "$TMP/here/text.err" '"FERRUM_API_KEY":"\[redacted\]"'
holds 'secrets: the files are valid' "$FBT" validate "$TMP"/here/*.json "$TMP"/here/*.jsonl
finish

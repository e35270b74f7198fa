#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# ferrum's own crate checks our output: it reads our profiles and traces, and compares the verdict
# of `validate` and the hash of `env-hash`.
. "$(dirname "$0")/../live/lib.sh"

command -v cargo >/dev/null || { echo 'SKIP cargo is not installed' && exit 77; }
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ferrum-bpftrace
judge=$cache/judge/release/ferrum-judge
if ! CARGO_TARGET_DIR=$cache/judge cargo build -q --locked --release \
	--manifest-path tests/e2e/ferrum/Cargo.toml 2>"$TMP/cargo"; then
	# Debian 12's cargo is too old for these crates.
	echo "SKIP ferrum-bench-core cannot be built here: $(grep -m 1 error "$TMP/cargo")"
	exit 77
fi

# agrees NAME ARGUMENT…: runs check.py; enough of the samples are valid, and nothing differs
agrees()
{
	local name=$1 said

	shift
	mkdir "$TMP/lines"
	said=$(python3 tests/e2e/ferrum/check.py "$FBT" "$judge" "$TMP/lines" "$@" 2>&1 | tail -n 6)
	rm -r "$TMP/lines"
	cut -c 1-1000 <<<"$said" | sed 's/^/# /'
	holds "$name" grep -qE '^[0-9]{3,} good, 0 differ$' <<<"$said"
}

start_engine --steps 500 --sleep-us 500
attach --detail all
go
wait "$ENGINE"
end_tool
events=$(wc -l <"$OUT.profile")
is 'every event of the profile is one of ferrum' "$("$judge" profile <"$OUT.profile" | sort | uniq -c | xargs)" \
	"$events ok ok"
is 'every event of the trace is one of ferrum' "$("$judge" trace <"$OUT.trace")" \
	"$(python3 -c 'import json, sys; print(len(json.load(sys.stdin)))' <"$OUT.trace") events"
agrees '400 documents have the hash that ferrum gives them' env 400
agrees '3,000 changed lines are judged as ferrum judges them' profile 3000 "$OUT.profile" tests/golden/*.profile.jsonl
finish

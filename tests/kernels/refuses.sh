#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# In a guest: on an unsupported kernel the tool says so in one line, FBT_WANT, and the target is
# unaffected. Commands that need no kernel support work.
set -u
cd "$(dirname "$0")/../.." || exit 1
TMP=$(mktemp -d)
trap 'kill "$engine" 2>/dev/null; rm -rf "$TMP"' EXIT
status=0

holds()
{
	local name=$1

	shift
	if "$@"; then
		echo "ok - $name"
	else
		echo "not ok - $name"
		sed 's/^/# /' "$TMP/err"
		status=1
	fi
}

mkfifo "$TMP/go"
"$FBT_ENGINE" --wait --steps 5 --truth "$TMP/truth.json" <"$TMP/go" >/dev/null &
engine=$!
exec 7>"$TMP/go"
# refused NAME ARGUMENT…
refused()
{
	local name=$1 exit_status

	shift
	(cd "$TMP" && exec "$FBT" "$@" 7>&-) >"$TMP/out" 2>"$TMP/err" </dev/null
	exit_status=$?
	holds "$name: exit status 1" [ $exit_status = 1 ]
	holds "$name: one line" [ "$(wc -l <"$TMP/err")" = 1 ]
	holds "$name: that names the kernel" grep -qF "kernel $(uname -r)" "$TMP/err"
	holds "$name: and what is missing" grep -qE "${FBT_WANT//%/ }" "$TMP/err"
	holds "$name: no file is left" [ -z "$(find "$TMP" -name 'ferrum_*')" ]
}
refused '-p' -p $engine --step engine_step -d 1
refused '--list-steps' --list-steps -p $engine
refused '-a' -a -d 1
refused 'COMMAND' -d 1 -- touch "$TMP/started"
holds 'COMMAND: it was not started' [ ! -e "$TMP/started" ]
echo >&7
exec 7>&-
wait $engine
holds 'the target did its work' grep -q '"steps": *5' "$TMP/truth.json"
holds 'a profile can be checked' "$FBT" validate tests/golden/plain.profile.jsonl
exit $status

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# env-hash, the sources of the profile's metadata, and what --compute-env-hash hashes and runs.
. "$(dirname "$0")/lib.sh"

unset "${!FERRUM_@}" RUSTC
mkfifo "$TMP/never"

# start_target [NAME=VALUE]… -- ARGUMENT…: a process that makes a call now and then; its id is in
# TARGET
start_target()
{
	local environment=()

	while [ "$1" != -- ]; do
		environment+=("$1")
		shift
	done
	# shellcheck disable=SC2016
	env -i "${environment[@]}" /bin/bash -c 'while :; do read -rt 0.01 <&9; done' \
		ferrum "${@:2}" 9<>"$TMP/never" &
	TARGET=$!
	# Waits until the process is neither env nor the shell that it was before.
	while kill -0 "$TARGET" && ! grep -qz '^ferrum$' "/proc/$TARGET/cmdline"; do sleep 0.01; done
}

# trace_target ARGUMENT…: a short window; its outputs are under $OUT
trace_target()
{
	rm -f "${OUT:?}".*
	run_tool -p "$TARGET" --interval 50 -d 0.3 "$@"
	end_tool
}

end_target()
{
	kill "$TARGET"
	wait "$TARGET" 2>/dev/null
}

# metadata_are NAME COMMIT HASH MODEL CONCURRENCY FLAGS: Python values, equal on every line
metadata_are()
{
	fact "$1" "E and all([e[k] for k in ('commit_sha', 'env_hash', 'model', 'concurrency', \
		'runtime_flags')] == [$2, $3, $4, $5, $6] for e in E)"
}

# env-hash
printf '[ ]' >"$TMP/entries.json"
empty_entries=sha256:4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945
is 'env-hash: of a file' "$("$FBT" env-hash "$TMP/entries.json")" $empty_entries
is 'env-hash: of stdin' "$(echo '[]' | "$FBT" env-hash)" $empty_entries
is 'env-hash: of stdin by a dash' "$(echo '[]' | "$FBT" env-hash -)" $empty_entries
is 'env-hash: of a pipe' "$("$FBT" env-hash <(echo '[]'))" $empty_entries
is 'env-hash: needs no root' \
	"$(cp "$FBT" "$TMP/tool" && chmod 755 "$TMP" && setpriv --reuid 65534 --regid 65534 --clear-groups \
		"$TMP/tool" env-hash <"$TMP/entries.json")" $empty_entries
for input in '[1.0]' '{"commit_sha":1}' '{"a":1,"a":2}' '' 'x'; do
	echo "$input" | "$FBT" env-hash >"$OUT.hash" 2>"$OUT.err"
	is "env-hash: '$input' fails" $? 1
	is "env-hash: '$input' in one line" "$(grep -c '^ferrum-bpftrace: stdin: ' "$OUT.err")" 1
	is "env-hash: '$input' prints no hash" "$(cat "$OUT.hash")" ''
done
"$FBT" env-hash "$TMP" >"$OUT.hash" 2>"$OUT.err"
is 'env-hash: a folder fails' $? 1
has 'env-hash: a folder is called one' "$OUT.err" "^ferrum-bpftrace: $TMP: Is a directory$"
"$FBT" env-hash a b >"$OUT.hash" 2>"$OUT.err"
is 'env-hash: two files are bad usage' $? 2

# Each source in order of priority.
start_target 'FERRUM_PROFILE_COMMIT_SHA=e' 'FERRUM_PROFILE_ENV_HASH=sha256:e' 'FERRUM_PROFILE_MODEL=e' \
	'FERRUM_PROFILE_CONCURRENCY=2' 'FERRUM_PROFILE_RUNTIME_FLAGS_JSON={"e": [1]}' --
trace_target
metadata_are "target's environment" '"e"' '"sha256:e"' '"e"' 2 '{"e": [1]}'
end_target

start_target 'FERRUM_PROFILE_COMMIT_SHA=e' 'FERRUM_PROFILE_ENV_HASH=sha256:e' 'FERRUM_PROFILE_MODEL=e' \
	'FERRUM_PROFILE_CONCURRENCY=2' 'FERRUM_PROFILE_RUNTIME_FLAGS_JSON={"e": [1]}' -- \
	serve --profile-commit-sha c --profile-env-hash=sha256:c --profile-model c \
	--profile-concurrency=3 --profile-runtime-flags-json '{"c":1}'
trace_target
metadata_are "target's command line" '"c"' '"sha256:c"' '"c"' 3 '{"c": 1}'
export FERRUM_PROFILE_COMMIT_SHA=t FERRUM_PROFILE_ENV_HASH=wrong FERRUM_PROFILE_MODEL=t
trace_target
metadata_are "tool's environment, but for what is wrong" '"t"' '"sha256:c"' '"t"' 3 '{"c": 1}'
trace_target --profile-commit-sha o --profile-env-hash sha256:o --profile-model o \
	--profile-concurrency 4 --profile-runtime-flags-json '{"o":null}'
metadata_are 'options' '"o"' '"sha256:o"' '"o"' 4 '{"o": None}'
unset "${!FERRUM_@}"
end_target

start_target -- --profile-commit-sha= --profile-env-hash md5:1 --profile-concurrency 0 \
	--profile-runtime-flags-json '[]'
trace_target
metadata_are "wrong values of the target: ferrum's defaults" None '"sha256:unknown"' '"unknown"' 1 '{}'
end_target

"$FBT" -p $$ -d 1 --profile-concurrency 0 >"$OUT.report" 2>"$OUT.err"
is 'a wrong option is bad usage' $? 2

# Limits on a target's values.
long=$(head -c 100000 /dev/zero | tr '\0' x)
start_target "LONG1=$long" "LONG2=$long" "LONG3=$long" "FERRUM_PROFILE_COMMIT_SHA=$long" \
	'FERRUM_PROFILE_CONCURRENCY=8' -- \
	$'--profile-model=a\xffb\x1b[2J"\\\n' "$long" "$long"
trace_target
metadata_are 'any bytes' None '"sha256:unknown"' '"a\ufffdb\u001b[2J\"\\\n"' 8 '{}'
holds 'any bytes: the profile is valid' "$FBT" validate "$OUT.profile"
end_target

rm -f "${OUT:?}".*
FERRUM_PROFILE_CONCURRENCY=5 run_tool --interval 50 -- /bin/bash -c 'read -rt 0.3 <>'"$TMP/never"' || :' \
	ferrum --profile-model m
end_tool
metadata_are 'COMMAND: its arguments and our environment' None '"sha256:unknown"' '"m"' 5 '{}'

# --compute-env-hash uses the target's variables, but runs programs from safe folders only.
mkdir "$TMP/bin"
for program in nvidia-smi nvcc rustc env uname git; do
	printf '#!/bin/sh\ntouch %s/ran\n' "$TMP" >"$TMP/bin/$program"
done
printf '#!/bin/sh\necho rustc 1.2.3-test\n' >"$TMP/my_rustc"
chmod 755 "$TMP/bin/"* "$TMP/my_rustc"
start_target FERRUM_KV_TEST=1 OTHER=2 -- --profile-commit-sha abc
rm -f "${OUT:?}".*
PATH="$TMP/bin:$PATH" RUSTC="$TMP/my_rustc" strace -f -qq -e trace=execve,execveat -e signal=none \
	-o "$OUT.exec" "$FBT" -v --report none --trace none --profile "$OUT.profile" -p "$TARGET" \
	--interval 50 -d 0.3 --compute-env-hash 2>"$OUT.err" 7>&- </dev/null
is 'compute-env-hash: exit status 0' $? 0
sed -n 's/^ferrum-bpftrace: debug: environment document: //p' "$OUT.err" >"$TMP/document.json"
has 'compute-env-hash: the commit is in it' "$TMP/document.json" '"commit_sha":"abc"'
has 'compute-env-hash: the rustc that is named is in it' "$TMP/document.json" '"rust":"1.2.3-test"'
has 'compute-env-hash: FERRUM_* and no other variable' "$TMP/document.json" \
	'"ferrum_env":\{"FERRUM_KV_TEST":"1"\}'
has 'compute-env-hash: and what it affects' "$TMP/document.json" \
	'"key":"FERRUM_KV_TEST","effective_value":"1","source":"env","affects":\["memory"\]'
metadata_are "compute-env-hash: the document's hash" '"abc"' "'$("$FBT" env-hash "$TMP/document.json")'" \
	'"unknown"' 1 '{}'
holds 'compute-env-hash: nothing from PATH was run' [ ! -e "$TMP/ran" ]
# The first line is the tool itself. The programs it runs may run others.
sed -n '2,$s/.*execve[a-t]*("\([^"]*\)".*/\1/p' "$OUT.exec" >"$TMP/executed"
has 'compute-env-hash: the rustc that is named was run' "$TMP/executed" "^$TMP/my_rustc$"
grep -vE '^(/usr)?/(s?bin|local|lib)/' "$TMP/executed" | grep -vx "$TMP/my_rustc" >"$TMP/others"
is 'compute-env-hash: and nothing else from anywhere' "$(cat "$TMP/others")" ''
trace_target --compute-env-hash --profile-env-hash sha256:given
metadata_are 'compute-env-hash: not where there is one' '"abc"' '"sha256:given"' '"unknown"' 1 '{}'
rm -f "${OUT:?}".*
strace -f -qq -e trace=execve,execveat -e signal=none -o "$OUT.exec" "$FBT" --report none --trace none \
	--profile "$OUT.profile" -p "$TARGET" --interval 50 -d 0.3 2>"$OUT.err" 7>&- </dev/null
is 'nothing is run without it' "$(grep -c exec "$OUT.exec")" 1
end_target

rm -f "${OUT:?}".*
run_tool -a -d 0.3 --compute-env-hash
end_tool
has 'compute-env-hash: not of all processes' "$OUT.err" 'needs one target'
metadata_are 'compute-env-hash: then it is unknown' None '"sha256:unknown"' '"unknown"' 1 '{}'
finish

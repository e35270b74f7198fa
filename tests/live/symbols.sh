#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# --symbols: names of functions of a stripped program, by its build-id, at the time of the trace or in
# a replay, from a file or a folder; what is of another build is refused in words.
. "$(dirname "$0")/lib.sh"

for words in 'stacks 1' 'other 2'; do
	read -r name id <<<"$words"
	if ! g++ -D_GNU_SOURCE -O2 -g -fomit-frame-pointer "-Wl,--build-id=0xabcdef0$id" tests/live/stacks.cc \
		-o "$TMP/$name" -lpthread -ldl 2>"$TMP/g++"; then
		echo "SKIP no g++ for it here: $(head -1 "$TMP/g++")"
		exit 77
	fi
done
mkdir -p "$TMP/folder/.build-id/ab" "$TMP/wrong/.build-id/ab" "$TMP/empty"
objcopy --only-keep-debug "$TMP/stacks" "$TMP/stacks.debug"
cp "$TMP/stacks.debug" "$TMP/folder/.build-id/ab/cdef01.debug"
objcopy --only-keep-debug "$TMP/other" "$TMP/wrong/.build-id/ab/cdef01.debug"
step=$(nm "$TMP/stacks" | sed -n 's/^0*\([0-9a-f]*\) T engine_step$/\1/p')
cp "$TMP/stacks" "$TMP/bare"
strip "$TMP/bare"

# trace_bare OPTION…: the stripped program, with its stacks
trace_bare()
{
	rm -f "${OUT:?}".*
	start_waiting "$TMP/bare" "$TMP/truth.json" 2
	run_tool -p "$ENGINE" --step "$TMP/bare+0x$step" --record "$OUT.capture" --folded "$OUT.folded" "$@"
	wait_attached "$TOOL"
	go
	wait "$ENGINE"
	end_tool
}

# names FILE: the functions of the program that folded stacks have, below the step
names()
{
	sed 's/^[^;]*//' "$1" | grep -oE '(take_lock|read_pipe|pause_for|deep_frame|too_deep|forward|bare\+0x)[^; ]*' |
		sed 's/[<(+].*//' | sort -u | paste -sd' '
}

all='deep_frame forward pause_for read_pipe take_lock too_deep'
trace_bare
is 'stripped: there are no names' "$(names "$OUT.folded")" bare

replay()
{
	"$FBT" --replay "$OUT.capture" --folded "$TMP/again" --trace none --profile "$TMP/again.jsonl" \
		--report none "$@" 2>"$TMP/again.err"
	echo $? >"$TMP/status"
}

replay
holds 'replay without symbols: the same' cmp "$OUT.folded" "$TMP/again"
for symbols in stacks.debug folder stacks; do
	rm -f "$TMP/again.jsonl"
	replay --symbols "$TMP/$symbols"
	is "replay with $symbols: all names" "$(names "$TMP/again")" "$all"
	has "replay with $symbols: the profile has them" "$TMP/again.jsonl" '"cause_stack":"take_lock <- '
	is "replay with $symbols: not a word" "$(grep -c symbols "$TMP/again.err")" 0
	is "replay with $symbols: the times are the same" "$(sed 's/.* //' "$TMP/again" | sort)" \
		"$(sed 's/.* //' "$OUT.folded" | sort)"
done

# The second symbols are those that fit.
replay --symbols "$TMP/other" --symbols "$TMP/folder"
is 'replay with two: all names' "$(names "$TMP/again")" "$all"
has 'replay with two: the other is refused' "$TMP/again.err" "--symbols $TMP/other: not used"
replay --symbols "$TMP/other"
is 'another build: no names' "$(names "$TMP/again")" bare
has 'another build: is refused in words' "$TMP/again.err" \
	"--symbols $TMP/other: not used: .*build-id.* bare .*abcdef01"
replay --symbols "$TMP/wrong"
is 'another build in a folder: no names' "$(names "$TMP/again")" bare
has 'another build in a folder: is refused in words' "$TMP/again.err" \
	"--symbols $TMP/wrong: not used: .*/ab/cdef01.debug .*build-id"
replay --symbols "$TMP/empty"
has 'a folder without them: what it lacks' "$TMP/again.err" "--symbols $TMP/empty: .*no symbols.* bare .*abcdef01"
replay --symbols "$TMP/g++"
is 'no symbols at all: refused' "$(cat "$TMP/status")" 1
has 'no symbols at all: why' "$TMP/again.err" "--symbols $TMP/g\\+\\+: (is )?not a complete ELF"

# Live: the recording has the names.
for symbols in stacks.debug folder; do
	trace_bare --symbols "$TMP/$symbols"
	is "live with $symbols: all names" "$(names "$OUT.folded")" "$all"
	replay
	is "live with $symbols: the recording has them" "$(names "$TMP/again")" "$all"
done
finish

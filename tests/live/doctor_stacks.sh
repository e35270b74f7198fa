#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# doctor on stacks: what it says cannot be followed, and why, is so.
. "$(dirname "$0")/lib.sh"

if ! gcc -include unistd.h -x c - -Wl,--no-eh-frame-hdr -o "$TMP/tableless" \
	2>"$TMP/gcc" <<<'int main(void) { return pause(); }'; then
	echo "SKIP no gcc for it here: $(head -1 "$TMP/gcc")"
	exit 77
fi

# says NAME MARK TEXT: a check of stacks has that mark and text
says()
{
	holds "$1" python3 - "$2" "$3" "$TMP/doctor" <<-'END'
		import re, sys
		mark, text, path = sys.argv[1:]
		blocks = re.split(r"\n(?=  (?:ok|warn|no|-)\s)", open(path).read().split("\n\n-p ")[0])
		found = [" ".join(b.split()) for b in blocks if b.startswith(f"  {mark:<4}  stacks ")]
		if not any(text in b for b in found):
		    sys.exit(f"# no '{mark} stacks' with '{text}' in:\n" + "\n".join(blocks))
	END
}

# doctor_of PID [BEFORE…]: what it says is in $TMP/doctor
doctor_of()
{
	local pid=$1

	shift
	"$@" "$FBT" doctor "$pid" --step engine_step >"$TMP/doctor" 2>&1
}

# start_idle PROGRAM [BEFORE…]: an idle process of it; its id is in IDLE
start_idle()
{
	local program=$1

	shift
	"$@" "$program" --wait --truth /dev/null <"$TMP/never" >"$TMP/said" &
	IDLE=$!
	# Through sh and unshare it is the same process.
	wait_for 10 grep -q "$(basename "$program")" "/proc/$IDLE/maps"
}

mkfifo "$TMP/never"
exec 8<>"$TMP/never"
without=(setpriv "--bounding-set=-checkpoint_restore,-sys_admin")

start_idle "$FBT_ENGINE"
doctor_of "$IDLE"
has 'an engine: all can be followed' "$TMP/doctor" 'ok +stacks +[^:;]* ([0-9]+) of \1 [^:;]*$'

# Its file is deleted: the kernel gives it out only with a right.
cp "$FBT_ENGINE" "$TMP/gone"
start_idle "$TMP/gone"
rm "$TMP/gone"
doctor_of "$IDLE"
has 'deleted: with all rights it can be' "$TMP/doctor" 'ok +stacks +[^:;]* ([0-9]+) of \1 '
doctor_of "$IDLE" "${without[@]}"
says 'deleted: without the right it is said' warn '1 file (gone) cannot be read: deleted or replaced'
says 'deleted: and which right it is' warn CAP_CHECKPOINT_RESTORE

# In a mount namespace of its own another file has its path.
if unshare -m true 2>/dev/null; then
	mkdir "$TMP/inside"
	cp "$FBT_ENGINE" "$TMP/inside/engine"
	# shellcheck disable=SC2016
	start_idle "$TMP/inside/engine" unshare -m sh -c '
		exec 9<"$1"; mount -t tmpfs none "${1%/*}"; echo other >"$1"; shift; exec /proc/self/fd/9 "$@"' -
	rm "$TMP/inside/engine"
	echo other >"$TMP/inside/engine"
	doctor_of "$IDLE" "${without[@]}"
	says 'other mounts: it is said' warn 'cannot be read'
	says 'other mounts: and which right it needs' warn CAP_CHECKPOINT_RESTORE
fi

start_idle "$TMP/tableless"
doctor_of "$IDLE"
says 'without a table: it is said' warn '1 file (tableless) without an unwind table (.eh_frame)'

cp "$FBT_ENGINE" "$TMP/bare"
strip "$TMP/bare"
start_idle "$TMP/bare"
doctor_of "$IDLE"
says 'stripped: it is said' - bare
says 'stripped: what helps' - --symbols
"$FBT" doctor "$IDLE" --step engine_step --symbols "$FBT_ENGINE" >"$TMP/doctor" 2>&1
is 'stripped, with symbols: it has names' "$(grep -cE '[(,] ?bare[,)]' "$TMP/doctor")" 0
"$FBT" doctor "$IDLE" --detail steps >"$TMP/doctor" 2>&1
says 'without calls: there are none' - 'record no calls'
finish

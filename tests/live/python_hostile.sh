#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A program of an unprivileged user says of itself that it has the Python library, with a marker in the
# middle of an instruction of a file that others map too: nothing is probed there, and the trace goes on.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/python/lib.sh
. tests/live/python/lib.sh

command -v setpriv >/dev/null || { echo 'SKIP there is no setpriv' && exit 77; }
# User ids that no user has.
us=64001
them=64002
chmod 755 "$TMP"
cp "$FBT_BUILD/tests/live_python_hostile" "$TMP/program"
# Any path with that name will do, also one that leads to libc by a mount of the user's own.
library=$TMP/libferrum_theirs.so
cat >"$TMP/library.c" <<'END'
__asm__(".text\n.globl constant\n.type constant, @function\nconstant:\n"
	".byte 0x48, 0xb8, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x11, 0x22, 0x33\nret\n.size constant, . - constant\n");
END
"${CC:-gcc}" -shared -fPIC -o "$library" "$TMP/library.c" || { echo 'SKIP no compiler' && exit 77; }
chmod 755 "$TMP/program" "$library"

# start USER FIFO ARGUMENT…: runs the program until the FIFO is closed
start()
{
	local user=$1 fifo=$TMP/$2

	shift 2
	mkfifo "$fifo" "$TMP/ready"
	setpriv --reuid "$user" --regid "$user" --clear-groups "$TMP/program" "$library" "$@" \
		<"$fifo" >"$TMP/ready" 8>&- 9>&- &
}

sleeps()
{
	awk '/^voluntary_ctxt_switches/ { print $2 }' "/proc/$other/status"
}

# shellcheck disable=SC2317,SC2329 # called by name
has_used()
{
	[ "$(sleeps)" -gt $((before + 3)) ] || ! kill -0 "$other" 2>/dev/null
}

start $them other
other=$!
exec 8>"$TMP/other"
read -r _ <"$TMP/ready"
rm "$TMP/ready"
start $us hostile attack
hostile=$!
exec 9>"$TMP/hostile"
read -r _ <"$TMP/ready"

run_tool -a --step py:__main__:step 8>&- 9>&-
wait_attached "$TOOL" || { sed 's/^/# /' "$OUT.err" && not_ok 'the tool attaches'; }
has 'it is told that its markers are none' "$OUT.err" "process $hostile: .*has its markers elsewhere"
# The other program uses the file each time that it has slept.
before=$(sleeps)
wait_for 10 has_used
stop_tool
exec 8>&- 9>&-
wait "$other"
is "the other program's instructions are what they were" $? 0
wait "$hostile"
is 'and nothing happens to the program itself' $? 0
finish

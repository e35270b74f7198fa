#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Interpreters that no process runs any more are let go of while the window is open, with their probes.
. "$(dirname "$0")/lib.sh"

[ "$(uname -m)" = x86_64 ] || { echo 'SKIP Python steps need an x86-64' && exit 77; }
python=$(readlink -f /usr/bin/python3)
name=$(basename "$python")
for number in 1 2 3 4; do
	mkdir "$TMP/$number"
	cp "$python" "$TMP/$number/$name" || { echo 'SKIP no Python' && exit 77; }
done
# A semaphore at an odd address: the kernel refuses that probe.
python3 - "$TMP/3/$name" <<'END'
import sys
with open(sys.argv[1], 'r+b') as file:
    at = file.read().find(b'python\0gc__start\0')
    if at > 0:
        file.seek(at - 8)
        semaphore = int.from_bytes(file.read(8), 'little')
        file.seek(at - 8)
        file.write((semaphore | 1).to_bytes(8, 'little'))
END

# The launcher reads lines: a command to start, whose id is then a line of pids; or an id to end.
cat >"$TMP/launcher" <<'END'
echo ready
while read -r -a words; do
	case ${words[0]} in
	/*) "${words[@]}" <&- & echo $! >>"$1" ;;
	*) kill "${words[0]}" && wait "${words[0]}" ;;
	esac
done
END

# run NUMBER: starts that interpreter. Its id is in CHILD.
run()
{
	local before

	before=$(wc -l <"$TMP/pids")
	echo "$TMP/$1/$name -c __import__('time').sleep(1000)" >&7
	wait_for 30 has_more "$before" || not_ok "interpreter $1 is started"
	CHILD=$(tail -1 "$TMP/pids")
}

# shellcheck disable=SC2317,SC2329 # called by name
has_more()
{
	[ "$(wc -l <"$TMP/pids")" -gt "$1" ]
}

# is_held NUMBER: the tool has that interpreter open
# shellcheck disable=SC2317
is_held()
{
	find "/proc/$TOOL/fd" -lname "$TMP/$1/*" 2>/dev/null | grep -q .
}

# shellcheck disable=SC2317
is_let_go()
{
	! is_held "$1"
}

# shellcheck disable=SC2317,SC2329 # called by name
is_over()
{
	! grep -q '^State:.[^Z]' "/proc/$1/status" 2>/dev/null
}

# has_links NUMBER: the tool has so many
# shellcheck disable=SC2317,SC2329 # called by name
has_links()
{
	[ "$(count_links "$TOOL")" = "$1" ]
}

# await_probes: until no more come. They are set after the file is opened, on older kernels one by one; an
# interpreter may have none.
await_probes()
{
	local before after same=0

	before=$(count_links "$TOOL")
	while [ $same -lt 10 ]; do
		sleep 0.1
		after=$(count_links "$TOOL")
		[ "$after" = "$before" ] && same=$((same + 1)) || same=0
		before=$after
	done
}

# As with -a, probes cover all processes; but no other program is traced, whose interpreter would count.
: >"$TMP/pids"
start_waiting bash "$TMP/launcher" "$TMP/pids"
run_tool -p "$ENGINE" -f
wait_attached "$TOOL"
none=$(count_links "$TOOL")
run 1
gone=$CHILD
holds 'an interpreter is looked at' wait_for 60 is_held 1
await_probes
links=$(count_links "$TOOL")
echo "$gone" >&7
run 2
kept=$CHILD
holds 'so is another one' wait_for 60 is_held 2
await_probes
both=$(count_links "$TOOL")
holds 'the one that nobody runs any more is let go of' wait_for 60 is_let_go 1
holds 'the other is not' is_held 2
[ "$both" -le "$links" ] || holds 'and its probes are gone' wait_for 20 has_links "$links"
run 1
holds 'it is looked at again' wait_for 60 is_held 1

# One whose probes cannot be set, between two processes of another that has them.
started=("$kept" "$CHILD")
for number in 3 1 4; do
	run $number
	started+=("$CHILD")
	holds "interpreter $number is looked at" wait_for 60 is_held $number
done
for child in "${started[@]}"; do
	echo "$child" >&7
done
for number in 1 2 3 4; do
	holds "interpreter $number is let go of" wait_for 60 is_let_go $number
done
is 'and no probes are left' "$(count_links "$TOOL")" "$none"

# One that is written anew in place, as cp does: the next process would get the old probes in its new code.
run 2
holds 'interpreter 2 is looked at once more' wait_for 60 is_held 2
await_probes
kill "$CHILD"
wait_for 30 is_over "$CHILD"
begin=$SECONDS
cat "$python" >"$TMP/2/$name"
holds 'one that is written anew: that is said' wait_for 30 grep -q "/2/$name was written anew in place" "$OUT.err"
holds 'and its probes are gone' wait_for 30 has_links "$none"
if [ $((SECONDS - begin)) -lt 8 ]; then
	ok 'before a file that is only unused is let go of'
else
	echo 'SKIP before a file that is only unused is let go of: this machine is slow'
fi
run 2
holds 'it is looked at again' wait_for 60 is_held 2
await_probes
is 'and has as many as before' "$(count_links "$TOOL")" "$links"
echo "$CHILD" >&7
exec 7>&-
wait "$ENGINE"
end_tool
finish

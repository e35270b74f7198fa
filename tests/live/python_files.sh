#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Interpreters that no process runs any more are let go of while the window is open.
. "$(dirname "$0")/lib.sh"

[ "$(uname -m)" = x86_64 ] || { echo 'SKIP Python steps need an x86-64' && exit 77; }
python=$(readlink -f /usr/bin/python3)
name=$(basename "$python")
for number in 1 2; do
	mkdir "$TMP/$number"
	cp "$python" "$TMP/$number/$name" || { echo 'SKIP no Python' && exit 77; }
done

# run NUMBER: starts that interpreter. Its id is in PYTHON.
run()
{
	"$TMP/$1/$name" -c 'import time; time.sleep(1000)' &
	PYTHON=$!
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

run_tool -a
wait_attached "$TOOL"
run 1
holds 'an interpreter is looked at' wait_for 20 is_held 1
links=$(count_links "$TOOL")
kill $PYTHON
run 2
kept=$PYTHON
holds 'so is another one' wait_for 20 is_held 2
both=$(count_links "$TOOL")
holds 'the one that nobody runs any more is let go of' wait_for 40 is_let_go 1
holds 'the other is not' is_held 2
[ "$both" -le "$links" ] || is 'and its probes are gone' "$(count_links "$TOOL")" "$links"
run 1
holds 'it is looked at again' wait_for 20 is_held 1
kill $PYTHON "$kept"
stop_tool
finish

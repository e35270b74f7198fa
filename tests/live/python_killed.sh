#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The tool is killed (SIGKILL) at each of its system calls from where it looks for the library's page to
# where functions are armed, and the tracer itself while it starts: nothing stays armed, and nothing stays.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/python/lib.sh
. tests/live/python/lib.sh

command -v strace >/dev/null || { echo 'SKIP strace is not installed' && exit 77; }
# By default one, since each takes long: $PYTHONS has others.
PYTHONS=${PYTHONS:-own /usr/bin/python3}
while read -r _ path; do
	python3 tests/live/python_killed.py "$path" "$LIBRARY" "$FBT_BUILD/tests/live_python_drive" "$FBT" \
		"$(at_length 40 0)" "$(at_length 12 50)" "$TMP" || FAILED=1
done < <(interpreters)
finish

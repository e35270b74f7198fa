#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# libferrum_python.so in each interpreter of this machine: what is armed is counted exactly, nothing else
# changes, and nothing stays.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/python/lib.sh
. tests/live/python/lib.sh

for double in early threaded; do
	"${CC:-gcc}" -shared -fPIC -O2 "-D${double^^}" -o "$TMP/$double.so" tests/fake/interpreter.c
done
while read -r _ path; do
	python3 tests/live/python_lib.py "$path" "$LIBRARY" "$FBT_BUILD/tests/live_python_drive" \
		"$(at_length 200 1000)" "$TMP" || FAILED=1
done < <(interpreters)

# Programs that are no interpreters inherit the setting, and nothing happens in them.
is 'another program has no thread of ours' \
	"$(LD_PRELOAD=$LIBRARY bash -c 'ls /proc/$$/task | wc -l; ls -l /proc/$$/fd | grep -c ferrum')" $'1\n0'
finish

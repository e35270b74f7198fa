#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Files of at most 900 lines, functions of at most 60, headers included. The main of a unit test is
# the list of its facts, and may be longer.
set -u
cd "$(dirname "$0")/../.." || exit 1

shopt -s nullglob
mapfile -t files < <(find user bpf cupti python include tests packaging -name node_modules -prune -o -name '*.[ch]' -print)
found=$(awk '
	FNR == 1 { start = 0; if (NR > 1 && lines > 900) print file ": " lines " lines"; file = FILENAME }
	{ lines = FNR }
	/^\{/ { start = FNR; above = previous }
	/^\}/ && start {
		if (FNR - start + 1 > 60 && !(FILENAME ~ /^tests/ && above == "int main(void)"))
			print FILENAME ":" start ": " FNR - start + 1 " lines: " above
		start = 0
	}
	{ previous = $0 }
	END { if (lines > 900) print file ": " lines " lines" }
' "${files[@]}")
if [ -n "$found" ]; then
	echo "$found"
	echo 'not ok - files keep to 900 lines and functions to 60'
	exit 1
fi
echo 'ok - files keep to 900 lines and functions to 60'

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Files of at most 400 lines, functions of at most 60, headers included.
set -u
cd "$(dirname "$0")/../.." || exit 1

shopt -s nullglob
# Tables are data: a line per syscall.
mapfile -t files < <(printf '%s\n' user/*.[ch] bpf/*.[ch] cupti/*.[ch] | grep -v '/syscall_table_')
found=$(awk '
	FNR == 1 { start = 0; if (NR > 1 && lines > 400) print file ": " lines " lines"; file = FILENAME }
	{ lines = FNR }
	/^\{/ { start = FNR; above = previous }
	/^\}/ && start {
		if (FNR - start + 1 > 60)
			print FILENAME ":" start ": " FNR - start + 1 " lines: " above
		start = 0
	}
	{ previous = $0 }
	END { if (lines > 400) print file ": " lines " lines" }
' "${files[@]}")
if [ -n "$found" ]; then
	echo "$found"
	echo 'not ok - files keep to 400 lines and functions to 60'
	exit 1
fi
echo 'ok - files keep to 400 lines and functions to 60'

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What only its own file uses is static: an external symbol of user/ is used by another file of the tool,
# or by a test. Needs the objects of a build. The labels of calibrate.c's probes are assembler's.
set -u
cd "$(dirname "$0")/../.." || exit 1

: "${FBT_BUILD:=build/$(uname -m | sed 's/aarch64/arm64/')-gcc}"
found=$({
	find user -name '*.c' -printf "$FBT_BUILD/%p\n" | sed 's/\.c$/.o/' | xargs nm -A |
		awk '{ sub(/:.*/, "", $1) } $(NF - 1) == "U" { print "use", $NF }
			$(NF - 1) ~ /^[TDBRGSC]$/ && $NF != "main" && $NF !~ /^calibrate_(probe|emulated)/ { print "define", $NF, $1 }'
	find tests cupti -name '*.[ch]' -exec grep -ohE '\b[a-z_][a-z0-9_]+\b' {} + | sort -u | sed 's/^/use /'
} | awk -v build="$FBT_BUILD/" '
	$1 == "use" { used[$2] = 1 }
	$1 == "define" { file[$2] = $3 }
	END {
		for (symbol in file) {
			path = substr(file[symbol], length(build) + 1)
			sub(/\.o$/, ".c", path)
			if (!(symbol in used)) print "external: " path ": " symbol
		}
	}' | sort)
if [ -n "$found" ]; then
	echo "$found"
	echo 'not ok - functions that one file uses are static'
	exit 1
fi
echo 'ok - functions that one file uses are static'

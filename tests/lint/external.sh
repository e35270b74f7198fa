#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# A function or variable that only its own file uses is static. An external symbol of user/ or
# cupti/ is used by another file of the tool or the shim, or, as an inner function that is the
# clearer subject, by a unit test of its module; then a header declares it. Symbols that only
# fuzzers, benches or other tests use are not needed. This needs the objects of a build. The labels
# of calibrate.c's probes are the assembler's.
set -u
cd "$(dirname "$0")/../.." || exit 1

: "${FBT_BUILD:=build/$(uname -m | sed 's/aarch64/arm64/')-gcc}"

# "use NAME" and "define NAME FILE", of the objects of the folder
symbols_in()
{
	find "$1" -name '*.c' -printf "$FBT_BUILD/%p\n" | sed 's/\.c$/.o/' | xargs nm -A |
		awk -v build="$FBT_BUILD/" '{ sub(/:.*/, "", $1); path = substr($1, length(build) + 1); sub(/\.o$/, ".c", path) }
			$(NF - 1) == "U" { print "use", $NF }
			$(NF - 1) ~ /^[TDBRGSC]$/ && $NF != "main" && $NF !~ /^calibrate_(probe|emulated)/ { print "define", $NF, path }'
}

# is_tested FILE NAME: a header beside the file declares it, and a test of its folder names it
is_tested()
{
	local folder=${1%/*}

	folder=tests/unit/${folder#user/}
	grep -qw -- "$2" "${1%.c}.h" 2>/dev/null && grep -qwr --include='*_test.c' --include='*_fixture.h' -- "$2" "$folder"
}

found=$({
	symbols_in user
	symbols_in cupti
	# The stub is linked by a linker script, and runs without other code.
} | grep -v ' cupti/stub/' | awk '
	$1 == "use" { used[$2] = 1 }
	$1 == "define" { file[$2] = $3 }
	END { for (symbol in file) if (!(symbol in used)) print file[symbol], symbol }' | sort |
	while read -r file symbol; do
		case $symbol in
		# CUDA and the stub call them.
		InitializeInjection | ferrum_cupti_attach) continue ;;
		# tests/live/inject_drive.c calls it too, as the tool's child does before an
		# injection.
		inject_hurry) continue ;;
		esac
		is_tested "$file" "$symbol" || echo "external: $file: $symbol"
	done)
if [ -n "$found" ]; then
	echo "$found"
	echo 'not ok - functions that one file uses are static'
	exit 1
fi
echo 'ok - functions that one file uses are static'

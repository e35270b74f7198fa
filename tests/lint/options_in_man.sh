#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The man page and --help-all name the same options.
set -u
cd "$(dirname "$0")/../.." || exit 1

: "${FBT_BUILD:=build/$(uname -m | sed 's/aarch64/arm64/')-gcc}"
: "${FBT:=$FBT_BUILD/ferrum-bpftrace}"
page=docs/ferrum-bpftrace.8
status=0

# Only lines that introduce an option count, not those that mention one.
help=$("$FBT" --help-all | grep -oE '^ +(-[A-Za-z?], )?--[a-z][a-z-]+|^ +-[A-Za-z]\b|, --[a-z][a-z-]+' |
	grep -oE -- '--?[A-Za-z][a-z-]*' | sort -u)
man=$(sed -n 's/\\-/-/g; s/\\f[BIRP]//g; /^\.TP/{n; s/\\-/-/g; s/\\f[BIRP]//g; p}' "$page" |
	grep -E '^(\.[BIR]+ )?"?-' | grep -oE -- '(^|[ ,"|])--?[A-Za-z][a-z-]*' |
	grep -oE -- '--?[A-Za-z][a-z-]*' | sort -u)
if [ -z "$help" ]; then
	echo "$FBT --help-all names no option"
	status=1
fi
for option in $(comm -23 <(echo "$help") <(echo "$man")); do
	echo "$page lacks $option" && status=1
done
for option in $(comm -13 <(echo "$help") <(echo "$man")); do
	echo "--help-all lacks $option, which $page has" && status=1
done
[ $status = 0 ] && echo 'ok - the man page and --help-all name the same options' ||
	echo 'not ok - the man page and --help-all name the same options'
exit $status

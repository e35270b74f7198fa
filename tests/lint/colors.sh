#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Each cause that a step may be slow for has a colour of its own on the pages, and each colour is that
# of a cause. A cause without one looks like a wait for a CPU.
set -u
cd "$(dirname "$0")/../.." || exit 1

status=0

# state NAME COMPLAINTS: the fact is that there are none
state()
{
	[ -z "$2" ] && echo "ok - $1" && return
	printf '%s\n' "$2"
	echo "not ok - $1"
	status=1
}

causes=$(sed -n 's/^\t\[CAUSE_[A-Z_]*\] = {"\([a-z_]*\)".*/\1/p' user/judge/calls.c | sort)
colors=$(sed -n '/^const causeColors = {$/,/^};$/p' user/html/common.js | grep -oE '[a-z_]+: "#[0-9a-f]{6}"' | sort)
named=${colors//: \"#??????\"/}
count=$(sed -n '/^enum cause_kind {$/,/^};$/p' user/judge/calls.h | grep -cE '^\s+CAUSE_[A-Z_]+( = 0)?,')
state 'the causes are found' "$([ "$(wc -l <<<"$causes")" = $((count - 1)) ] || echo "$(wc -l <<<"$causes") of $((count - 1))")"
state 'each cause has a colour' "$(comm -23 <(echo "$causes") <(echo "$named"))"
state 'each colour is that of a cause' "$(comm -13 <(echo "$causes") <(echo "$named"))"
state 'no two have the same' "$(grep -o '#.*' <<<"$colors" | sort | uniq -d)"
exit $status

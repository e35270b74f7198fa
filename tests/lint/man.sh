#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The man pages: mandoc and man (groff) have nothing to say, and the page of the files names the same
# events and versions as the code and docs/outputs.md.
set -u
cd "$(dirname "$0")/../.." || exit 1

status=0
page=docs/ferrum-bpftrace-profile.5

# state NAME: the fact is that standard input, the complaints, is empty
state()
{
	local found

	found=$(cat)
	[ -z "$found" ] && echo "ok - $1" && return
	printf '%s\n' "$found"
	echo "not ok - $1"
	status=1
}

define()
{
	sed -n "s/^#define $1 *//p" "$2"
}

# Prints what is wrong with the events and versions that the pages name.
compare()
{
	local schema capture events

	schema=$(define JSONL_SCHEMA user/output/jsonl_window.h)
	capture=$(define CAPTURE_VERSION user/output/capture.h)
	events=$(grep -rhoE '"[a-z]+_prof"' user/output | tr -d '"' | sort -u)
	[ -n "$schema" ] && [ -n "$capture" ] && [ -n "$events" ] || echo 'the sources say nothing'
	diff <(echo "$events") <(sed -n 's/^\\fB\([a-z]*_prof\)\\fR$/\1/p' "$page" | sort -u) | sed -n "s|^<|$page lacks|p; s|^>|no source writes|p"
	grep -qx "is the version of the profile, now $schema\\." "$page" || echo "$page: the profile's version is $schema"
	grep -q "schema\` ($schema;" docs/outputs.md || echo "docs/outputs.md: the profile's version is $schema"
	grep -q "uint32_t version; .*/\* $capture \*/" "$page" || echo "$page: the capture's version is $capture"
}

for file in docs/*.[1-8]; do
	# Long lines are a matter of taste.
	state "mandoc passes $file" < <(mandoc -Tlint -Wwarning "$file" 2>&1)
	state "man formats $file" < <(MANWIDTH=80 LC_ALL=C.UTF-8 man --warnings -l "$file" 2>&1 >/dev/null)
done
state "$page has the events and versions of the code" < <(compare)
exit $status

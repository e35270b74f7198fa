#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Each script of tests/live and tests/e2e has one valid line in tests/sets.txt, each line there is a
# test, and no fast test takes more than 15 s. The lines are in columns; those of live, e2e and unit
# are three blocks, each sorted by name.
set -u
cd "$(dirname "$0")/../.." || exit 1

shopt -s nullglob
status=0
found=$({
	for file in tests/live/*.sh tests/e2e/*.sh; do
		[ "${file##*/}" = lib.sh ] || { name=${file#tests/} && echo "script ${name%.sh}"; }
	done
	for file in tests/unit/*/*_test.c; do
		name=${file#tests/}
		echo "unit ${name%_test.c}"
	done
	sed 's/#.*//; s/^/line /' tests/sets.txt
} | awk '
	function complain(text) { print "sets.txt: " text }
	$1 == "script" || $1 == "unit" { kind[$2] = $1; next }
	NF < 2 { next }
	!($2 in kind) { complain($2 ": there is no such test"); next }
	lines[$2]++ { complain($2 ": has two lines") }
	$3 !~ /^[0-9]+$/ || $3 == 0 { complain($2 ": seconds are missing") }
	$4 !~ /^(fast|slow|nightly|engines)$/ { complain($2 ": " $4 " is no set") }
	$5 !~ /^(any|alone)$/ { complain($2 ": " $5 " is no lane") }
	$4 == "fast" && $3 > 15 { complain($2 ": too slow for the fast set") }
	$4 == "slow" && NF < 6 { complain($2 ": has no subject") }
	{ for (i = 6; i <= NF; i++) subject[$i] = $2 }
	END {
		for (name in kind)
			if (kind[name] == "script" && !(name in lines))
				complain(name ": has no line")
		for (glob in subject)
			print "subject", subject[glob], glob
	}' | while read -r word name glob; do
	[ "$word" = subject ] || { echo "$word $name $glob" && continue; }
	[ -e "$glob" ] || { [[ $glob == *'*'* ]] && compgen -G "$glob" >/dev/null; } || echo "sets.txt: $name: $glob is no file"
done)
if [ -n "$found" ]; then
	echo "$found"
	echo 'not ok - tests/sets.txt knows each script'
	status=1
else
	echo 'ok - tests/sets.txt knows each script'
fi

# in_order: the file as it should be
in_order()
{
	local kind

	awk '!/^#/ { exit } { print }' tests/sets.txt
	for kind in live e2e unit; do
		echo
		grep "^$kind/" tests/sets.txt | LC_ALL=C sort -k1,1 | awk '{
			line = sprintf("%-28s %4d %-7s %-5s", $1, $2, $3, $4)
			for (i = 5; i <= NF; i++) line = line " " $i
			sub(/ +$/, "", line)
			print line
		}'
	done
}

if in_order | diff tests/sets.txt -; then
	echo 'ok - tests/sets.txt is in columns and sorted'
else
	echo 'not ok - tests/sets.txt is in columns and sorted'
	status=1
fi
exit $status

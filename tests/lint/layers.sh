#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Which folder may include which: user/ is checked against layers.txt. include/ includes only
# itself; bpf/, cupti/ and python/ include include/ and themselves, python/ also what both libraries
# have of cupti/, and guest_base of the Makefile, and no header of cupti/ includes itself through others.
set -u
cd "$(dirname "$0")/../.." || exit 1

# Prints FILE HEADER for each include of a quoted header.
includes_in()
{
	# shellcheck disable=SC2016 # awk's
	find "$@" -name '*.[ch]' -print0 | sort -z |
		xargs -0 awk 'match($0, /^[ \t]*#[ \t]*include[ \t]*"[^"]+"/) {
			split(substr($0, RSTART, RLENGTH), part, "\""); print FILENAME, part[2] }'
}

check_user()
{
	awk -F '[ \t]*[|][ \t]*' '
	function complain(text) { print "layers: " text; bad = 1 }
	function folder_of(path) {
		if (path ~ /\//) { sub(/\/.*/, "", path); return path }
		return path ~ /^main\./ ? "main" : "options"
	}
	FNR == NR && /^#|^$/ { next }
	FNR == NR && NF == 2 { maker[$1] = $2; next }
	FNR == NR {
		sub(/[ \t]+$/, "", $1)
		count = split($2 == "above" ? above : $2, names, " ")
		for (i = 1; i <= count; i++) may[$1, names[i]] = 1
		count = split($3, names, " ")
		for (i = 1; i <= count; i++) door[$1, names[i]] = 1
		known[$1] = 1; above = above " " $1
		next
	}
	{
		split($0, word, " ")
		file = word[1]; sub(/^user\//, "", file); header = word[2]
		from = folder_of(file); stem = header; sub(/\.h$/, "", stem)
		if (!(from in known)) complain("user/" file ": " from " is not in layers.txt")
		if (header ~ /^fbt_[a-z]+\.h$/) next
		if (header in maker) {
			if (file != maker[header] ".c") complain("user/" file " may not include " header)
			next
		}
		if (system("test -e user/" header)) { complain("user/" file ": write " header " from user/"); next }
		to = folder_of(header); name = stem; sub(/.*\//, "", name)
		if (to == from) next
		if (!((from, to) in may)) complain("user/" file " may not include " header ": " from " does not know " to)
		else if (!((to, "*") in door) && !((to, name) in door))
			complain("user/" file " may not include " header ": it is no door of " to)
	}
	END { exit bad }
	' tests/lint/layers.txt <(includes_in user | sort -u)
}

check_rest()
{
	local file header bad=0

	while read -r file header; do
		[ -e "include/$header" ] && continue
		case $file in
		include/*) ;;
		*) [ -e "${file%/*}/$header" ] || [ "$header" = vmlinux.h ] && continue ;;
		esac
		[[ $file == python/* && ($header == only_one.h || $header == own_memfd.h ||
			$header == own_thread.h || $header == base/similar.h) ]] && continue
		echo "layers: $file may not include $header"
		bad=1
	done < <(includes_in include bpf cupti python)
	return $bad
}

# tsort prints the members of a circle on stderr.
check_circles()
{
	local circle

	circle=$({
		includes_in user | awk '{ sub(/^user\//, "", $1); print }'
		includes_in cupti | awk '{ sub(/^cupti\//, "", $1); print }'
	} | grep -v fbt_ | awk '{ sub(/\.[ch]$/, "", $1); sub(/\.h$/, "", $2); if ($1 != $2) print $1, $2 }' |
		tsort 2>&1 >/dev/null)
	[ -z "$circle" ] || echo "$circle"
	[ -z "$circle" ]
}

status=0
check_user || status=1
check_rest || status=1
check_circles || status=1
[ $status = 0 ] && echo 'ok - every include keeps to the order of the folders and their doors' ||
	echo 'not ok - every include keeps to the order of the folders and their doors'
exit $status

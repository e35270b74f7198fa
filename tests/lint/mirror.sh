#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Unit tests mirror the tree: tests/unit/FOLDER/MODULE_test.c or MODULE_PART_test.c tests a module
# of that folder of user/, of cupti/, or of tests/fake. The stub is built from cupti/stub, but
# tested beside user/inject, which writes it into processes. A header that the tests of one folder
# use lies beside them.
set -u
cd "$(dirname "$0")/../.." || exit 1

# has_module STEM FOLDER…: one of the folders has a source or header whose name is the stem, or the
# begin of the stem
has_module()
{
	local stem=$1 folder

	shift
	while :; do
		for folder; do
			compgen -G "$folder/$stem.[chS]" >/dev/null && return 0
		done
		[[ $stem == *_* ]] || return 1
		stem=${stem%_*}
	done
}

found=$(for file in tests/unit/*/*_test.c; do
	stem=${file##*/} folder=${file#tests/unit/}
	folder=${folder%%/*}
	case $folder in
	main) in=(user) ;;
	cupti) in=(cupti) ;;
	fake) in=(tests/fake) ;;
	inject) in=(user/inject cupti/stub) ;;
	*) in=("user/$folder") ;;
	esac
	has_module "${stem%_test.c}" "${in[@]}" || echo "$file: ${in[*]} has no such module"
done
for file in tests/unit/*.h; do
	mapfile -t users < <(grep -rlF "\"${file##*/}\"" tests/unit | grep -vx "$file" | xargs -rn1 dirname | sort -u)
	[ "${#users[@]}" -gt 1 ] || echo "$file: ${users[*]:-nobody} alone uses it"
done)
if [ -n "$found" ]; then
	echo "$found"
	echo 'not ok - unit tests are named after modules of their folder, and fixtures are beside them'
	exit 1
fi
echo 'ok - unit tests are named after modules of their folder, and fixtures are beside them'

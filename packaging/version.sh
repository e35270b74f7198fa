#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Prints the version, or, with --date, the seconds since 1970 of its commit (for reproducible
# packages). It comes from the newest tag v*, as git describe says:
#
#	0.2.0                  the tag v0.2.0
#	0.2.0+12.g1234abc      12 commits after it; .dirty follows if files have changed
#
# Debian, Python and semantic versioning all take these, and sort them alike. Outside of a git work
# tree the describe line that `git archive` has put into version.txt counts. Without a tag, or
# without git, its first line does.
set -euo pipefail
cd "$(dirname "$0")/.."

# Root may build what a user has checked out: its makefile is run all the same.
git_here()
{
	git -c safe.directory='*' "$@" 2>/dev/null
}

# The work tree must be ours: a package is often built from a tarball inside another repository.
is_work_tree()
{
	[ -e .git ] && command -v git >/dev/null && git_here rev-parse --git-dir >/dev/null
}

# from_describe TEXT: v0.2.0-12-g1234abc-dirty as a version
from_describe()
{
	local text=${1#v}

	sed -E 's/^([^-]+)-([0-9]+)-(g[0-9a-f]+)/\1+\2.\3/; s/^([^+]+)-dirty$/\1+dirty/; s/-dirty$/.dirty/' <<<"$text"
}

{ read -r fallback && read -r archived; } <packaging/version.txt
case ${1:-} in
--date)
	if is_work_tree; then
		git_here log -1 --format=%ct
	else
		# Of a tarball, that of the file, which git archive sets to the commit's.
		stat -c %Y packaging/version.txt
	fi
	;;
'')
	text=
	if is_work_tree; then
		text=$(git_here describe --tags --match 'v[0-9]*' --dirty) || true
	elif [[ $archived == v[0-9]* ]]; then
		text=$archived
	fi
	version=$(from_describe "${text:-$fallback}")
	# A tag may have any name, and this text ends up in paths and in C.
	[[ $version =~ ^[0-9][A-Za-z0-9.+~]*$ ]] || {
		echo "version: $version: not a version: letters, digits and dots only; use ${fallback}" >&2
		version=$fallback
	}
	echo "$version"
	;;
*)
	echo 'usage: version.sh [--date]' >&2
	exit 2
	;;
esac

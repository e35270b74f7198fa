#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# packaging/version.sh on made-up histories: tags, commits after them, changed files, archives, and
# trees without git. Python and dpkg sort what it prints as it is meant.
set -u
cd "$(dirname "$0")/../.." || exit 1

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_CONFIG_GLOBAL=/dev/null
unset GIT_DIR GIT_WORK_TREE

# is NAME GOT WANTED
is()
{
	[ "$2" = "$3" ] && echo "ok - $1" && return
	echo "# got '$2', wanted '$3'"
	echo "not ok - $1"
	status=1
}

tree=$work/tree
mkdir -p "$tree/packaging"
cp packaging/version.sh packaging/version.txt "$tree/packaging"
cp .gitattributes "$tree"
read -r first <packaging/version.txt
version()
{
	"$1/packaging/version.sh" 2>/dev/null
}
in_tree()
{
	git -C "$tree" "$@" >/dev/null 2>&1
}

is 'without git it is that of the file' "$(version "$tree")" "$first"
in_tree init
in_tree add .
in_tree commit -m one --date '2026-01-02T03:04:05Z'
is 'without a tag too' "$(version "$tree")" "$first"
in_tree tag some-other-tag
is 'other tags do not count' "$(version "$tree")" "$first"
in_tree tag v7.8.9
is 'a tag is the version' "$(version "$tree")" 7.8.9
echo >>"$tree/.gitattributes"
is 'a changed file is told' "$(version "$tree")" 7.8.9+dirty
in_tree commit -a -m two
hash=$(git -C "$tree" rev-parse --short HEAD)
after=$(version "$tree")
is 'so is a commit after the tag' "$after" "7.8.9+1.g$hash"
echo >>"$tree/.gitattributes"
is 'and both' "$(version "$tree")" "7.8.9+1.g$hash.dirty"
in_tree checkout .gitattributes
mkdir "$work/archive"
git -C "$tree" archive HEAD | tar -C "$work/archive" -xf -
is 'an archive knows the same without git' "$(version "$work/archive")" "$after"
mkdir "$tree/inner"
cp -r "$work/archive/." "$tree/inner"
is 'also inside of another work tree' "$(version "$tree/inner")" "$after"
in_tree tag "v9\"; touch x"
in_tree tag "v9.0_x"
in_tree tag -d v7.8.9
is 'a tag that is no version is not taken' "$(version "$tree")" "$first"
is 'the date is that of the commit' "$("$tree/packaging/version.sh" --date)" "$(git -C "$tree" log -1 --format=%ct)"
if command -v dpkg >/dev/null; then
	dpkg --compare-versions "$after" gt 7.8.9 && dpkg --compare-versions "$after" lt 7.8.10
	is 'dpkg sorts it after the tag and before the next one' $? 0
fi
exit $status

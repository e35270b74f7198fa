#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Runs clang-tidy on those sources of the tool that have changed since tests/verified, or that
# include such a header; TIDY=all: on all. A file that has passed, with all that it includes, is not
# checked again: its stamp is in the cache. Needs the generated skeletons.
set -u
shopt -s nullglob
cd "$(dirname "$0")/../.." || exit 1

: "${FBT_BUILD:=build/$(uname -m | sed 's/aarch64/arm64/')-gcc}"
tidy=$(command -v clang-tidy-14 || command -v clang-tidy)

# Warnings about generated skeletons are bpftool's, and the others are only bytes.
skeletons=$(mktemp -d)
trap 'rm -rf "$skeletons"' EXIT
for skeleton in "$FBT_BUILD"/*.skel.h "$FBT_BUILD"/inject_code.h "$FBT_BUILD"/html_page.h "$FBT_BUILD"/diff_page.h; do
	{ echo '// NOLINTBEGIN' && cat "$skeleton" && echo '// NOLINTEND'; } >"$skeletons/${skeleton##*/}"
done

cache=${XDG_CACHE_HOME:-${HOME:-$skeletons}/.cache}/ferrum-bpftrace/tidy
mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ] || cache=$skeletons
find "$cache" -name '*.passed' -mtime +60 -delete
flags=(-std=gnu11 -D_GNU_SOURCE -DFBT_VERSION='"lint"' -Iinclude -Iuser -Icupti -Ipython "-I$skeletons")
rules=$({ "$tidy" --version && cat .clang-tidy; } | sha256sum)
# Without a known base, all files are checked.
changed=
if [ "${TIDY:-changed}" != all ]; then
	changed=$(tests/choose.sh changed) || TIDY=all
	! grep -qxE '\.clang-tidy|tests/lint/tidy\.sh' <<<"$changed" || TIDY=all
fi

# The file and those of our files that it includes, by name.
files_of()
{
	gcc "${flags[@]}" -MM -MG "$1" | sed 's/^[^:]*://' | tr -s ' \\\n' '\n' | grep -vE '^(/usr|$)' | sort -u
}

# Prints the name of its stamp if the file must be checked.
stamp_of()
{
	local files

	files=$(files_of "$1")
	if [ "${TIDY:-changed}" != all ] && ! grep -qxF -f <(echo "$files") <<<"$changed"; then
		return 1
	fi
	# shellcheck disable=SC2086
	{ echo "$rules" && cat $files 2>/dev/null; } | sha256sum | cut -d' ' -f1
}

tidy_file()
{
	local output stamp

	stamp=$(stamp_of "$1") || return 0
	stamp=$cache/$stamp.passed
	[ ! -e "$stamp" ] || { touch "$stamp" && return; }
	if output=$("$tidy" --quiet "$1" -- "${flags[@]}" 2>&1); then
		echo "ok - clang-tidy passes $1"
		touch "$stamp"
	else
		printf '%s\n' "$output" "not ok - clang-tidy passes $1"
		return 1
	fi
}

# Each lane is a shell that checks every N-th file.
tidy_lane()
{
	local lane=$1 i status=0

	for ((i = lane; i < ${#sources[@]}; i += lanes)); do
		tidy_file "${sources[i]}" || status=1
	done
	return $status
}

sources=(user/*.c user/*/*.c cupti/*.c python/*.c tests/fake/*.c)
lanes=$(nproc)
status=0
for ((lane = 0; lane < lanes; lane++)); do
	tidy_lane $lane >"$skeletons/lane$lane" &
done
for ((lane = 0; lane < lanes; lane++)); do
	wait -n || status=1
done
cat "$skeletons"/lane*
[ $status != 0 ] || echo "ok - clang-tidy has passed what has changed of ${#sources[@]} files"
exit $status

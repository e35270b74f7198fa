#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# clang-tidy over the sources of the tool; needs the generated skeletons.
set -u
shopt -s nullglob
cd "$(dirname "$0")/../.." || exit 1

: "${FBT_BUILD:=build/$(uname -m | sed 's/aarch64/arm64/')-gcc}"
tidy=$(command -v clang-tidy-14 || command -v clang-tidy)

# Mistakes in generated skeletons are bpftool's; the stub's bytes are no code to look at.
skeletons=$(mktemp -d)
trap 'rm -rf "$skeletons"' EXIT
for skeleton in "$FBT_BUILD"/*.skel.h "$FBT_BUILD"/inject_code.h; do
	{ echo '// NOLINTBEGIN' && cat "$skeleton" && echo '// NOLINTEND'; } >"$skeletons/${skeleton##*/}"
done

tidy_file()
{
	local output

	if output=$("$tidy" --quiet "$1" -- -std=gnu11 -D_GNU_SOURCE -DFBT_VERSION='"lint"' -Iinclude \
		-Iuser -Icupti -I"$skeletons" 2>&1); then
		echo "ok - clang-tidy passes $1"
	else
		printf '%s\n' "$output" "not ok - clang-tidy passes $1"
		return 1
	fi
}
export -f tidy_file
export tidy skeletons
printf '%s\0' user/*.c cupti/*.c tests/fake/*.c |
	xargs -0 -P "$(nproc)" -I{} bash -c 'tidy_file {}'

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Each header compiles alone, with both compilers; headers shared with the kernel side also compile
# there.
set -u
cd "$(dirname "$0")/../.." || exit 1

shopt -s nullglob
status=0
warnings='-Wall -Wextra -Wno-unused-parameter -Wno-unused-function -Werror'

# compile NAME COMMAND…: states whether a translation unit with nothing else in it compiles
compile()
{
	local name=$1 output

	shift
	if output=$(printf '#include "%s"\n' "$header" | "$@" -fsyntax-only - 2>&1); then
		echo "ok - $header compiles alone as $name"
	else
		printf '%s\n' "$output" "not ok - $header compiles alone as $name"
		status=1
	fi
}

for path in include/*.h user/*.h user/*/*.h cupti/*.h python/*.h; do
	header=${path#*/}
	for compiler in gcc clang; do
		# shellcheck disable=SC2086
		compile "C under $compiler" $compiler -x c -std=gnu11 -D_GNU_SOURCE -Iinclude -Iuser \
			-Icupti -Ipython $warnings
	done
done
for path in include/*.h; do
	header=$(basename "$path")
	compile 'C++' clang -x c++ -Iinclude -Wall -Wextra -Werror
done
header=fbt_event.h
for arch in x86 arm64; do
	compile "BPF for $arch" clang -target bpf -D__TARGET_ARCH_$arch -Iinclude -Ivmlinux \
		-include vmlinux.h -x c -Wall -Wextra -Werror
done
# The programs too: nobody builds them for the other architecture every day.
for path in bpf/*.[ch]; do
	header=$(basename "$path")
	for arch in x86 arm64; do
		# shellcheck disable=SC2086
		compile "BPF for $arch" clang -target bpf -D__TARGET_ARCH_$arch -O2 -g -Iinclude \
			-Ivmlinux -Ibpf -include vmlinux.h -x c $warnings -Wno-unused-variable
	done
done
exit $status

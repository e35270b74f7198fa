#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# clang gives no warning either. The programs are built by gcc.
set -u
shopt -s nullglob
cd "$(dirname "$0")/../.." || exit 1

: "${FBT_BUILD:=build/$(uname -m | sed 's/aarch64/arm64/')-gcc}"
flags=(-std=gnu11 -D_GNU_SOURCE -DFBT_VERSION='"lint"' -Iinclude -Iuser -Icupti -Ipython -Itests/unit "-I$FBT_BUILD"
	-Wall -Wextra -Wshadow -Wstrict-prototypes -Wvla -Wformat=2 -Wno-unused-parameter
	-Wno-missing-field-initializers -Werror)
if printf '%s\0' user/*.c user/*/*.c cupti/*.c python/*.c tests/unit/*/*.c tests/golden/*.c |
	xargs -0 -P "$(nproc)" -n 8 clang "${flags[@]}" -fsyntax-only; then
	echo 'ok - clang compiles everything without a warning'
else
	echo 'not ok - clang compiles everything without a warning'
	exit 1
fi

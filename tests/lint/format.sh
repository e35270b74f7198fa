#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Every C file is formatted by clang-format (`make fmt`).
set -u
cd "$(dirname "$0")/../.." || exit 1

# Other versions of clang-format differ in a few places; version 14 decides.
format=$(command -v clang-format-14 || command -v clang-format)
if find include bpf cupti python user vmlinux tests packaging -name '*.[ch]' -print0 2>/dev/null |
	xargs -0 -P "$(nproc)" -n 8 "$format" --dry-run -Werror; then
	echo 'ok - clang-format changes nothing'
else
	echo 'not ok - clang-format changes nothing'
	exit 1
fi

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Unwind tables of this machine's files, and of arm64's where a cross compiler's are: each row is what
# libdw reads there.
. "$(dirname "$0")/lib.sh"

rows=$FBT_BUILD/tests/live_rows
if [ ! -x "$rows" ]; then
	echo 'SKIP no libdw-dev here'
	exit 77
fi

# Those of this machine by what is mapped into a C++ program and the tool.
mapfile -t files < <({
	ldd "$FBT"
	ldd "$(command -v gdb bpftrace | head -1)"
} 2>/dev/null | grep -oE '/[^ ]+\.so[^ ]*' | sort -u)
for file in /usr/aarch64-linux-gnu/lib/lib{c,m,stdc++,gcc_s}.so.*; do
	[ ! -e "$file" ] || files+=("$file")
done
if [ "${TEST_LONG:-0}" = 1 ]; then
	files+=("$(command -v node)" build/e2e/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64/*.so)
fi
for file in "$FBT" "${files[@]}"; do
	[ ! -e "$file" ] || "$rows" "$file" || FAILED=1
done
finish

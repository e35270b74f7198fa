#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# vmlinux/vmlinux.h against the running kernel: each type, field and constant exists there too.
. "$(dirname "$0")/lib.sh"

# Only types of variables reach BTF, so each gets one; an anonymous enum needs a name for that.
target=-D__TARGET_ARCH_$([ "$(uname -m)" = aarch64 ] && echo arm64 || echo x86)
clang -target bpf "$target" -E -P vmlinux/vmlinux.h |
	awk '/^enum \{/ { $0 = "enum kept_" NR " {" } { print }
		/^(struct|enum) [a-z_0-9]+ \{/ { kept[++count] = $1 " " $2 }
		END { for (i = 1; i <= count; i++) print kept[i] " variable_" i ";" }' >"$TMP/kept.c"
if ! clang -target bpf -g -O2 -c "$TMP/kept.c" -o "$TMP/kept.o"; then
	not_ok 'vmlinux.h gives every type a variable'
	finish
fi
"$FBT_BUILD/tests/live_btf_check" "$TMP/kept.o"

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Checks vmlinux/vmlinux.h against the running kernel: each type, field and constant must exist
# there.
# tests/live/vmlinux.sh [OBJECT]: only builds the object with those types, for a machine without
# clang: set FBT_TYPES=OBJECT there. ARCH is that machine's.

# Only types of variables are kept in BTF, so each type gets a variable. An anonymous enum needs a
# name for that.
make_types()
{
	local target

	case ${ARCH:-$(uname -m)} in
	aarch64 | arm64) target=-D__TARGET_ARCH_arm64 ;;
	*) target=-D__TARGET_ARCH_x86 ;;
	esac
	clang -target bpf $target -E -P vmlinux/vmlinux.h |
		awk '/^enum \{/ { $0 = "enum kept_" NR " {" } { print }
			/^(struct|enum) [a-z_0-9]+ \{/ { kept[++count] = $1 " " $2 }
			END { for (i = 1; i <= count; i++) print kept[i] " variable_" i ";" }' |
		clang -target bpf -g -O2 -x c -c - -o "$1"
}

if [ $# -gt 0 ]; then
	make_types "$1"
	exit
fi
. "$(dirname "$0")/lib.sh"

types=${FBT_TYPES:-$TMP/types.o}
if [ -z "${FBT_TYPES:-}" ] && ! make_types "$types"; then
	not_ok 'vmlinux.h gives every type a variable'
	finish
fi
"$FBT_BUILD/tests/live_btf_check" "$types"

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# root.sh ARCH BUILD SUITE CACHE: prints the path of an initramfs, in BUILD, with Debian's files, the
# tool and test programs of BUILD, and tests/. CC and CLANG are the compilers of BUILD.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/../.."

# archive DIR FILE: in the kernel's format, with everything owned by root
archive()
{
	(cd "$1" && find . -print0 | sort -z | cpio -0 -o -H newc -R 0:0 --quiet) >"$2.new"
	mv "$2.new" "$2"
}

arch=$1 build=$2 suite=$3 cache=$(realpath -m "$4")
mkdir -p "$cache"
# Other runs may create or replace Debian's part of it.
exec 9>"$cache/root.lock"
flock 9
base=$(tests/kernels/fetch.sh root "$arch" "$suite" tests/kernels/packages.txt "$cache")
[ -e "$base.cpio" ] || archive "$base" "$base.cpio"

# This becomes the guest's /, which other users need too.
umask 022
added=$(mktemp -d)
chmod 755 "$added"
trap 'rm -rf "$added"' EXIT
mkdir -p "$added/fbt/build/tests" "$added/fbt/build/made/bin"
cp tests/kernels/init "$added/init"
cp "$build/ferrum-bpftrace" "$build/libferrum_cupti.so" "$added/fbt/build/"
find "$build/tests" -maxdepth 1 -type f ! -name '*.d' ! -name 'unit_*' ! -name 'bench_*' \
	! -name '*.o' -exec cp -t "$added/fbt/build/tests" {} +
tar -c --exclude=node_modules --exclude=__pycache__ --exclude='tests/fuzz/corpus*' tests README.md | tar -x -C "$added/fbt"

# The programs that live tests build while they run, see made_cc.
made=$added/fbt/build/made
${CC:-gcc} -shared -fPIC -O2 -o "$made/late_step" tests/fake/late_step.c
${CC:-gcc} -O2 -Wall -Wextra -o "$made/bin/python3" tests/kernels/python3.c
if [ "$arch" = x86_64 ]; then
	${CC:-gcc} -shared -fPIC -o "$made/unprobeable_step" tests/fake/unprobeable_step.c
fi
ARCH=$arch tests/live/vmlinux.sh "$made/types"

archive "$added" "$build/added.cpio"
cat "$base.cpio" "$build/added.cpio" >"$build/initramfs.new"
mv "$build/initramfs.new" "$build/initramfs"
rm "$build/added.cpio"
echo "$build/initramfs"

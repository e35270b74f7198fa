#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# tests/cuda/toolkit.sh VERSION: prints a folder with include/, lib64/ and, of 13.0, bin/nvcc of that
# CUDA toolkit, taken from NVIDIA's packages in the Python package index. VERSION.txt beside this
# script pins the packages by hash. They are kept in ${XDG_CACHE_HOME:-~/.cache}/ferrum-bpftrace.
# Exits with 1 and one line on stderr that says why there is none.
set -u

version=$1
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ferrum-bpftrace
# Another pin gets another folder.
sum=$(sha256sum "$here/$version.txt" 2>/dev/null | cut -c1-12)
folder=$cache/cuda-$version-$sum
work=

fail()
{
	echo "CUDA $version: $1" >&2
	[ -z "$work" ] || rm -rf "$work"
	exit 1
}

[ -n "$sum" ] || fail "no $here/$version.txt"
if [ -d "$folder" ]; then
	echo "$folder"
	exit
fi
[ "$(uname -m)" = x86_64 ] || fail 'the packages are pinned for x86-64 only'
python3 -m pip --version >/dev/null 2>&1 || fail 'pip is not installed'
mkdir -p "$cache"
work=$(mktemp -d "$cache/cuda.XXXXXX") || fail "cannot write to $cache"
said=$(timeout 300 python3 -m pip download -q --disable-pip-version-check --no-deps --require-hashes \
	--only-binary=:all: -d "$work/wheels" -r "$here/$version.txt" 2>&1) ||
	fail "the Python package index: $(tail -n 1 <<<"$said")"

# A wheel has nvidia/NAME/{include,lib,bin,…}: all of them become one toolkit.
for wheel in "$work"/wheels/*.whl; do
	python3 -m zipfile -e "$wheel" "$work/unpacked" || fail "cannot unpack ${wheel##*/}"
done
mkdir "$work/toolkit"
for part in "$work"/unpacked/nvidia/*/; do
	cp -R "$part"/. "$work/toolkit" || fail "cannot write to $cache"
done
[ -d "$work/toolkit/lib" ] && ln -s lib "$work/toolkit/lib64"
# zipfile does not keep file modes.
chmod -f +x "$work"/toolkit/bin/* "$work"/toolkit/nvvm/bin/*
# Two of these may run at once: the first one wins.
mv -T "$work/toolkit" "$folder" 2>/dev/null || [ -d "$folder" ] || fail "cannot write to $cache"
rm -rf "$work"
echo "$folder"

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Builds the Debian package from the files of this tree, without the tests: deb.sh DIST. In the
# environment: VERSION and EPOCH (seconds). It is built in a copy, as Debian wants its folder in the
# root of the source.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022

mkdir -p "${1:?usage: deb.sh DIST}"
dist=$(realpath "$1")
: "${VERSION:?}" "${EPOCH:?}"
jobs=$(nproc)
export SOURCE_DATE_EPOCH=$EPOCH LC_ALL=C DEB_BUILD_OPTIONS="nocheck parallel=$jobs"
work=$dist/deb
source=$work/ferrum-bpftrace-$VERSION
rm -rf "$work"
mkdir -p "$source"

tar -cf - --exclude=__pycache__ Makefile README.md LICENSE CHANGELOG.md CONTRIBUTING.md SECURITY.md bpf cupti docs \
	include packaging python user vmlinux tests/fake tests/*/*.mk |
	tar -C "$source" -xf -
cp -r packaging/deb "$source/debian"
[ ! -e packaging/ferrum-bpftrace.service ] || cp packaging/ferrum-bpftrace.service "$source/debian"
# Which commit it is cannot be asked there.
printf '%s\n' "$VERSION" '-' >"$source/packaging/version.txt"
cat >"$source/debian/changelog" <<END
ferrum-bpftrace ($VERSION) unstable; urgency=medium

  * See /usr/share/doc/ferrum-bpftrace/NEWS.gz.

 -- $(sed -n 's/^Maintainer: //p' packaging/deb/control)  $(date -u -R -d "@$EPOCH")
END
if ! (cd "$source" && dpkg-buildpackage -us -uc -b) >"$work/log" 2>&1; then
	tail -n 40 "$work/log" >&2
	echo "deb: dpkg-buildpackage failed, see $work/log" >&2
	exit 1
fi
rm -f "$dist"/ferrum-bpftrace_*.deb
cp "$work"/ferrum-bpftrace_*.deb "$dist"

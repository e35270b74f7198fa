#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# packaging/deps.sh names all that is needed: in a bare Debian 12 with nothing but make, `make`,
# `make deb` and `make wheel` build, and so do the tests; `make demo` traces an engine there. Downloads
# 300 MB and takes minutes.
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/../live/lib.sh"
# shellcheck source=tests/e2e/package/lib.sh
. "$PWD/tests/e2e/package/lib.sh"

root=$TMP/root
entry=$TMP/entry
new_root "$root"
write_entry "$entry" "$root"
mkdir "$root/src"
# As it would be checked out: what git ignores does not come along.
{ git ls-files && git ls-files --others --exclude-standard; } 2>/dev/null | sort -u | while read -r file; do
	[ ! -e "$file" ] || printf '%s\0' "$file"
done | tar --no-recursion --null -T - -cf - | tar -C "$root/src" -xf -
holds 'the sources are there' test -e "$root/src/Makefile"

in_src()
{
	DEBIAN_FRONTEND=noninteractive LC_ALL=C "$entry" sh -c "cd /src && exec $1" >"$TMP/log" 2>&1 </dev/null && return
	tail -n 25 "$TMP/log" | sed 's/^/# /'
	return 1
}

in_src 'apt-get -q update' || skip "Debian's archive cannot be reached"
holds 'make installs' in_src 'apt-get -q -y --no-install-recommends install make'
holds 'deps.sh installs what is missing' in_src packaging/deps.sh
in_src packaging/deps.sh
is 'deps.sh has nothing to say then' "$(cat "$TMP/log")" ''
holds 'make builds, without a warning' in_src 'make -j2 WERROR=1'
holds 'the tool runs' in_src './build/*-gcc-werror/ferrum-bpftrace --version'
holds 'make demo traces an engine' in_src 'make demo WERROR=1'
has 'and prints a report' "$TMP/log" 'steps of engine_step'
holds 'its trace and profile are there' test -s "$root/src/demo_trace.json" -a -s "$root/src/demo_profile.jsonl"
holds 'make deb builds a package' in_src 'make -j2 deb'
holds 'make wheel builds a wheel' in_src 'make -j2 wheel'
holds 'deps.sh test installs what the tests are built with' in_src 'packaging/deps.sh test'
holds 'they build' in_src 'make -j2 build-tests'
finish

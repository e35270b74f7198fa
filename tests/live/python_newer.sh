#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The tests of Python steps on Debian's CPython 3.13 and 3.14, and on their debug builds, which check each
# object that they touch. They run in a root of their own, as in a container.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/python/lib.sh
. tests/live/python/lib.sh

# fetch SUITE: adds the interpreters of its root to $PYTHONS
fetch()
{
	local root program version

	root=$(tests/kernels/fetch.sh root x86_64 "$1" "tests/live/python/roots/$1.txt" \
		"${XDG_CACHE_HOME:-$HOME/.cache}/ferrum-bpftrace/python/$1" 2>"$TMP/fetch.log") || {
		[ $? = 77 ] && echo "SKIP Debian's archive cannot be reached, and CPython of $1 is not in the cache" && exit 77
		sed 's/^/# /' "$TMP/fetch.log"
		not_ok "CPython of $1 is there"
		return
	}
	for program in "$root"/usr/bin/python3.[0-9][0-9]{,-dbg}; do
		printf '#!/bin/bash\nexec %q %q %q "$@"\n' "$PWD/tests/live/python/roots/enter.sh" "$root" \
			"${program#"$root"}" >"$TMP/${program##*/}"
		chmod +x "$TMP/${program##*/}"
		version=$("$TMP/${program##*/}" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')
		[[ $program != *-dbg ]] || version+=-debug
		PYTHONS+=${PYTHONS:+$'\n'}"$version $TMP/${program##*/}"
	done
}

PYTHONS=
fetch trixie
fetch sid
export PYTHONS
is 'two interpreters and their debug builds are there' "$(wc -l <<<"$PYTHONS")" 4
for test in lib steps frames looks; do
	echo "# python_$test.sh"
	tests/live/python_$test.sh || FAILED=1
done
# Debug builds are slow to start, and these start many, or hold times.
all=$PYTHONS
PYTHONS=$(grep -v debug <<<"$all")
for test in killed stalls; do
	echo "# python_$test.sh"
	tests/live/python_$test.sh || FAILED=1
done
[ "${TEST_LONG:-0}" != 1 ] || PYTHONS=$all
tests/live/python_harmless.sh || FAILED=1
finish

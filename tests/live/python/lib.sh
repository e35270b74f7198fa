# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What the tests of Python steps share.

LIBRARY=$(realpath -m "$FBT_BUILD/libferrum_python.so")
[ "$(uname -m)" = x86_64 ] || { echo 'SKIP Python steps need an x86-64' && exit 77; }

# await_file FILE PID: until there is something in a file that the process writes; fails if it ends
# before, or after two minutes
await_file()
{
	local tries=6000

	until [ -s "$1" ]; do
		kill -0 "$2" 2>/dev/null || break
		[ $((tries--)) -gt 0 ] || break
		sleep 0.02
	done
	[ -s "$1" ]
}

# One interpreter of each version, "VERSION PATH" a line: those in PATH, and those of pyenv; or $PYTHONS.
interpreters()
{
	local path

	[ -z "${PYTHONS:-}" ] || { echo "$PYTHONS" && return; }
	for path in /usr/bin/python3 "$(command -v python3)" \
		"${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3; do
		"$path" -c 'import os, sys
if sys.version_info >= (3, 9) and sys.implementation.name == "cpython":
    print("%d.%d.%d" % sys.version_info[:3], os.path.realpath(sys.executable))' 2>/dev/null
	done | sort -u -k1,1
}

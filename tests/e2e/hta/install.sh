#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# install.sh: puts HolisticTraceAnalysis into a virtual environment, unless the cache has it, and says where
# that is:
#
#	VERSION FOLDER     the environment
#	VERSION - WHY      it cannot be had here
#
# The cache is the folder ferrum-bpftrace in XDG's. It takes a minute and 500 MB.
set -u
version=0.5.0
folder=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ferrum-bpftrace/hta-$version

is_complete()
{
	[ -e "$folder/complete" ] && tests/venv.sh --check "$folder"
}

build()
{
	flock 9
	is_complete && return
	echo "installing HolisticTraceAnalysis $version with pip: $folder.log" >&2
	# Its idle breakdown fails with pandas 2.3.
	tests/venv.sh "$folder" &&
		nice -n 19 "$folder/bin/python" -m pip --disable-pip-version-check -q install \
			"HolisticTraceAnalysis==$version" 'pandas<2.3' && touch "$folder/complete"
}

mkdir -p "${folder%/*}" || { echo "$version - $folder cannot be made" && exit; }
if ! is_complete && ! build 9>"$folder.lock" >"$folder.log" 2>&1; then
	echo "$version - pip does not install it: $(grep -m 1 -i error "$folder.log")"
	exit
fi
echo "$version $folder"

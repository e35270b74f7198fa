#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# install.sh [VERSION…]: builds these releases of ferrum (both that are tested) with the cargo in PATH,
# at idle priority, unless the cache has them, and says where each is:
#
#	VERSION FILE       the program
#	VERSION - WHY      it cannot be built here
#
# The cache is FBT_FERRUM_CACHE, or the folder ferrum-bpftrace in XDG's. A build takes ten minutes of
# two CPUs that nothing else uses; one that was ended goes on where it was.
set -u
cache=${FBT_FERRUM_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ferrum-bpftrace}
idle=(nice -n 19)
chrt -i 0 true 2>/dev/null && idle+=(chrt -i 0)

# build VERSION FOLDER: ends at once where another one has built it meanwhile
build()
{
	flock 9
	[ -x "$2/bin/ferrum" ] && return
	echo "building ferrum $1 with cargo, for ten minutes or more: $2/log" >&2
	CARGO_TARGET_DIR=$2/target "${idle[@]}" cargo install --locked --root "$2" --version "=$1" \
		ferrum-cli >"$2/log" 2>&1 || return
	rm -rf "$2/target"
}

install_release()
{
	local folder=$cache/ferrum-$1

	if [ ! -x "$folder/bin/ferrum" ]; then
		command -v cargo >/dev/null || { echo "$1 - cargo is not installed" && return; }
		mkdir -p "$folder" || { echo "$1 - $folder cannot be made" && return; }
		if ! build "$1" "$folder" 9>"$folder/lock"; then
			# Debian 12's cargo is too old for it.
			echo "$1 - $(cargo --version) does not build it: $(grep -m 1 '^error' "$folder/log")"
			return
		fi
	fi
	echo "$1 $folder/bin/ferrum"
}

[ $# -gt 0 ] || set -- 0.18.4 0.7.7
for version; do
	install_release "$version"
done

# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Packages, and bare Debian 12 systems to install them in; sourced after tests/live/lib.sh.
# FBT_ROOT_CACHE is where the bare system is kept.
ROOT_CACHE=${FBT_ROOT_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ferrum-bpftrace/debootstrap}
DIST=$PWD/build/dist

skip()
{
	echo "SKIP $1"
	exit 77
}

# build_package TARGET: one at a time, as all go to the same folder. What other tests have built of the
# same files is not built again.
build_package()
{
	local log=$TMP/make.$1

	mkdir -p build
	if ! flock build/.packages make -s "-j$(nproc)" "$1" >"$log" 2>&1; then
		tail -n 30 "$log" | sed 's/^/# /'
		not_ok "make $1"
		finish
	fi
	ok "make $1"
}

# new_root FOLDER: a bare Debian 12, of which nothing is mounted
new_root()
{
	local base

	base=$ROOT_CACHE/bookworm-$(uname -m)

	command -v debootstrap >/dev/null || skip 'there is no debootstrap'
	mkdir -p "$ROOT_CACHE"
	(
		flock 8
		[ ! -e "$base" ] || exit 0
		debootstrap --variant=minbase --include=ca-certificates bookworm "$base.new" http://deb.debian.org/debian \
			>"$TMP/debootstrap" 2>&1 && mv "$base.new" "$base"
	) 8>"$ROOT_CACHE/lock" || {
		tail -n 3 "$TMP/debootstrap" | sed 's/^/# /'
		rm -rf --one-file-system "$base.new"
		skip "Debian's archive cannot be reached"
	}
	mkdir -p "$(dirname "$1")"
	cp -a "$base" "$1"
	cp /etc/resolv.conf "$1/etc/resolv.conf"
}

# write_entry FILE ROOT [FOLDER]: writes a program that runs a command in the root, with this
# machine's /proc, /sys and devices, and FOLDER at the same path. What it mounts is in a mount
# namespace of its own, so nothing of the machine is ever below a folder that a test removes.
write_entry()
{
	mkdir -p "$2${3:-/mnt}"
	cat >"$1" <<-END
		#!/bin/bash
		exec unshare --mount --propagation private bash -c '
			mount -t proc proc "$2/proc" && mount --rbind /sys "$2/sys" && mount --rbind /dev "$2/dev" || exit 125
			[ -z "${3:-}" ] || mount --bind "${3:-}" "$2${3:-}" || exit 125
			exec chroot "$2" "\$@"' entry "\$@"
	END
	chmod +x "$1"
}

# A tracer in the root, or with few rights, writes here.
SHARED=$TMP/shared
mkdir "$SHARED"
OUT=$SHARED/out

# The checkers of packages, of known versions, in an environment of their own.
CHECKERS=(auditwheel==6.8.2 check-wheel-contents==0.6.3 kubernetes-validate==1.37.0 spdx-tools==0.8.5 twine==7.0.0)

# install_checkers: sets BIN to the folder of their programs
install_checkers()
{
	local cache=${FBT_CHECKERS_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ferrum-bpftrace/checkers} key

	key=$(printf '%s\n' "${CHECKERS[@]}" | sha256sum | cut -c1-12)
	BIN=$cache/$key/bin
	mkdir -p "$cache"
	(
		flock 8
		[ -e "$cache/$key/installed" ] && tests/venv.sh --check "$cache/$key" && exit 0
		tests/venv.sh "$cache/$key" && "$BIN/pip" -q install "${CHECKERS[@]}" && : >"$cache/$key/installed"
	) 8>"$cache/lock" >"$TMP/pip" 2>&1 || {
		tail -n 3 "$TMP/pip" | sed 's/^/# /'
		skip 'pip cannot install what checks packages'
	}
}

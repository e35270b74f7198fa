#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Installs what building, testing or checking needs, as Debian packages, and only what is missing.
# Silent when nothing is. usage: deps.sh [build|test|check], each including the one before it, or
# deps.sh kernels [ARCH] for what test-kernels needs, deps.sh browser for what tests/e2e/html.sh does,
# deps.sh monitor for what tests/e2e/monitor.sh does, deps.sh package for what building packages does,
# or deps.sh install for what their tests do
set -euo pipefail

build_packages=(gcc make libc6-dev linux-libc-dev binutils pkg-config clang llvm bpftool libbpf-dev
	libelf-dev zlib1g-dev libjson-c-dev libcapstone-dev libiberty-dev libssl-dev
	libevent-dev libcap-ng-dev libseccomp-dev libncurses-dev)
test_packages=(libcmocka-dev python3 strace bpftrace linux-perf procps util-linux)
check_packages=(shellcheck clang-format clang-tidy mandoc man-db)
kernels_packages=(cpio debian-archive-keyring)
package_packages=(build-essential debhelper dpkg-dev python3 python3-wheel)
# Tests that need these are skipped if they cannot be installed.
monitor_packages=(prometheus prometheus-node-exporter)
install_packages=(debootstrap lintian podman runc)
browser_packages=(chromium chromium-driver python3-selenium)
optional_packages=(python3-pandas python3-pip g++ redis-tools gdb libdw-dev zsh fish tmux
	systemd)

build_commands=(gcc make ar pkg-config clang llvm-strip bpftool)
test_commands=(python3 strace bpftrace perf ps setpriv node npm)
check_commands=(shellcheck clang-format clang-tidy mandoc man)
kernels_commands=(cpio dpkg-deb apt-get)
package_commands=(python3)
build_headers=(bpf/libbpf.h linux/bpf.h libelf.h zlib.h json-c/json.h capstone/capstone.h
	libiberty/demangle.h openssl/evp.h cap-ng.h seccomp.h ncursesw/curses.h event2/http.h)
test_headers=(cmocka.h)

# A node from elsewhere, from a version manager or another repository, is as good as Debian's.
has_node()
{
	local version

	version=$(node --version 2>/dev/null) && command -v npm >/dev/null || return 1
	version=${version#v}
	[ "${version%%.*}" -ge 18 ] 2>/dev/null
}

has_header()
{
	local lead=

	# cmocka.h needs these headers before it.
	[ "$1" != cmocka.h ] || lead=$(printf '#include <%s.h>\\n' stdarg stddef stdint setjmp)
	printf '%b#include <%s>\n' "$lead" "$1" | "${CC:-gcc}" -E -o /dev/null - 2>/dev/null
}

# Without apt nothing is installed; the missing packages are named.
check_by_hand()
{
	local item missing=()

	for item in "${commands[@]}"; do
		PATH=$PATH:/usr/sbin:/sbin command -v "$item" >/dev/null || missing+=("$item")
	done
	for item in "${headers[@]}"; do
		has_header "$item" || missing+=("<$item>")
	done
	[ ${#missing[@]} -eq 0 ] && return
	echo "deps: no apt-get here; install these yourself: ${missing[*]}" >&2
	exit 1
}

# The sanitizer library for the installed clang.
clang_rt_package()
{
	local depends

	depends=$(dpkg-query -W -f '${Depends}' clang)
	[[ $depends =~ clang-([0-9]+) ]] && echo "libclang-rt-${BASH_REMATCH[1]}-dev"
}

# Sets missing to the packages that are not installed.
find_missing()
{
	local item installed

	installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" \
		2>/dev/null) || true
	missing=()
	for item in "${packages[@]}"; do
		[[ $'\n'$installed$'\n' == *$'\n'"installed $item"$'\n'* ]] || missing+=("$item")
	done
}

install_missing()
{
	local log

	export DEBIAN_FRONTEND=noninteractive
	if [ "$(id -u)" -ne 0 ]; then
		echo "deps: not root; install these first: apt-get install ${missing[*]}" >&2
		exit 1
	fi
	echo "deps: installing ${missing[*]}"
	log=$(mktemp)
	# If the update fails, the existing lists may still be good enough.
	apt-get -q -o DPkg::Lock::Timeout=300 update >"$log" 2>&1 ||
		echo 'deps: apt-get update failed, trying with the lists that are here' >&2
	if ! apt-get -q -y -o DPkg::Lock::Timeout=300 --no-install-recommends \
		install "${missing[@]}" >>"$log" 2>&1; then
		tail -n 20 "$log" >&2
		rm -f "$log"
		echo "deps: apt-get could not install ${missing[*]}" >&2
		exit 1
	fi
	rm -f "$log"
}

# has_optional PACKAGE: also if it was installed from elsewhere than Debian.
has_optional()
{
	case $1 in
	python3-*)
		python3 -c "import importlib.util as u, sys; sys.exit(not u.find_spec('${1#python3-}'))" \
			2>/dev/null
		;;
	chromium-driver) command -v chromedriver >/dev/null ;;
	libdw-dev) has_header elfutils/libdwfl.h ;;
	redis-tools) command -v redis-server >/dev/null || command -v redis-check-rdb >/dev/null ;;
	*) command -v "$1" >/dev/null ;;
	esac
}

# Tries to install them. A failure is reported, but is no error.
install_optional()
{
	local item

	packages=("${optional_packages[@]}")
	find_missing
	[ "$(id -u)" -eq 0 ] || return 0
	for item in "${missing[@]}"; do
		if has_optional "$item" || ! apt-cache show "$item" >/dev/null 2>&1; then
			continue
		fi
		echo "deps: installing $item"
		DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 \
			--no-install-recommends install "$item" >/dev/null 2>&1 ||
			echo "deps: apt-get could not install $item; its tests are left out" >&2
	done
}

packages=("${build_packages[@]}")
commands=("${build_commands[@]}")
headers=("${build_headers[@]}")
case ${1:-build} in
build) ;;
test | check)
	packages+=("${test_packages[@]}")
	commands+=("${test_commands[@]}")
	headers+=("${test_headers[@]}")
	has_node || packages+=(nodejs npm)
	if [ "$1" = check ]; then
		packages+=("${check_packages[@]}")
		commands+=("${check_commands[@]}")
	fi
	;;
kernels)
	if [ "${2:-x86_64}" = x86_64 ]; then
		kernels_packages+=(qemu-system-x86)
		kernels_commands+=(qemu-system-x86_64)
	fi
	if [ "${2:-arm64}" = arm64 ]; then
		kernels_packages+=(qemu-system-arm)
		kernels_commands+=(qemu-system-aarch64)
		[ "$(uname -m)" = aarch64 ] || {
			kernels_packages+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
			kernels_commands+=(aarch64-linux-gnu-gcc)
		}
	fi
	packages+=("${kernels_packages[@]}")
	commands+=("${kernels_commands[@]}")
	;;
package)
	packages+=("${package_packages[@]}")
	commands+=("${package_commands[@]}")
	;;
browser) optional_packages=("${browser_packages[@]}") ;;
monitor) optional_packages=("${monitor_packages[@]}") ;;
install) optional_packages=("${install_packages[@]}") ;;
*)
	echo 'usage: deps.sh [build|test|check|kernels [ARCH]|browser|monitor|package|install]' >&2
	exit 2
	;;
esac

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
	check_by_hand
	exit 0
fi
find_missing
[ ${#missing[@]} -eq 0 ] || install_missing
case ${1:-build} in
test | check | browser | monitor | install) install_optional ;;
esac
[ "${1:-build}" = check ] || exit 0
packages=("$(clang_rt_package)")
find_missing
[ ${#missing[@]} -eq 0 ] || install_missing

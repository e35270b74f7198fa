#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Packages as data: fetched with apt, its signatures and checksums checked, unpacked, not installed.
# apt gets lists, state and sources of its own, so nothing here sees or changes the machine's, and
# nobody needs to be root.
#
#	fetch.sh kernel ARCH SUITE PACKAGE CACHE    prints the path of the newest kernel's image
#	fetch.sh root ARCH SUITE LIST CACHE         prints the folder with the packages in LIST
#
# What is in CACHE stays, for all trees on the machine; a new name takes effect when it is whole, and a
# kernel that nobody asked for in 60 days goes. Lists older than LISTS_HOURS
# (20) are fetched again; if that fails, what is there is used, and that is said.
#
# Exit status 77: the archive cannot be reached, and what is wanted is not in CACHE. 1: anything else.
set -euo pipefail
shopt -s inherit_errexit

debian_key=/usr/share/keyrings/debian-archive-keyring.gpg

die()
{
	echo "fetch: $*" >&2
	exit 1
}

# lost LOG WHAT WHY…: ends with apt's message
lost()
{
	local log=$1 what=$2

	shift 2
	sed 's/^/fetch: /' "$log" >&2
	if ! grep -qE ' 404 |Hash Sum|NO_PUBKEY|BADSIG|EXPKEYSIG' "$log" &&
		grep -qE "$unreachable" "$log"; then
		echo "fetch: $what: the archive cannot be reached" >&2
		exit 77
	fi
	die "$what: $*"
}
unreachable='Could not (resolve|connect|handshake)|[Tt]emporary failure|Unable to connect|timed out'
unreachable+='|Connection (failed|refused|reset|closed)|unreachable|No route to host| 40[37] | 50[0-9] '
unreachable+='|Cannot initiate the connection|[Pp]roxy'

# gone LOG WHAT: a package is missing. The archive may have changed since the lists were fetched, so
# everything is tried once more with new lists.
gone()
{
	[ -n "$fresh" ] || ! grep -q ' 404 ' "$1" || exit 75
	lost "$1" "$2" 'is not to be had in' "$suite: put a name that is, or another suite, in tests/kernels/$3"
}

# At the end
once_more()
{
	[ $? != 75 ] || LISTS_HOURS=0 exec "$0" "${arguments[@]}"
}

# suite_source SUITE: one line of sources.list
suite_source()
{
	local ubuntu=http://archive.ubuntu.com/ubuntu key

	case $1 in
	bullseye | bookworm | trixie | sid)
		echo "deb [signed-by=$debian_key] http://deb.debian.org/debian $1 main"
		;;
	jammy)
		# The release itself, without updates: the oldest supported kernel.
		[ "$deb_arch" = amd64 ] || ubuntu=http://ports.ubuntu.com/ubuntu-ports
		key=$(ubuntu_key)
		echo "deb [signed-by=$key] $ubuntu $1 main"
		;;
	*) die "$1: no such suite" ;;
	esac
}

# Ubuntu's key comes from a Debian package, so Debian's signature vouches for it.
ubuntu_key()
{
	local key=$cache/keyrings/ubuntu-archive-keyring.gpg file

	if [ ! -e "$key" ]; then
		file=$("$0" package "$arch" trixie ubuntu-keyring "$cache")
		mkdir -p "$cache/keyrings"
		dpkg-deb --fsys-tarfile "$file" |
			tar -xO ./usr/share/keyrings/ubuntu-archive-keyring.gpg >"$key.new"
		mv "$key.new" "$key"
	fi
	echo "$key"
}

# make_apt SUITE: sets APT_CONFIG to an apt of our own, with the lists of that suite
make_apt()
{
	local dir=$cache/apt/$1-$deb_arch source

	source=$(suite_source "$1")
	mkdir -p "$dir"/{etc/{apt.conf,preferences}.d,lists/partial,archives/partial}
	: >"$dir/status"
	echo "$source" >"$dir/sources.list"
	# A mirror that lags has older packages but no bad ones, so the date of its lists is not
	# checked.
	cat >"$dir/apt.conf.new" <<-END
		APT::Architecture "$deb_arch";
		APT::Architectures { "$deb_arch"; };
		APT::Sandbox::User "";
		Acquire::Check-Valid-Until "false";
		Acquire::Languages "none";
		Acquire::Retries "3";
		Acquire::http::Timeout "30";
		Dir::Cache "$dir";
		Dir::Cache::archives "$dir/archives";
		Dir::Etc "$dir/etc";
		Dir::Etc::sourcelist "$dir/sources.list";
		Dir::Etc::sourceparts "-";
		Dir::Etc::trusted "/dev/null";
		Dir::Etc::trustedparts "/dev/null";
		Dir::State "$dir";
		Dir::State::lists "$dir/lists";
		Dir::State::status "$dir/status";
	END
	mv "$dir/apt.conf.new" "$dir/apt.conf"
	export APT_CONFIG=$dir/apt.conf
	update_lists "$1" "$dir"
}

update_lists()
{
	local dir=$2 age=$((${LISTS_HOURS:-20} * 60))

	[ -z "$(find "$dir/updated" -mmin "-$age" 2>/dev/null)" ] || return 0
	if apt-get -q update >"$dir/update.log" 2>&1 && ! grep -q '^[EW]: ' "$dir/update.log"; then
		touch "$dir/updated"
		fresh=1
	elif [ -e "$dir/updated" ]; then
		fresh=1
		echo "fetch: $1: the lists could not be updated, those of $(date -r "$dir/updated" +%F) are used" >&2
	else
		lost "$dir/update.log" "$1" "its lists could not be had from $(cut -d' ' -f3 "$dir/sources.list");" \
			'if the suite has moved, say so in suite_source of tests/kernels/fetch.sh'
	fi
}

# download PACKAGE…: puts their files into the folder archives; prints the paths
download()
{
	local dir=${APT_CONFIG%/*} part

	part=$(mktemp -d "$dir/part.XXXXXX")
	if ! (cd "$part" && apt-get -q download "$@" >log 2>&1); then
		mv "$part/log" "$dir/download.log"
		rm -rf "$part"
		gone "$dir/download.log" "$*" kernels.txt
	fi
	for file in "$part"/*.deb; do
		mv "$file" "$dir/archives/"
		echo "$dir/archives/${file##*/}"
	done
	rm -rf "$part"
}

# Follows a meta package of kernels to the package with the image.
kernel_packages()
{
	apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
		--no-replaces --no-enhances "$1" |
		grep -E "^(linux-(image|binary)-[0-9].*|user-mode-linux)$" | sort -u
}

# take_image PACKAGE DIR: extracts the kernel, if there is one, to DIR/vmlinuz
take_image()
{
	local path

	path=$(dpkg-deb --fsys-tarfile "$1" | tar -t |
		grep -E '^\./(boot/vmlinuz-.*|usr/lib/modules/[^/]*/vmlinuz|usr/bin/linux\.uml)$' || true)
	[ -z "$path" ] || dpkg-deb --fsys-tarfile "$1" | tar -xO "$path" >"$2/vmlinuz"
}

# take_libc PACKAGE DIR: User-mode Linux is a program that may need a newer libc than this
# machine's. The libc is put beside it: the path of its loader is replaced by a relative one of the
# same length.
take_libc()
{
	mkdir -p "$2/ld64"
	dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2/ld64" --transform 's|.*/||' \
		--wildcards './usr/lib/*-linux-gnu/*.so*'
	LC_ALL=C sed -i 's|/lib64/ld-linux-x86-64|./ld64/ld-linux-x86-64|' "$2/vmlinuz"
}

fetch_kernel()
{
	local packages version store file files

	mapfile -t packages < <(kernel_packages "$1")
	[ ${#packages[@]} -gt 0 ] ||
		die "$1: leads to no kernel in $suite any more: put the name of one that does in tests/kernels/kernels.txt"
	# The last package is linux-image, or linux-binary beside an empty linux-image.
	version=$(apt-cache show --no-all-versions "${packages[0]}" | sed -n 's/^Version: //p')
	store=$cache/$arch/${packages[0]}_${version//:/%3a}
	if [ ! -e "$store/vmlinuz" ]; then
		rm -rf "$store" "$store.new"
		mkdir -p "$store.new"
		files=$(download "${packages[@]}")
		for file in $files; do
			take_image "$file" "$store.new"
			rm -f "$file"
		done
		[ -s "$store.new/vmlinuz" ] || die "${packages[*]}: no kernel is in there"
		if [ "${packages[0]}" = user-mode-linux ]; then
			file=$(download libc6)
			take_libc "$file" "$store.new"
			rm -f "$file"
		fi
		chmod +x "$store.new/vmlinuz"
		mv "$store.new" "$store"
	fi
	touch "$store"
	find "$cache/$arch" -maxdepth 1 -type d -name '*_*' ! -name 'root_*' -mtime +60 \
		-exec rm -rf {} +
	echo "$store/vmlinuz"
}

fetch_root()
{
	local packages names store dir=${APT_CONFIG%/*}

	mapfile -t packages < <(grep -v '^#' "$1")
	# With an empty folder, apt names all packages.
	mkdir -p "$dir/none/partial"
	names=$(apt-get -q install -y --no-install-recommends --print-uris \
		-o Dir::Cache::archives="$dir/none" "${packages[@]}" 2>"$dir/download.log" |
		sed -n "s/^'[^']*' \([^ ]*\) .*/\1/p" | sort) ||
		gone "$dir/download.log" "${1##*/}: a package" "${1##*/}"
	store=$cache/$arch/root_$(cat "$0" - <<<"$names" | sha256sum | cut -c1-16)
	if [ ! -d "$store" ]; then
		rm -rf "$cache/$arch"/root_*
		apt-get -q install -y --no-install-recommends --download-only "${packages[@]}" \
			>"$dir/download.log" 2>&1 || {
			gone "$dir/download.log" "${1##*/}: a package" "${1##*/}"
		}
		unpack_root "$store.new" "$dir/archives" "$names"
		mv "$store.new" "$store"
		rm -f "$dir"/archives/*.deb
	fi
	echo "$store"
}

unpack_root()
{
	local root=$1 name

	mkdir -p "$root"/usr/{bin,sbin,lib,lib64} "$root"/{proc,sys,dev,tmp,run,root,etc}
	for name in bin sbin lib lib64; do
		ln -s "usr/$name" "$root/$name"
	done
	for name in $3; do
		dpkg-deb --fsys-tarfile "$2/$name" | tar -x -C "$root" --keep-directory-symlink \
			--no-same-owner --exclude='./usr/share/doc*' --exclude='./usr/share/man' \
			--exclude='./usr/share/locale' --exclude='./usr/share/perl*' \
			--exclude='./usr/lib/*/perl*' --exclude='./usr/share/info' \
			--exclude='./usr/share/zoneinfo' --exclude='*/gconv/*' --exclude='./usr/bin/perl*' \
			--exclude='./var/cache/*' --exclude='./usr/lib/modules'
	done
	cp "$root/usr/share/base-passwd/passwd.master" "$root/etc/passwd"
	cp "$root/usr/share/base-passwd/group.master" "$root/etc/group"
	# Links that the packages' own scripts would make.
	ln -sf dash "$root/usr/bin/sh"
	ln -sf mawk "$root/usr/bin/awk"
	echo guest >"$root/etc/hostname"
	echo '127.0.0.1 localhost guest' >"$root/etc/hosts"
}

arguments=("$@") fresh=
arch=$2 suite=$3 cache=$(realpath -m "$5")
case $arch in
x86_64) deb_arch=amd64 ;;
arm64) deb_arch=arm64 ;;
*) die "$arch: only x86_64 and arm64 are known" ;;
esac
mkdir -p "$cache"
trap once_more EXIT
# Only one fetch at a time uses a cache; a nested fetch has the lock already.
if [ -z "${FETCH_LOCKED:-}" ]; then
	exec 8>"$cache/fetch.lock"
	flock 8
	export FETCH_LOCKED=1
fi
make_apt "$suite"
case $1 in
kernel) fetch_kernel "$4" ;;
root) fetch_root "$4" ;;
package) download "$4" ;;
*) die "$1: kernel, root or package" ;;
esac

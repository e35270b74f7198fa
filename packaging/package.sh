#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Makes packages of what `make STATIC=1 install-strip` has put into a folder, see packaging.mk:
#
#	package.sh tarball|wheel|image STAGE DIST
#
# STAGE is the folder that stands for the prefix, DIST where packages go. In the environment: VERSION,
# EPOCH (seconds, the time of all files), ARCH and MAP (the linker's map of the static tool). The same
# input gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022

kind=${1:?usage: package.sh tarball|wheel|image STAGE DIST} stage=$(realpath "$2") dist=$3
: "${VERSION:?}" "${EPOCH:?}" "${ARCH:?}" "${MAP:?}"
mkdir -p "$dist"
dist=$(realpath "$dist")
map=$(realpath "$MAP")
here=$PWD
export SOURCE_DATE_EPOCH=$EPOCH LC_ALL=C
name=ferrum-bpftrace
libraries=("lib/$name/libferrum_cupti.so" "lib/$name/libferrum_python.so")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints the bill of materials.
sbom()
{
	(cd "$stage" && python3 "$here/packaging/sbom.py" --name $name --version "$VERSION" \
		--date "$EPOCH" --map "$map" "bin/$name" "${libraries[@]}")
}

# pack FOLDER FILE: as a compressed tar
pack()
{
	tar -C "$(dirname "$1")" --sort=name --format=ustar --mtime="@$EPOCH" --owner=0 --group=0 --numeric-owner \
		--mode='u+rw,a+rX,go-w' -cf - "$(basename "$1")" | gzip -n9 >"$2.tmp"
	mv "$2.tmp" "$2"
}

# The newest version of glibc whose symbols the libraries use, which the engine's glibc must have.
glibc_wanted()
{
	for library in "${libraries[@]}"; do
		objdump -T "$stage/$library"
	done | grep -oE 'GLIBC_[0-9]+\.[0-9]+' | sort -uV | tail -n 1 | sed 's/GLIBC_//'
}

make_tarball()
{
	local release=$name-$VERSION-linux-$ARCH

	cp -r "$stage" "$work/$release"
	sbom >"$work/$release/share/doc/$name/$name.spdx.json"
	# Before anything is run as root: sha256sum -c SHA256SUMS
	(cd "$work/$release" && find . -type f ! -name SHA256SUMS -print0 | sort -z | xargs -0 sha256sum >"$work/sums")
	mv "$work/sums" "$work/$release/SHA256SUMS"
	cp "$work/$release/share/doc/$name/$name.spdx.json" "$dist/$release.spdx.json"
	pack "$work/$release" "$dist/$release.tar.gz"
}

# Debian's package of wheel is for Debian's python3, which need not be the first in PATH.
python_with_wheel()
{
	local python

	for python in python3 /usr/bin/python3; do
		"$python" -c 'import wheel' 2>/dev/null && echo "$python" && return
	done
	echo 'wheel: no python3 has the module wheel: apt-get install python3-wheel, or pip install wheel' >&2
	return 1
}

# The tool is a script of the package, as pip calls what it puts into bin/. Its libraries are data,
# so that they lie where the tool looks for them, in ../lib/ferrum-bpftrace.
make_wheel()
{
	local tree=$work/ferrum_bpftrace-$VERSION glibc machine=${ARCH/arm64/aarch64} info

	glibc=$(glibc_wanted)
	[ -n "$glibc" ] || { echo 'wheel: the libraries use no symbol of glibc' >&2 && exit 1; }
	info=$tree/ferrum_bpftrace-$VERSION.dist-info
	mkdir -p "$info/licenses" "$info/sboms" "$tree/ferrum_bpftrace-$VERSION.data/"{scripts,data}
	cp "$stage/bin/$name" "$tree/ferrum_bpftrace-$VERSION.data/scripts"
	cp -r "$stage/lib" "$tree/ferrum_bpftrace-$VERSION.data/data"
	# Units and completion of the whole machine are not for an environment, but these are harmless.
	rm -rf "$tree/ferrum_bpftrace-$VERSION.data/data/lib/systemd"
	(cd "$stage" && cp -r --parents share/man share/bash-completion share/zsh share/fish \
		"$tree/ferrum_bpftrace-$VERSION.data/data")
	cp LICENSE "$info/licenses"
	sbom >"$info/sboms/$name.spdx.json"
	cat >"$info/WHEEL" <<-END
		Wheel-Version: 1.0
		Generator: $name
		Root-Is-Purelib: false
		Tag: py3-none-manylinux_${glibc/./_}_$machine
	END
	{
		cat <<-END
			Metadata-Version: 2.1
			Name: ferrum-bpftrace
			Version: $VERSION
			Summary: Shows where each step of a running LLM inference server spends its time
			License: LGPL-2.1-only OR BSD-2-Clause
			License-File: LICENSE
			Keywords: ebpf,tracing,profiling,llm,inference,latency
			Classifier: Environment :: Console
			Classifier: Operating System :: POSIX :: Linux
			Classifier: Topic :: System :: Monitoring
			Requires-Python: >=3.8
			Description-Content-Type: text/markdown

		END
		cat packaging/wheel.md
	} >"$info/METADATA"
	find "$tree" -exec touch -h -d "@$EPOCH" {} +
	rm -f "$dist"/ferrum_bpftrace-*.whl
	"$(python_with_wheel)" -m wheel pack "$tree" --dest-dir "$dist" >/dev/null
}

# What the image has: nothing but the tool, its libraries and the licence.
make_image()
{
	rm -rf "$dist/image"
	mkdir -p "$dist/image/root/usr/share/doc/$name"
	(cd "$stage" && cp -r --parents "bin/$name" "${libraries[@]}" "$dist/image/root/usr")
	cp LICENSE "$dist/image/root/usr/share/doc/$name"
	sbom >"$dist/image/root/usr/share/doc/$name/$name.spdx.json"
	sed "s|@VERSION@|$VERSION|" packaging/docker/Dockerfile >"$dist/image/Dockerfile"
	find "$dist/image" -exec touch -h -d "@$EPOCH" {} +
}

case $kind in
tarball | wheel | image) "make_$kind" ;;
*)
	echo "package.sh: no such package: $kind" >&2
	exit 2
	;;
esac

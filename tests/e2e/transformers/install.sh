#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# install.sh: makes the transformers of vLLM's environment (../vllm/install.sh) able to serve, and says where
# they are:
#
#	VERSION ENVIRONMENT FOLDER     FOLDER has what the environment lacks: it belongs into PYTHONPATH
#	VERSION - WHY                  it cannot be had here
#
# FOLDER is in the same cache; it takes some seconds and a megabyte.
set -u
cd "$(dirname "$0")" || exit 1
ACCELERATE=1.15.0
read -r _ venv why < <(../vllm/install.sh)
[ "$venv" != - ] || { echo "- - $why" && exit; }
version=$("$venv/bin/python" -c 'import importlib.metadata as m; print(m.version("transformers"))')
folder=$(dirname "$venv")/transformers-accelerate-$ACCELERATE

build()
{
	flock 9
	[ -e "$folder/complete" ] && return
	# Without what it needs: the environment has that.
	nice -n 19 "$venv/bin/python" -m pip --disable-pip-version-check -q install --no-deps \
		--target "$folder" "accelerate==$ACCELERATE" && touch "$folder/complete"
}

mkdir -p "$folder" || { echo "$version - $folder cannot be made" && exit; }
if [ ! -e "$folder/complete" ] && ! build 9>"$folder/lock" >"$folder/log" 2>&1; then
	echo "$version - pip does not install accelerate: $(grep -m 1 -i error "$folder/log")"
	exit
fi
echo "$version $venv $folder"

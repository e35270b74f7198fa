#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What else happens in a process whose functions are armed: settrace, setprofile, sys.monitoring, coverage,
# debugpy, torch.compile; fork, vfork, posix_spawn, multiprocessing; each way to end. All is as without.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/python/lib.sh
. tests/live/python/lib.sh

cache=${XDG_CACHE_HOME:-$HOME/.cache}/ferrum-bpftrace
# In pure Python, so they are for all versions. The folder appears when it is whole.
packages=$cache/python/packages
if [ ! -d "$packages" ]; then
	mkdir -p "$cache/python"
	python3 -m pip install -q --disable-pip-version-check --target "$TMP/packages" --platform any \
		--python-version 3.9 --only-binary=:all: --no-deps coverage==7.10.7 debugpy==1.8.21 \
		>"$TMP/pip.log" 2>&1 && mv "$TMP/packages" "$packages"
fi
if [ ! -d "$packages" ]; then
	tail -3 "$TMP/pip.log" | sed 's/^/# /'
	echo 'SKIP beside coverage and debugpy: they could not be had from the package index'
	packages=
fi
# Only beside an engine that is here anyway, and once.
torch=$(compgen -G "$cache/vllm-*/bin/python" | tail -1)
[ -n "$torch" ] || echo 'SKIP torch.compile: no PyTorch in the cache (make test-engines)'
# At night also those that are no packages of the distribution.
[ "${TEST_LONG:-0}" = 1 ] || PYTHONS=${PYTHONS:-$(interpreters | grep /usr/bin/)}
while read -r _ path; do
	python3 tests/live/python_harmless.py "$path" "$LIBRARY" "$FBT_BUILD/tests/live_python_drive" \
		"$(at_length 2 50)" "$packages" "$torch" || FAILED=1
	torch=
done < <(interpreters)
finish

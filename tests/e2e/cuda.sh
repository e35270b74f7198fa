#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Tests the shim with CUPTI's real headers and libraries of three releases, without a GPU: the
# layout of what the shim reads, the length of the library's records, its functions, and the answer
# without a driver. The newest nvcc builds the engine of the kit for a GPU machine.
set -u
cd "$(dirname "$0")/../.." || exit 1

: "${FBT_BUILD:=build/$(uname -m | sed 's/aarch64/arm64/')-gcc}"
export FBT_BUILD
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
status=0

# state GOOD NAME
state()
{
	if [ "$1" = 0 ]; then
		echo "ok - $2"
	else
		echo "not ok - $2"
		status=1
	fi
}

for version in 11.8 12.9 13.0; do
	if ! toolkit=$(tests/cuda/toolkit.sh $version 2>"$out/err"); then
		echo "SKIP $(cat "$out/err")"
		exit 77
	fi
	CUDA_HOME=$toolkit CMOCKA_MESSAGE_OUTPUT=TAP "$FBT_BUILD/tests/unit_cupti" cupti_abi_test >"$out/tap" 2>&1
	sed 's/^/# /' "$out/tap"
	# The test's facts, with the version in front.
	for fact in test_headers test_strides test_no_driver; do
		if grep -q "^SKIP there is a driver" "$out/tap" && [ $fact = test_no_driver ]; then
			echo "SKIP $fact: there is a driver here"
			continue
		fi
		grep -qE "^ok [0-9]+ - $fact\$" "$out/tap"
		state $? "CUDA $version: $fact"
	done
	grep -q '^SKIP no' "$out/tap"
	state $((!$?)) "CUDA $version: headers and library were found"
done

"$toolkit/bin/nvcc" -O2 -arch=all-major tests/gpu/engine.cu -o "$out/engine" -ldl
state $? 'nvcc builds the CUDA engine'
"$out/engine" --help >"$out/help" 2>&1
grep -q -- '--steps' "$out/help"
state $? 'which starts here, and names its options'
exit $status

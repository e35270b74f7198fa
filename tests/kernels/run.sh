#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# run.sh ARCH BUILD CACHE: boots each kernel of kernels.txt for ARCH under qemu, the tool of BUILD and
# the live tests in it, and sums up like tests/run.sh. A table of the results is CACHE/table-ARCH.md.
#
#	KERNELS='6.1 6.12'      these only
#	KERNEL_TESTS=live       what they run: quick, live, all, or files with commas between; by default
#	                        live with KVM, else quick
#	FBT_ACCEL=tcg           kvm or tcg; by default what the machine has
#	KERNEL_SECONDS=900      how long one may take
set -u
cd "$(dirname "$0")/../.." || exit 1

arch=$1 build=$2 cache=$3
# Where /dev/kvm stands for something else than the processor's own, kernels do not boot on it.
if [ -z "${FBT_ACCEL:-}" ]; then
	FBT_ACCEL=tcg
	if [ "$(uname -m | sed 's/aarch64/arm64/')" = "$arch" ] && [ -w /dev/kvm ] &&
		{ [ "$arch" = arm64 ] || grep -qE '^flags.* (vmx|svm) ' /proc/cpuinfo; }; then
		FBT_ACCEL=kvm
	fi
fi
export FBT_ACCEL
default=quick
[ "$FBT_ACCEL" = tcg ] || default=live
logs=$build/logs
table=$cache/table-$arch.md
passed=0
failed=0
skipped=0

# tell NAME GOOD BAD SKIPS TEXT: a line for one kernel, and its figures into the sum
tell()
{
	local word=PASS

	[ "$4" = 0 ] || word=SKIP
	[ "$3" = 0 ] || word=FAIL
	printf '  %-8s %-32s %s\n' $word "kernels/$1" "$2$([ "$3" = 0 ] || echo ", $3 failed")$5"
	passed=$((passed + $2))
	failed=$((failed + $3))
	skipped=$((skipped + $4))
}

# fails NAME WHY [LOG]
fails()
{
	echo "not ok - kernels/$1: $2"
	[ -z "${3:-}" ] || tail -n 30 "$3" | tr -d '\r' | cut -c1-200 | sed 's/^/    /'
	row "$1" - "failed: $2" - -
	tell "$1" 0 1 0 ''
}

row()
{
	printf '| %s | %s | %s | %s | %s |\n' "$@" >>"$table"
}

# run_kernel NAME SUITE PACKAGE RUNS [WANT]
run_kernel()
{
	local name=$1 runs=$4 want=${5:-} console=$logs/kernels-$arch-$1.log
	local start=$SECONDS kernel result release status good bad skips

	if ! kernel=$(tests/kernels/fetch.sh kernel "$arch" "$2" "$3" "$cache" 2>"$console"); then
		fails "$name" 'its package could not be fetched' "$console"
		return
	fi
	[ "$runs" != live ] || runs=${KERNEL_TESTS:-$default}
	result=$(tests/kernels/boot.sh "$arch" "$kernel" "$initramfs" "$runs" "$want" \
		"${KERNEL_SECONDS:-900}" "$console")
	status=$?
	if ! [[ $result =~ ^([^ ]+)\ ([0-9]+)\ ([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
		if [ $status = 124 ]; then
			fails "$name" "still running after ${KERNEL_SECONDS:-900} s" "$console"
		else
			fails "$name" 'it did not come to the end of its tests' "$console"
		fi
		return
	fi
	release=${BASH_REMATCH[1]} status=${BASH_REMATCH[2]}
	good=${BASH_REMATCH[3]} bad=${BASH_REMATCH[4]} skips=${BASH_REMATCH[6]:-0}
	if [ "$status" != 0 ] && [ "$bad" = 0 ]; then
		fails "$name" "its tests ended with $status" "$console"
		return
	fi
	if [ "$bad" != 0 ] || [ "${V:-0}" = 1 ]; then
		sed -n '/^FBT-BEGIN/,$p' "$console" | tr -d '\r' | sed 's/^/    /'
	fi
	row "$name" "$release" "$(outcome "$runs" "$bad")" "$good" $((SECONDS - start))
	tell "$name" "$good" "$bad" "$skips" ", $release, $((SECONDS - start)) s"
}

# outcome RUNS BAD: in the words of the table
outcome()
{
	if [ "$2" != 0 ]; then
		echo "$2 facts failed"
	elif [ "$1" = refuses ]; then
		echo 'refused, in one line'
	else
		echo 'works'
	fi
}

mkdir -p "$logs" "$cache"
{
	echo '| kernel | booted | result | facts | seconds |'
	echo '|---|---|---|---|---|'
} >"$table"
echo "$arch, $FBT_ACCEL, ${KERNEL_TESTS:-$default} tests"
initramfs=$(tests/kernels/root.sh "$arch" "$build" "${ROOT_SUITE:-bookworm}" "$cache" 2>"$logs/kernels-root.log") || {
	cat "$logs/kernels-root.log"
	initramfs=
}
while read -r its_arch name suite package runs want; do
	[ "$its_arch" = "$arch" ] || continue
	[ -z "${KERNELS:-}" ] || [[ " $KERNELS " == *" $name "* ]] || continue
	if [ -z "$initramfs" ]; then
		fails "$name" 'no files for the guest, see above'
	else
		run_kernel "$name" "$suite" "$package" "$runs" "$want" </dev/null
	fi
done < <(grep -v '^#' tests/kernels/kernels.txt)
echo "$passed passed, $failed failed$([ "$skipped" = 0 ] || echo ", $skipped skipped")"
[ "$failed" = 0 ] && [ "$passed" != 0 ]

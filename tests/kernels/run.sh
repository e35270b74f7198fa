#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# run.sh ARCH BUILD CACHE: boots each kernel of kernels.txt for ARCH under qemu, the tool of BUILD and
# the live tests in it, and sums up like tests/run.sh. Packages are kept in CACHE. A run of all kernels
# with their usual tests leaves a table of the results, build/kernels/table-ARCH.md.
#
#	KERNELS='6.1 6.12'      these only
#	KERNEL_TESTS=live       what they run: quick, live, all, or files with commas between; by default
#	                        live with KVM, else quick
#	FBT_ACCEL=tcg           kvm or tcg; by default what the machine has
#	KERNEL_SECONDS=1800     how long one may take
#	KERNEL_JOBS=1           how many run at once
#
# One whose package cannot be fetched, as the archive cannot be reached, is left out and counted as
# skipped.
set -u
cd "$(dirname "$0")/../.." || exit 1

arch=$1 build=$2 cache=$3
# If /dev/kvm does not stand for the processor's own virtualization, kernels do not boot on it.
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
seconds=${KERNEL_SECONDS:-1800}
passed=0
failed=0
skipped=0
reasons=()

# The results of a kernel are printed at its end, in the order of kernels.txt.
# tell NAME GOOD BAD SKIPS TEXT
tell()
{
	local word=PASS

	[ "$4" = 0 ] || word=SKIP
	[ "$3" = 0 ] || word=FAIL
	printf '  %-8s %-32s %s\n' $word "kernels/$1" "$2$([ "$3" = 0 ] || echo ", $3 failed")$5"
	echo "$2 $3 $4" >"$own/$1.new"
	mv "$own/$1.new" "$own/$1.figures"
}

# row NAME RELEASE RESULT FACTS SECONDS
row()
{
	printf '| %s | %s | %s | %s | %s |\n' "$@" >"$own/$1.row"
}

# fails NAME WHY [LOG]
fails()
{
	echo "not ok - kernels/$1: $2"
	[ -z "${3:-}" ] || tail -n 30 "$3" | tr -d '\r' | cut -c1-200 | sed 's/^/    /'
	: >"$own/$1.skips"
	row "$1" - "failed: $2" - -
	tell "$1" 0 1 0 ''
}

# skips NAME LOG
skips()
{
	tail -n 1 "$2" >"$own/$1.skips"
	row "$1" - 'left out: its package could not be fetched' - -
	tell "$1" 0 0 1 ", skipped: $(tail -n 1 "$2")"
}

# run_kernel NAME IMAGE RUNS [WANT]
run_kernel()
{
	local name=$1 runs=$3 want=${4:-} console=$logs/kernels-$arch-$1.log
	local start=$SECONDS result release status good bad skips

	[ "$runs" != live ] || runs=${KERNEL_TESTS:-$default}
	result=$(tests/kernels/boot.sh "$arch" "$2" "$initramfs" "$runs" "$want" "$seconds" "$console")
	status=$?
	if ! [[ $result =~ ^([^ ]+)\ ([0-9]+)\ ([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
		if [ $status = 124 ]; then
			fails "$name" "still running after $seconds s" "$console"
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
		sed -n '/^FBT-BEGIN/,$p' "$console" | tr -d '\r' |
			sed -E "s|^  FAIL +|&kernels/$name: |; s/^/    /"
	fi
	tr -d '\r' <"$console" | sed -nE 's/^  SKIP +([^ ]+) .*skipped: (.*)/\1: \2/p' >"$own/$name.skips"
	row "$name" "$release" "$(outcome "$runs" "$bad")" "$good" $((SECONDS - start))
	tell "$name" "$good" "$bad" "$skips" ", $release, $((SECONDS - start)) s"
}

# outcome RUNS BAD: the table's words
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

# make_files: sets initramfs to the guest's files, or prints the failure
make_files()
{
	initramfs=$(tests/kernels/root.sh "$arch" "$build" "${ROOT_SUITE:-bookworm}" "$cache" 2>"$logs/kernels-root.log")
	files=$?
	[ $files = 0 ] || cat "$logs/kernels-root.log"
}

# start_kernel NAME SUITE PACKAGE RUNS [WANT]: the result is in NAME.said once NAME.figures exists.
# Packages are fetched one after the other, because apt cannot run twice at once.
start_kernel()
{
	local log=$logs/kernels-$arch-$1-package.log image status=$files why='no files for the guest, see above'

	[ $status = 0 ] || log=$logs/kernels-root.log
	if [ $status = 0 ]; then
		why='its package could not be fetched'
		image=$(tests/kernels/fetch.sh kernel "$arch" "$2" "$3" "$cache" 2>"$log")
		status=$?
	fi
	case $status in
	0) run_kernel "$1" "$image" "$4" "$5" ;;
	77) skips "$1" "$log" ;;
	*) fails "$1" "$why" "$log" ;;
	esac </dev/null >"$own/$1.said" 2>&1 &
}

# tell_ended: prints the results of kernels that have ended, in order
tell_ended()
{
	local name good bad skips

	while [ "$told" -lt ${#names[@]} ] && [ -e "$own/${names[told]}.figures" ]; do
		name=${names[told]}
		cat "$own/$name.said"
		cat "$own/$name.row" >>"$table"
		read -r good bad skips <"$own/$name.figures"
		passed=$((passed + good))
		failed=$((failed + bad))
		skipped=$((skipped + skips))
		mapfile -t -O ${#reasons[@]} reasons < <(sed "s|^|kernels/$name: |" "$own/$name.skips")
		told=$((told + 1))
	done
}

# wait_below COUNT: until fewer kernels than that run
wait_below()
{
	while [ "$(jobs -pr | wc -l)" -ge "$1" ]; do
		sleep 1
		tell_ended
	done
}

mkdir -p "$logs" "$cache"
own=$(mktemp -d)
trap 'rm -rf "$own"' EXIT
table=$own/table
{
	echo '| kernel | booted | result | facts | seconds |'
	echo '|---|---|---|---|---|'
} >"$table"
echo "$arch, $FBT_ACCEL, ${KERNEL_TESTS:-$default} tests"
make_files
names=() told=0
while read -r its_arch name suite package runs want; do
	[ "$its_arch" = "$arch" ] || continue
	[ -z "${KERNELS:-}" ] || [[ " $KERNELS " == *" $name "* ]] || continue
	wait_below "${KERNEL_JOBS:-1}"
	start_kernel "$name" "$suite" "$package" "$runs" "$want"
	names+=("$name")
done < <(grep -v '^#' tests/kernels/kernels.txt)
wait_below 1
tell_ended
for name in "${names[@]:told}"; do
	echo "not ok - kernels/$name: it was ended"
	failed=$((failed + 1))
done
if [ -z "${KERNEL_TESTS:-}" ] && [ ${#names[@]} = "$(grep -c "^$arch " tests/kernels/kernels.txt)" ]; then
	mkdir -p build/kernels
	cp "$table" "build/kernels/table-$arch.md"
fi
[ ${#reasons[@]} = 0 ] || { echo 'skipped:' && printf '  %s\n' "${reasons[@]}"; }
echo "$passed passed, $failed failed$([ "$skipped" = 0 ] || echo ", $skipped skipped")"
[ "$failed" = 0 ] && [ $((passed + skipped)) != 0 ]

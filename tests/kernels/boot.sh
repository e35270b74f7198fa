#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# boot.sh ARCH KERNEL INITRAMFS RUNS WANT SECONDS CONSOLE: boots a kernel, with what it says in the
# file CONSOLE. RUNS and WANT are for guest.sh and refuses.sh. Prints, if the guest came to its end,
#
#	RELEASE STATUS N passed, N failed[, N skipped]
#
# FBT_ACCEL: kvm or tcg, else what the machine has. Exit status 124 if it was still running.
set -u

arch=$1 kernel=$2 initramfs=$3 runs=$4 want=$5 seconds=$6 console=$7
nonce=$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
line="panic=-1 loglevel=2 fbt.nonce=$nonce fbt.runs=$runs fbt.want=${want// /%}"
accel=${FBT_ACCEL:-tcg}
case $arch in
x86_64)
	machine=(qemu-system-x86_64 -machine q35 -nodefaults)
	cpu=max,la57=off,cx16=off tty=ttyS0
	# On a busy host the timer interrupt comes too late for the kernel's own check, which would
	# panic.
	line+=' no_timer_check'
	;;
arm64)
	machine=(qemu-system-aarch64 -machine virt -nodefaults)
	# Signed return addresses, but without the cipher that is slow to emulate.
	cpu=max,pauth-impdef=on tty=ttyAMA0
	;;
esac
[ "$accel" != kvm ] || cpu=host
# A busy host may give a guest no time for a while, which is no lockup and no hung task. And one
# thread emulates both processors: with two, one may keep running old code that the other patches
# (before QEMU 8.1), and the kernel patches itself for each probe.
if [ "$accel" = tcg ]; then
	accel+=,thread=single
	line+=' watchdog_thresh=60 workqueue.watchdog_thresh=300'
	line+=' sysctl.kernel.hung_task_timeout_secs=600'
fi
command=("${machine[@]}" -accel "$accel" -cpu "$cpu" -smp 2 -m 2048 -display none -serial stdio
	-no-reboot -kernel "$kernel" -initrd "$initramfs" -append "console=$tty $line")
# User-mode Linux is a program, see fetch.sh.
if head -c 4 "$kernel" | grep -q ELF; then
	initramfs=$(realpath "$initramfs") console=$(realpath -m "$console")
	own=$(mktemp -d)
	trap 'rm -rf "$own"' EXIT
	cd "${kernel%/*}" || exit 1
	read -ra words <<<"$line"
	command=(env LD_LIBRARY_PATH=ld64 TMPDIR="$own" "./${kernel##*/}" mem=768M initrd="$initramfs"
		uml_dir="$own/" con=null 'con0=null,fd:1' "${words[@]}")
fi
timeout -k 5 "$seconds" "${command[@]}" </dev/null >"$console" 2>&1
status=$?
tr -d '\r' <"$console" | awk -v nonce="$nonce" '
	$1 == "FBT-BEGIN" && $2 == nonce { release = $3 }
	$1 == "FBT-END" && $2 == nonce { sub(/^FBT-END [0-9a-f]+ /, ""); print release, $0; exit }'
[ $status != 124 ] && [ $status != 137 ] || exit 124

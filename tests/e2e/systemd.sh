#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# `watch` as a service of a real systemd: Debian 12 with our package, booted in a virtual machine, because
# the tool refuses to trace from a PID namespace that is not the machine's. systemd/guest.sh runs inside.
# SUITE=trixie: with the kernel of another release. FBT_ACCEL=kvm: where that boots a plain kernel; emulated
# it takes half an hour. KEEP=FOLDER: the console is copied there.
. "$(dirname "$0")/../live/lib.sh"
# shellcheck source=tests/e2e/package/lib.sh
. tests/e2e/package/lib.sh

SECONDS_MAX=2700
cache=$(dirname "$ROOT_CACHE")
tree=$TMP/tree
for program in qemu-system-x86_64 cpio; do
	command -v $program >/dev/null || skip "there is no $program"
done
[ "$(uname -m)" = x86_64 ] || skip 'the guest is x86-64'

# fail NAME [FILE]
fail()
{
	[ -z "${2:-}" ] || tail -n 20 "$2" | sed 's/^/# /'
	not_ok "$1"
	finish
}

# in_tree COMMAND…
in_tree()
{
	DEBIAN_FRONTEND=noninteractive LC_ALL=C "$TMP/entry" "$@" >"$TMP/log" 2>&1 </dev/null
}

# A Debian 12 with systemd, kept, as nothing in it is ours.
make_base()
{
	local kept=$cache/systemd-bookworm

	(
		flock 8
		[ ! -e "$kept" ] || exit 0
		new_root "$kept.new"
		write_entry "$TMP/entry" "$kept.new"
		# Nothing is started in the tree.
		printf '#!/bin/sh\nexit 101\n' >"$kept.new/usr/sbin/policy-rc.d"
		chmod +x "$kept.new/usr/sbin/policy-rc.d"
		in_tree apt-get -q update &&
			in_tree apt-get -q -y --no-install-recommends install systemd systemd-sysv bpftool procps kmod &&
			mv "$kept.new" "$kept"
	) 8>"$cache/systemd.lock" || {
		rm -rf --one-file-system "$kept.new"
		skip "Debian's archive cannot be reached"
	}
	cp -a "$kept" "$tree"
	cp /etc/resolv.conf "$tree/etc/resolv.conf"
	write_entry "$TMP/entry" "$tree"
}

install_package()
{
	build_package deb
	cp "$DIST"/ferrum-bpftrace_*.deb "$tree/tmp/package.deb"
	in_tree apt-get -q update || skip "Debian's archive cannot be reached"
	in_tree apt-get -q -y --no-install-recommends install /tmp/package.deb || fail 'the package installs' "$TMP/log"
	in_tree dpkg --verify ferrum-bpftrace || fail "the package's files are as it says" "$TMP/log"
	rm -rf "$tree/tmp/package.deb" "$tree/var/cache/apt" "$tree/var/lib/apt/lists" "$tree/usr/share/doc/"[!f]* \
		"$tree/usr/share/locale" "$tree/usr/share/man" "$tree/usr/sbin/policy-rc.d"
	mkdir -p "$tree/var/cache/apt" "$tree/newroot" "$tree/opt/fbt"
	install -m 755 "$FBT_ENGINE" tests/e2e/systemd/guest.sh "$tree/opt/fbt/"
}

# What the guest starts, and what it need not. Each start takes long where all is emulated.
write_units()
{
	local system=$tree/etc/systemd/system unit

	for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
		e2scrub_reap.service fstrim.timer getty.target getty@.service serial-getty@.service \
		console-getty.service systemd-logind.service systemd-firstboot.service systemd-pstore.service \
		systemd-update-utmp.service systemd-udevd.service; do
		ln -sf /dev/null "$system/$unit"
	done
	mkdir -p "$tree/etc/systemd/system.conf.d" "$tree/etc/systemd/journald.conf.d" "$system/multi-user.target.wants"
	printf '[Manager]\nDefaultTimeoutStartSec=600s\nDefaultTimeoutStopSec=300s\n' >"$tree/etc/systemd/system.conf.d/slow.conf"
	printf '[Journal]\nStorage=volatile\nRateLimitIntervalSec=0\n' >"$tree/etc/systemd/journald.conf.d/all.conf"
	od -An -N16 -tx1 /dev/urandom | tr -d ' \n' >"$tree/etc/machine-id"
	echo guest >"$tree/etc/hostname"
	: >"$tree/etc/fstab"
	cat >"$system/fbt-engine.service" <<-'END'
		[Unit]
		Description=An engine
		[Service]
		ExecStart=/opt/fbt/engine --steps 0 --steady --compute-us 2000 --sleep-us 20000
	END
	cat >"$system/fbt-test.service" <<-'END'
		[Unit]
		Description=The test
		[Service]
		Type=exec
		ExecStart=/opt/fbt/guest.sh
	END
	ln -sf ../fbt-test.service "$system/multi-user.target.wants/fbt-test.service"
}

# The tree becomes a tmpfs: services with file systems of their own (ProtectSystem=) cannot have the
# kernel's rootfs as theirs.
make_initramfs()
{
	cat >"$tree/init" <<-'END'
		#!/bin/bash
		export PATH=/usr/sbin:/usr/bin:/sbin:/bin
		mount -t proc proc /proc
		mount -t sysfs sysfs /sys
		mount -t devtmpfs devtmpfs /dev
		mount -t tmpfs -o mode=755,size=80% root /newroot
		for path in /*; do
			case $path in
			/proc | /sys | /dev | /run | /tmp | /newroot | /init) ;;
			*) cp -a "$path" /newroot/ ;;
			esac
		done
		mkdir -p /newroot/{proc,sys,dev,run,tmp}
		chmod 1777 /newroot/tmp
		exec switch_root /newroot /sbin/init
	END
	chmod +x "$tree/init"
	(cd "$tree" && find . -print0 | cpio -0 -o -H newc --quiet) >"$TMP/initramfs" || fail 'the initramfs is made'
	rm -rf --one-file-system "$tree"
}

fetch_kernel()
{
	kernel=$(tests/kernels/fetch.sh kernel x86_64 "${SUITE:-bookworm}" linux-image-cloud-amd64 "$cache/kernels" 2>"$TMP/log")
	case $? in
	0) ;;
	77) skip "$(tail -n 1 "$TMP/log")" ;;
	*) fail 'the kernel is fetched' "$TMP/log" ;;
	esac
}

# boot NONCE: the console is in $TMP/console. As tests/kernels/boot.sh: one emulating thread, and a busy host
# is no lockup.
boot()
{
	local accel=${FBT_ACCEL:-tcg} cpu=max,la57=off,cx16=off
	local line="console=ttyS0 panic=-1 loglevel=2 no_timer_check audit=1 systemd.show_status=0 systemd.firstboot=off fbt.nonce=$1"

	if [ "$accel" = kvm ]; then
		cpu=host
	else
		accel+=,thread=single
		line+=' watchdog_thresh=60 workqueue.watchdog_thresh=300 sysctl.kernel.hung_task_timeout_secs=600'
	fi
	timeout -k 5 $SECONDS_MAX qemu-system-x86_64 -machine q35 -nodefaults -accel "$accel" -cpu "$cpu" -smp 2 -m 3072 \
		-display none -serial stdio -no-reboot -kernel "$kernel" -initrd "$TMP/initramfs" -append "$line" \
		</dev/null >"$TMP/serial" 2>&1
	tr -d '\r' <"$TMP/serial" >"$TMP/console"
	[ -z "${KEEP:-}" ] || { mkdir -p "$KEEP" && cp "$TMP/console" "$KEEP/"; }
}

# The guest's facts are ours.
take_facts()
{
	local line

	while read -r line; do
		case $line in
		'ok - '*) ok "${line#ok - }" ;;
		'not ok - '*) not_ok "${line#not ok - }" ;;
		'#'*) echo "$line" ;;
		esac
	done < <(sed -n "/^FBT-BEGIN $1/,/^FBT-END $1/p" "$TMP/console")
	grep -q "^FBT-END $1" "$TMP/console" || fail 'the guest comes to its end' "$TMP/console"
	ok 'the guest comes to its end'
}

make_base
install_package
write_units
make_initramfs
fetch_kernel
nonce=$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
boot "$nonce"
take_facts "$nonce"
finish

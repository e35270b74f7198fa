#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The Debian package: lintian finds nothing, it installs in a bare Debian 12 with what it depends on,
# doctor and a real trace run there, and it leaves nothing behind when it is purged.
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/../live/lib.sh"
# shellcheck source=tests/e2e/package/lib.sh
. "$PWD/tests/e2e/package/lib.sh"

root=$TMP/root
entry=$TMP/entry
new_root "$root"
write_entry "$entry" "$root" "$SHARED"
build_package deb
deb=$(echo "$DIST"/ferrum-bpftrace_*.deb)
is 'there is one package' "$(ls "$DIST"/*.deb)" "$deb"
is 'its version is that of the tool' "$(dpkg-deb -f "$deb" Version)" "$(packaging/version.sh)"
if command -v lintian >/dev/null; then
	lintian --allow-root --fail-on warning,error "$deb" >"$TMP/lintian" 2>&1
	is 'lintian has no warning and no error' $? 0
	grep -E '^[EW]:' "$TMP/lintian" | sed 's/^/# /'
else
	echo 'SKIP there is no lintian'
fi

# Files of the system; those of the package manager itself change.
list_files()
{
	find "$root" -xdev ! -path "$root/var/lib/dpkg*" ! -path "$root/var/lib/apt*" ! -path "$root/var/cache*" \
		! -path "$root/var/log*" ! -path "$root/tmp*" ! -path "$root$SHARED*" ! -name ld.so.cache -printf '%P\n' | sort
}

in_root()
{
	DEBIAN_FRONTEND=noninteractive LC_ALL=C "$entry" "$@" >"$TMP/log" 2>&1 </dev/null && return
	tail -n 15 "$TMP/log" | sed 's/^/# /'
	return 1
}

in_root apt-get -q update || skip "Debian's archive cannot be reached"
list_files >"$TMP/before"
cp "$deb" "$root/tmp/package.deb"
holds 'it installs in a bare system, with what it depends on' \
	in_root apt-get -q -y --no-install-recommends install /tmp/package.deb
holds 'its files are as it says' in_root dpkg --verify ferrum-bpftrace
in_root ldd /usr/bin/ferrum-bpftrace /usr/lib/ferrum-bpftrace/libferrum_cupti.so /usr/lib/ferrum-bpftrace/libferrum_python.so
is 'no library is missing' "$(grep -c 'not found' "$TMP/log")" 0
for file in man/man8/ferrum-bpftrace.8.gz man/man5/ferrum-bpftrace-profile.5.gz bash-completion/completions/ferrum-bpftrace \
	zsh/site-functions/_ferrum-bpftrace fish/vendor_completions.d/ferrum-bpftrace.fish doc/ferrum-bpftrace/docs/outputs.md; do
	holds "it has $file" test -e "$root/usr/share/$file"
done
dpkg-deb --fsys-tarfile "$deb" | tar -xO --wildcards '*/systemd/system/ferrum-bpftrace.service' >"$TMP/unit" 2>/dev/null
holds 'it has the unit of the service' cmp "$TMP/unit" packaging/ferrum-bpftrace.service

printf '#!/bin/bash\nexec "%s" ferrum-bpftrace "$@"\n' "$entry" >"$TMP/tool"
chmod +x "$TMP/tool"
FBT=$TMP/tool
is 'it says its version' "$("$FBT" --version)" "ferrum-bpftrace $(packaging/version.sh)"
"$FBT" doctor >"$TMP/doctor" 2>&1
is 'doctor finds nothing that would keep it from tracing' $? 0
"$FBT" engine-env >"$TMP/env" 2>&1
has 'it finds its libraries' "$TMP/env" '/usr/lib/ferrum-bpftrace/libferrum_cupti\.so'
trace_engine '--steps 200'
check_truth 'in the bare system'

holds 'it can be purged' in_root apt-get -q -y --auto-remove purge ferrum-bpftrace
rm -f "$root/tmp/package.deb"
list_files >"$TMP/after"
is 'nothing is left' "$(comm -13 "$TMP/before" "$TMP/after")" ''
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Checks the systemd unit and its example configuration: systemd-analyze finds nothing to say, the
# system calls that the tool's own filter lets pass are among those of the unit, the capabilities are
# those of docs/privileges.md, its commands are on each system, and each line of the configuration is accepted.
set -u
cd "$(dirname "$0")/../.." || exit 1

: "${FBT_BUILD:=build/$(uname -m | sed 's/aarch64/arm64/')-gcc}"
: "${FBT:=$FBT_BUILD/ferrum-bpftrace}"
unit=packaging/ferrum-bpftrace.service
example=packaging/ferrum-bpftrace.conf
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
status=0

# state NAME: the fact is that standard input, the complaints, is empty
state()
{
	local found

	found=$(cat)
	[ -z "$found" ] && echo "ok - $1" && return
	printf '%s\n' "$found"
	echo "not ok - $1"
	status=1
}

# calls_of NAME…: system calls, where a name may be that of a set of systemd
calls_of()
{
	local name

	for name; do
		if [ "${name#@}" = "$name" ]; then
			echo "$name"
		else
			# shellcheck disable=SC2046
			calls_of $(systemd-analyze syscall-filter --no-pager "$name" | sed '1d; /^ *#/d')
		fi
	done
}

# The calls that the tool's own filter lets pass whatever their arguments, and seccomp(2), which loads it.
own_calls()
{
	awk '/^#define MEMORY/ { inside = 1 }
		inside
		/^static const char of_network/ { last = 1 }
		last && /;$/ { exit }' user/sandbox/filter.c | grep -o '"[^"]*"' | tr -d '"' | xargs -n 1
	echo seccomp
}

if command -v systemd-analyze >/dev/null; then
	sed "s|/usr/bin/ferrum-bpftrace|$(command -v true)|" "$unit" >"$tmp/ferrum-bpftrace.service"
	systemd-analyze verify --man=no "$tmp/ferrum-bpftrace.service" 2>&1 |
		state 'systemd-analyze verify has nothing to say'
	own_calls | sort -u >"$tmp/own"
	grep -qx perf_event_open "$tmp/own" || echo 'not found in user/sandbox/filter.c' |
		state 'the filter of the tool is read'
	# shellcheck disable=SC2046
	calls_of @default $(sed -n 's/^SystemCallFilter=//p' "$unit") | sort -u >"$tmp/allowed"
	comm -13 "$tmp/allowed" "$tmp/own" | state 'it allows the system calls of the tool'"'"'s own filter'
else
	echo 'ok - # SKIP no systemd-analyze'
fi

# The first row of "What is kept once a window is open", and what perf uprobes require.
sed -n 's/^| \(CAP_BPF, CAP_PERFMON, .*\) | always |$/\1 CAP_SYS_ADMIN/p' docs/privileges.md | tr -d , >"$tmp/page"
sed -n 's/^CapabilityBoundingSet=//p' "$unit" >"$tmp/unit"
{ [ -s "$tmp/page" ] || echo 'not found in docs/privileges.md'; diff "$tmp/page" "$tmp/unit"; } |
	state 'its capabilities are those of docs/privileges.md'

# A minimal Debian has no procps, and so no /bin/kill.
sed -n 's/^Exec[A-Za-z]*=//p' "$unit" | grep -vE '^(/usr/bin/ferrum-bpftrace|/bin/sh) ' |
	state 'its commands are there on a minimal system'

grep '^[A-Za-z]' "$example" | state 'the example sets nothing'
# Each line on its own, beside something to watch. There is no such process: it is not run.
sed -n 's/^#\([a-z-]* = .*\)/\1/p' "$example" >"$tmp/lines"
[ -s "$tmp/lines" ] || echo none | state 'the example has lines'
while read -r line; do
	printf 'comm = x\n%s\nend = here\n' "$line" >"$tmp/x.conf"
	"$FBT" watch --config "$tmp/x.conf" 2>&1 | grep -v "x.conf:3: unknown option 'end'"
done <"$tmp/lines" | state 'each line of the example is accepted'

echo 'cooldwn = 5' >"$tmp/x.conf"
"$FBT" watch --config "$tmp/x.conf" 2>/dev/null
echo $? >"$tmp/status"
sed -n 's/^RestartPreventExitStatus=//p' "$unit" | diff "$tmp/status" - |
	state 'a wrong configuration does not start it again and again'
exit $status

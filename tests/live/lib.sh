# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What the live tests share: sourced first, it goes to the repository's root, skips where there is no
# root or no BTF, and gives a folder $TMP that is removed at the end, with all that was started.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

: "${FBT_BUILD:=build/$(uname -m | sed 's/aarch64/arm64/')-gcc}"
: "${FBT:=$FBT_BUILD/ferrum-bpftrace}"
: "${FBT_ENGINE:=$FBT_BUILD/tests/engine}"
FBT=$(realpath -m "$FBT")
FBT_ENGINE=$(realpath -m "$FBT_ENGINE")
[ "$(id -u)" = 0 ] || { echo 'SKIP needs root' && exit 77; }
[ -r /sys/kernel/btf/vmlinux ] || { echo 'SKIP the kernel has no BTF' && exit 77; }
unset FERRUM_TRACE_OUT FERRUM_PROFILE_JSONL

FAILED=0
TMP=$(mktemp -d)

clean_up()
{
	local pids

	pids=$(jobs -p)
	# shellcheck disable=SC2086
	[ -z "$pids" ] || kill -9 $pids 2>/dev/null
	wait 2>/dev/null
	rm -rf "$TMP"
}
trap clean_up EXIT

ok()
{
	echo "ok - $1"
}

not_ok()
{
	echo "not ok - $1"
	FAILED=1
}

# is NAME GOT WANTED
is()
{
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		echo "# $1: got '$2', wanted '$3'"
		not_ok "$1"
	fi
}

# holds NAME COMMAND…: the fact is that the command succeeds
holds()
{
	local name=$1

	shift
	if "$@"; then
		ok "$name"
	else
		echo "# $name: failed: $*"
		not_ok "$name"
	fi
}

# has NAME FILE REGEX: a line of the file matches
has()
{
	if grep -qE -- "$3" "$2"; then
		ok "$1"
	else
		echo "# $1: no /$3/ in:"
		sed 's/^/#   /' "$2"
		not_ok "$1"
	fi
}

finish()
{
	exit "$FAILED"
}

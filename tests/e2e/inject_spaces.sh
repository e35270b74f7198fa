#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# Programs in other namespaces, of other users, and in a root of their own, with /proc and without.
# Without /proc they cannot be injected, and that does them no harm.
# shellcheck source=tests/e2e/inject/lib.sh
. "$(dirname "$0")/inject/lib.sh"

# make_root FOLDER: puts the program, its libraries and a file to write to there
make_root()
{
	local library

	mkdir -p "$1/proc"
	cp "$TMP/threads" "$1/threads"
	ldd "$TMP/threads" | grep -o '/[^ ]*' >"$TMP/libraries"
	while read -r library; do
		mkdir -p "$1${library%/*}"
		cp "$library" "$1$library"
	done <"$TMP/libraries"
	: >"$1/loads"
}

# child NAME COMMAND…: COMMAND starts another process and ends with its exit status; sets CHILD
child()
{
	start "$@"
	CHILD=$(ps -o pid= --ppid "$STARTED" | tr -d ' ')
}

end_child()
{
	kill "$CHILD"
	wait "$STARTED"
	is "$1 ends in order" $? 0
	facts "$1"
}

check_namespaces()
{
	local all=(--user --map-root-user --pid --mount --fork --mount-proc --net --ipc --uts)

	if ! unshare "${all[@]}" true 2>"$TMP/unshare"; then
		echo "SKIP no namespaces of a user: $(head -n 1 "$TMP/unshare")"
		return
	fi
	child namespaces unshare "${all[@]}" "$TMP/threads"
	holds 'it is process 1 there' grep -qE '^NSpid:.*\b1$' "/proc/$CHILD/status"
	inject namespaces "$CHILD"
	end_child namespaces
	child 'our proc' unshare --pid --fork "$TMP/threads"
	inject 'our proc' "$CHILD"
	end_child 'our proc'
}

check_user()
{
	start 'another user' setpriv --reuid 65534 --regid 65534 --clear-groups "$TMP/threads"
	inject 'another user' "$STARTED"
	end 'another user' "$STARTED"
}

# The root's /proc is mounted in a namespace that ends with the process.
check_root()
{
	local ours=$LOADS

	LOADS=$TMP/root/loads
	start root env INJECT_PROBE_FILE=/loads unshare --mount bash -c \
		"mount -t proc proc '$TMP/root/proc' && exec chroot '$TMP/root' /threads"
	inject root "$STARTED"
	end root "$STARTED"
	start 'root without proc' env INJECT_PROBE_FILE=/loads chroot "$TMP/root" /threads
	inject_not 'root without proc' "$STARTED" 'refused|failed'
	end 'root without proc' "$STARTED"
	LOADS=$ours
}

command -v g++ >/dev/null || skip 'g++ is not installed'
build_threads "$TMP/threads"
make_root "$TMP/root"
check_namespaces
check_user
check_root
finish

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# enter.sh ROOT PROGRAM [ARGUMENT]…: runs a program of another root, with this machine's /proc, /dev, /tmp,
# working folder and home, in a mount namespace of its own, as a container's process. Its PID stays that of the
# caller's child.
export ENTER_ROOT=$1
shift
# shellcheck disable=SC2016
exec unshare -m /bin/bash -c '
	for at in /proc /dev /tmp "/$(cut -d/ -f2 <<<"$PWD")" "/$(cut -d/ -f2 <<<"$HOME")"; do
		mkdir -p "$ENTER_ROOT$at" && mount --rbind "$at" "$ENTER_ROOT$at" || exit 1
	done
	exec unshare --root="$ENTER_ROOT" --wd="$PWD" "$@"' enter "$@"

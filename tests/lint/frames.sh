#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The programs that run at each system call use at most 48 bytes of stack: from 49 on Linux 6.13 and
# later give them one of their own, with two instructions around each call of a helper for it.
set -u
cd "$(dirname "$0")/../.." || exit 1

object=${FBT_BUILD:?}/trace.bpf.o
status=0

# used SECTION: the offsets from the frame pointer at which its programs use their stack
used()
{
	llvm-objdump -d --no-show-raw-insn -j "$1" "$object" |
		awk '/r[0-9] = r10$/ {of[$2] = 1; next}
			match($0, /r10 - [0-9a-fx]+/) {print substr($0, RSTART + 6, RLENGTH - 6)}
			match($0, /r[0-9] \+= -/) && of[$2] {print substr($0, RSTART + RLENGTH); of[$2] = 0}'
}

for program in sys_enter sys_exit; do
	most=0
	while read -r offset; do
		[ $((offset)) -le $most ] || most=$((offset))
	done < <(used raw_tp/$program)
	if [ $most -gt 0 ] && [ $most -le 48 ]; then
		echo "ok - $program uses at most 48 bytes of stack"
	else
		echo "not ok - $program uses at most 48 bytes of stack"
		echo "raw_tp/$program of $object: $most bytes"
		status=1
	fi
done
exit $status

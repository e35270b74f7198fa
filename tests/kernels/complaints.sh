#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The last test in a guest: the kernel has reported no problem during all tests before it.
complaints=$(dmesg | grep -E 'WARNING: |BUG: |Oops|general protection|soft lockup|blocked for more than|refcount_t|unable to handle')
if [ -z "$complaints" ]; then
	echo 'ok - the kernel complained of nothing'
else
	dmesg | grep -A 25 -E 'WARNING: |BUG: |Oops|general protection' | sed 's/^/# /'
	echo "not ok - the kernel complained: ${complaints%%$'\n'*}"
	exit 1
fi

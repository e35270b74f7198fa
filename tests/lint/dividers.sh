#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# No comment is a rule across the page, as `--- name ---` is: what needs parts is several files.
set -u
cd "$(dirname "$0")/../.." || exit 1

if grep -rnE --include='*.[ch]' '^[[:space:]]*(/\*|//)[[:space:]]*[-=*#~]{3,}|(/\*|//).*[-=*#~]{4,}[[:space:]]*(\*/)?$' \
	user cupti bpf python include tests; then
	echo 'not ok - no comment divides a file'
	exit 1
fi
echo 'ok - no comment divides a file'

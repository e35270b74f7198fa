#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
set -u
cd "$(dirname "$0")/../.." || exit 1

if find packaging tests .ci -name node_modules -prune -o \
	\( -name '*.sh' -o -path .ci/run \) -print0 |
	xargs -0 -P "$(nproc)" -n 4 shellcheck -x -P SCRIPTDIR -s bash; then
	echo 'ok - shellcheck has nothing to say'
else
	echo 'not ok - shellcheck has nothing to say'
	exit 1
fi

#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The Python functions of threads, read from outside, in each interpreter of this machine: what a script says
# of itself is the truth.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/python/lib.sh
. tests/live/python/lib.sh

while read -r _ path; do
	python3 tests/live/python_frames.py "$path" "$FBT_BUILD/tests/live_python_frames" \
		"$(at_length 2000 10000)" || FAILED=1
done < <(interpreters)
finish

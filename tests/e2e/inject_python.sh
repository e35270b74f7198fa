#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# python3 is injected again and again: a dozen threads that wait in different ways, with an alarm
# 100 times a second; and one event loop.
# shellcheck source=tests/e2e/inject/lib.sh
. "$(dirname "$0")/inject/lib.sh"

find_python
for program in threads asyncio; do
	start "python-$program" "$PYTHON" "$PARTS/python_$program.py"
	inject "python-$program" "$STARTED"
	# Signal handlers run in the first thread.
	inject "python-$program, first thread" "$STARTED" -t "$STARTED"
	end "python-$program" "$STARTED"
done
finish

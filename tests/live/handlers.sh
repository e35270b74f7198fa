#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The time of signal handlers, compared with a program that asks the kernel how long they ran.
. "$(dirname "$0")/lib.sh"

start_program handlers 40
attach --step handlers_step
go
wait "$ENGINE"
stop_tool
python3 tests/live/handlers.py "$TMP/truth.json" "$OUT.profile" || FAILED=1
finish

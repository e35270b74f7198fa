#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# llama.cpp 0.5 of npm under load: healthy, and stopped, debugged, without a CPU, and limited. See
# lib/trouble.sh. Other programs may run at the same time; the kernel's counters tell when they take
# its CPUs.
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/../live/lib.sh"

HERE=$PWD/tests/e2e
# shellcheck source=tests/e2e/lib/engine.sh
. "$HERE/lib/engine.sh"
# shellcheck source=tests/e2e/lib/trouble.sh
. "$HERE/lib/trouble.sh"

NAME='llama.cpp 0.5'
LOAD_ARGS=()
[ -x "$FBT" ] || skip "no $FBT: build it first"
install_engine
start_server 1
check_healthy 600
check_trouble
holds "$NAME serves on when the tool has gone" node "$HERE/load.mjs" "$PORT" 2 2 4
kill "$PID"
wait "$PID"
is "$NAME ends well on SIGTERM" $? 0
finish

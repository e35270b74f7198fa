#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# The command top of all processes (-a), and with GPU records.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/live/gpu/lib.sh
. tests/live/gpu/lib.sh
# shellcheck source=tests/live/top/lib.sh
. tests/live/top/lib.sh

new_engine
first=$ENGINE
new_engine
TARGETS='-a --step engine_step'
start 100 30
holds '-a: steps of the first engine' await on_page "^$first e.*step work "
holds '-a: and of the second' await on_page "^$ENGINE e.*step work "
page >"$TMP/page"
has '-a: the title says that there are more' "$TMP/page" 'ferrum-bpftrace top .*\] \+[1-9][0-9]* '
press q
restored -a
kill -TERM "$first" "$ENGINE"
wait "$first" "$ENGINE"

start_gpu --steps 0 --sleep-us 5000 --script k500,h20,z1000,s
go
TARGETS="-p $ENGINE --step gpu_engine_step"
PATTERN='GPU busy [0-9.]+ %'
start 140 30
holds 'GPU: the headline says how busy it was' on_page "$PATTERN"
kill -USR1 "$(top_pid)"
holds 'GPU: SIGUSR1 escalates a step' await on_page 'SLOW STEPS newest first, [1-9]'
press e
holds 'GPU: e says for how long it was busy' await on_page 'gap before it .*, GPU busy [0-9.]+ (us|ms)'
press Escape q
restored GPU
is 'its own filter refused nothing' "$(grep -c refused "$TMP/err")" 0
end_gpu
finish

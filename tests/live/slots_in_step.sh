#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
# What threads have done before they were traced is in no step, also in one that was open when they
# got their slots.
. "$(dirname "$0")/lib.sh"

start_program slots_in_step
attach --step my_step --detail steps
await_lines 10 '"total":[2-9][0-9]{4}' "$OUT.profile"
go
wait "$ENGINE"
stop_tool
fact 'there are steps that know what the other threads did' \
	"any('other_threads_cpu' in s['us'] for s in S)"
none 'none has more of their CPU time than there was' \
	"[(s['step'], s['us']) for s in S if s['us'].get('other_threads_cpu', 0) > $(nproc) * s['us']['total'] + 10000]"
finish

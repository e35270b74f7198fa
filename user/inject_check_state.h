/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What speaks against an injection by the state a process and its threads are in. */
#ifndef FBT_INJECT_CHECK_STATE_H
#define FBT_INJECT_CHECK_STATE_H

#include "inject_verdict.h"

/* Whether tgid is a process with a memory of its own that goes on. Read by anyone. 0 or -ESRCH. */
int inject_check_process(struct inject_verdict *verdict, uint32_t tgid, uint32_t thread);

/* Another tracer, a stop, a frozen cgroup, seccomp, cancelled threads, shadow stacks. */
void inject_check_state(struct inject_verdict *verdict, uint32_t tgid, uint32_t thread);

#endif

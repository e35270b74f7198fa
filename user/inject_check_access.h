/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Whether we may write to a process's memory, and if not, why. */
#ifndef FBT_INJECT_CHECK_ACCESS_H
#define FBT_INJECT_CHECK_ACCESS_H

#include "inject_verdict.h"

/* By ptrace's rules (ptrace(2), "access mode checking"). 0, -EPERM: refused; or -ESRCH. */
int inject_check_access(struct inject_verdict *verdict, uint32_t tgid, uint32_t thread);

/*
 * What to do where the kernel said no. scope: kernel.yama.ptrace_scope, -1 there is none; capable:
 * we have CAP_SYS_PTRACE. Static.
 */
const char *inject_access_advice(int scope, bool capable);

/* Namespaces of its own, and whether /proc, by which the library is loaded, is there. */
void inject_check_namespaces(struct inject_verdict *verdict, uint32_t tgid, uint32_t thread);

#endif

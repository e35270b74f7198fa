/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What this process may do, and what this kernel can, before anything is loaded. */
#ifndef FBT_PRIVILEGE_H
#define FBT_PRIVILEGE_H

/*
 * 0 if BPF tracing can work here; else -EPERM or -EOPNOTSUPP with one line logged that names the
 * missing capability, BTF, kernel version or PID namespace and what to do.
 */
int privilege_check(void);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What the seccomp filters of a thread say to the system calls that stub, helper and shim make:
 * reads them out of the kernel (PTRACE_SECCOMP_GET_FILTER) and runs them here.
 */
#ifndef FBT_INJECT_SECCOMP_H
#define FBT_INJECT_SECCOMP_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>

/*
 * Runs a classic BPF program of seccomp(2) over data: 0 and what it returns; -EINVAL if it is none
 * that the kernel would have taken.
 */
int inject_seccomp_run(const struct sock_filter *filter, uint32_t count,
		       const struct seccomp_data *data, uint32_t *action);

/*
 * The thread is stopped and ours. 0: all calls are allowed; -EPERM: call, a static name, is not,
 * and would be answered as action says (SECCOMP_RET_…); -EACCES: the filters may not be read
 * (CAP_SYS_ADMIN, a kernel without CONFIG_CHECKPOINT_RESTORE, or we are filtered ourselves);
 * -errno.
 */
int inject_seccomp_check(uint32_t tid, const char **call, uint32_t *action);

#endif

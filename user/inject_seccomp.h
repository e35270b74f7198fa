/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What the seccomp filters of a thread say to the system calls that stub, helper and shim make:
 * reads them out of the kernel (PTRACE_SECCOMP_GET_FILTER) and runs them here.
 */
#ifndef FBT_INJECT_SECCOMP_H
#define FBT_INJECT_SECCOMP_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Runs a classic BPF program of seccomp(2) over data: 0 and what it returns; -EINVAL if it is none
 * that the kernel would have taken.
 */
int inject_seccomp_run(const struct sock_filter *filter, uint32_t count,
		       const struct seccomp_data *data, uint32_t *action);

/*
 * The same with all filters of a thread, which it has put on in this order: what the kernel does,
 * the most restrictive action, with the data of the filter that asks for it. An action that the
 * kernel does not know is SECCOMP_RET_KILL_PROCESS, as there.
 */
int inject_seccomp_run_all(const struct sock_fprog *filters, size_t count,
			   const struct seccomp_data *data, uint32_t *action);

/*
 * What they say to all calls of inject_calls.h: 0 they may be made, or fail where that does no
 * harm; -EPERM: call (a static name) may not, and would be answered as action says; -EINVAL.
 */
int inject_seccomp_judge(const struct sock_fprog *filters, size_t count, const char **call,
			 uint32_t *action);

/*
 * The same for a thread that is stopped and ours. 0, also where it has no filter; -EPERM; -EACCES:
 * the filters may not be read (CAP_SYS_ADMIN, a kernel without CONFIG_CHECKPOINT_RESTORE, or we are
 * filtered ourselves); -errno.
 *
 * Where they do not allow restart_syscall, a thread that is stopped with rax = -516, for which the
 * kernel would do that call, is made to begin its own call anew (-514): its time-out too.
 */
int inject_seccomp_check(uint32_t tid, const char **call, uint32_t *action);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What a thread's seccomp filters answer to the system calls that the stub, the helper and the shim
 * make. The filters are read from the kernel (PTRACE_SECCOMP_GET_FILTER) and interpreted here.
 */
#ifndef FBT_INJECT_FILTERS_H
#define FBT_INJECT_FILTERS_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Runs one seccomp filter, a classic BPF program, over data. 0 and its action; or -EINVAL for a
 * program that the kernel would not have accepted (its bpf_check_classic() and
 * seccomp_check_filter()).
 */
int inject_seccomp_run(const struct sock_filter *filter, uint32_t count,
		       const struct seccomp_data *data, uint32_t *action);

/*
 * Runs all filters of a thread, oldest first. *action is what the kernel would do: the most
 * restrictive of their actions, with the data of the filter that returned it. An unknown action
 * becomes SECCOMP_RET_KILL_PROCESS.
 */
int inject_seccomp_run_all(const struct sock_fprog *filters, size_t count,
			   const struct seccomp_data *data, uint32_t *action);

/*
 * Runs the filters for each call of inject_calls. 0: every call is allowed, or its failure does no
 * harm. -EPERM: *call (a static name) is not allowed, and the filters answer it with *action.
 * -EINVAL: as above.
 */
int inject_seccomp_judge(const struct sock_fprog *filters, size_t count, const char **call,
			 uint32_t *action);

/*
 * inject_seccomp_judge for a thread that we have stopped. 0 also if the thread has no filter.
 * -EACCES: the filters cannot be read (CAP_SYS_ADMIN is missing, the kernel lacks
 * CONFIG_CHECKPOINT_RESTORE, or we have a filter ourselves). -errno.
 *
 * A thread that was stopped with rax = -516 would be restarted by restart_syscall. If the filters
 * do not allow that call, rax is set to -514, so that the kernel restarts the original call
 * instead. The time-out of that call then starts again.
 */
int inject_seccomp_check(uint32_t tid, const char **call, uint32_t *action);

/* What happens if a filter answers the call with an error. */
enum inject_need {
	INJECT_NEEDED,	/* the shim or the thread cannot do without the call */
	INJECT_IGNORED, /* nothing: the result is not used, or there is a fallback */
	INJECT_OR_NEXT, /* after any error the next call of the list is made instead */
	/* The same, but only after this error. */
	INJECT_OR_NEXT_IF_ENOSYS,
	INJECT_OR_NEXT_IF_EINVAL,
};

struct inject_call {
	const char *name;
	uint32_t nr;
	enum inject_need need;
	uint64_t args[6];
};

/*
 * The system calls from the diversion of a thread to a working shim: those of the stub
 * (cupti/stub), of glibc's pthread_create, dlopen and thread exit, and of the shim and CUPTI. They
 * are as strace shows them, with arguments that a filter may check. Public because only a process
 * that is killed for every other call proves the list complete (tests/live/inject_seccomp.c).
 */
const struct inject_call *inject_calls(size_t *count);

#endif

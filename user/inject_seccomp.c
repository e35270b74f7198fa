/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_seccomp.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/audit.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include "inject_calls.h"
#include "inject_filter.h"
#include "vec.h"

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#error "AUDIT_ARCH of this processor"
#endif

#ifndef PTRACE_SECCOMP_GET_FILTER
#define PTRACE_SECCOMP_GET_FILTER 0x420c
#endif

/* What the kernel means by the rax of a call that was interrupted (its linux/errno.h). */
#define ERESTARTNOHAND	      514
#define ERESTART_RESTARTBLOCK 516

#define STRICT	 1
#define FILTERED 2

typedef VEC(struct sock_fprog) program_vec;

int inject_seccomp_run(const struct sock_filter *filter, uint32_t count,
		       const struct seccomp_data *data, uint32_t *action)
{
	if (!inject_filter_is_valid(filter, count))
		return -EINVAL;
	*action = inject_filter_run(filter, data);
	return 0;
}

/* The kernel's order of precedence: as signed numbers, lower ones win. */
static int32_t precedence(uint32_t action)
{
	return (int32_t)(action & SECCOMP_RET_ACTION_FULL);
}

static uint32_t normalize(uint32_t action)
{
	switch (action & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_KILL_PROCESS:
	case SECCOMP_RET_KILL_THREAD:
	case SECCOMP_RET_TRAP:
	case SECCOMP_RET_ERRNO:
	case SECCOMP_RET_USER_NOTIF:
	case SECCOMP_RET_TRACE:
	case SECCOMP_RET_LOG:
	case SECCOMP_RET_ALLOW:
		return action;
	default:
		return SECCOMP_RET_KILL_PROCESS;
	}
}

static bool are_valid(const struct sock_fprog *filters, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!inject_filter_is_valid(filters[i].filter, filters[i].len))
			return false;
	}
	return true;
}

static uint32_t run_all(const struct sock_fprog *filters, size_t count,
			const struct seccomp_data *data)
{
	uint32_t winner = SECCOMP_RET_ALLOW;

	/* The latest first: of equal ones its data counts. */
	for (size_t i = count; i-- > 0;) {
		uint32_t action = inject_filter_run(filters[i].filter, data);

		if (precedence(action) < precedence(winner))
			winner = action;
	}
	return normalize(winner);
}

int inject_seccomp_run_all(const struct sock_fprog *filters, size_t count,
			   const struct seccomp_data *data, uint32_t *action)
{
	if (!are_valid(filters, count))
		return -EINVAL;
	*action = run_all(filters, count, data);
	return 0;
}

static bool is_allowed(uint32_t action)
{
	action &= SECCOMP_RET_ACTION_FULL;
	return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
}

/* Whether the program is told an error. With number 0 it is told that it is done, which it is not.
 */
static bool is_error(uint32_t action)
{
	return (action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO &&
	       (action & SECCOMP_RET_DATA);
}

static bool is_harmless(enum inject_need need, uint32_t action)
{
	uint32_t error = action & SECCOMP_RET_DATA;

	if (!is_error(action))
		return false;
	switch (need) {
	case INJECT_IGNORED:
	case INJECT_OR_NEXT:
		return true;
	case INJECT_OR_NEXT_IF_ENOSYS:
		return error == ENOSYS;
	case INJECT_OR_NEXT_IF_EINVAL:
		return error == EINVAL;
	default:
		return false;
	}
}

static uint32_t answer(const struct sock_fprog *filters, size_t count,
		       const struct inject_call *call)
{
	struct seccomp_data data = {.nr = (int)call->nr, .arch = OUR_ARCH};

	for (int arg = 0; arg < 6; arg++)
		data.args[arg] = call->args[arg];
	return run_all(filters, count, &data);
}

int inject_seccomp_judge(const struct sock_fprog *filters, size_t count, const char **call,
			 uint32_t *action)
{
	const struct inject_call *calls;
	size_t call_count;

	if (!are_valid(filters, count))
		return -EINVAL;
	calls = inject_calls(&call_count);
	for (size_t i = 0; i < call_count; i++) {
		*action = answer(filters, count, &calls[i]);
		if (is_allowed(*action)) {
			while (calls[i].need >= INJECT_OR_NEXT)
				i++;
			continue;
		}
		if (!is_harmless(calls[i].need, *action)) {
			*call = calls[i].name;
			return -EPERM;
		}
	}
	return 0;
}

/* Of /proc/TID/status; that file is there for every thread. A kernel without filters has no line.
 */
static uint32_t read_mode(uint32_t tid)
{
	char path[32], line[256];
	uint32_t mode = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", tid);
	file = fopen(path, "re");
	if (!file)
		return FILTERED;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Seccomp: %" SCNu32, &mode) == 1)
			break;
	}
	fclose(file);
	return mode;
}

/* The kernel counts from the first that was put on. 0, -ENOENT there is no such one, -errno. */
static int read_program(struct sock_fprog *program, uint32_t tid, size_t index)
{
	long length = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, index, NULL);

	if (length < 0)
		return -errno;
	if (!length || length > BPF_MAXINSNS)
		return -EINVAL;
	program->filter = calloc((size_t)length, sizeof(*program->filter));
	if (!program->filter)
		return -ENOMEM;
	program->len = (unsigned short)length;
	/* It is stopped: nobody else can put one on (SECCOMP_FILTER_FLAG_TSYNC) between these two
	 * and make it longer, for the filters that are there stay. */
	if (ptrace(PTRACE_SECCOMP_GET_FILTER, tid, index, program->filter) == length)
		return 0;
	free(program->filter);
	return -EIO;
}

static int read_programs(program_vec *programs, uint32_t tid)
{
	int err = 0;

	for (size_t i = 0; !err; i++) {
		struct sock_fprog program = {0};

		err = read_program(&program, tid, i);
		if (err)
			break;
		err = vec_push(programs, program);
		if (err)
			free(program.filter);
	}
	return err == -ENOENT ? 0 : err;
}

#if defined(__x86_64__)

/* Also where the filters could not be read: nothing is known of them then. */
static void spare_restart(uint32_t tid, const struct sock_fprog *filters, size_t count)
{
	static const struct inject_call restart = {.name = "restart_syscall",
						   .nr = SYS_restart_syscall};
	struct user_regs_struct regs;
	struct iovec vec = {&regs, sizeof(regs)};

	if (count && are_valid(filters, count) && is_allowed(answer(filters, count, &restart)))
		return;
	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &vec) ||
	    (int64_t)regs.rax != -ERESTART_RESTARTBLOCK || regs.orig_rax == SYS_restart_syscall)
		return;
	regs.rax = (uint64_t)-ERESTARTNOHAND;
	ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &vec);
}

#else

static void spare_restart(uint32_t tid, const struct sock_fprog *filters, size_t count)
{
	(void)tid;
	(void)filters;
	(void)count;
}

#endif

int inject_seccomp_check(uint32_t tid, const char **call, uint32_t *action)
{
	uint32_t mode = read_mode(tid);
	program_vec programs = {0};
	int err;

	if (!mode)
		return 0;
	if (mode == STRICT) {
		*call = "mmap";
		*action = SECCOMP_RET_KILL_THREAD;
		return -EPERM;
	}
	err = read_programs(&programs, tid);
	if (!err && !programs.count)
		err = -EACCES; /* it has some, by its status */
	if (!err)
		err = inject_seccomp_judge(programs.items, programs.count, call, action);
	else if (err == -EINVAL || err == -EMEDIUMTYPE || err == -EIO || err == -EPERM)
		err = -EACCES;
	if (err)
		spare_restart(tid, programs.items, programs.count);
	vec_for_each (program, &programs)
		free(program->filter);
	vec_free(&programs);
	return err;
}

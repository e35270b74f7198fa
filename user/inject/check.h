/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Checks whether the shim can be put into a running process. The checks only read: nothing is
 * stopped, nothing is written.
 *
 * A new reason to refuse is a check that calls inject_refuse. check_all (check.c) calls it; if it
 * is about CUDA inject_check_cuda (check_program.c), about Python inject_check_python
 * (python_use.c). What is known only of a stopped thread, such as its seccomp filters, is refused
 * in take.c.
 */
#ifndef FBT_INJECT_CHECK_H
#define FBT_INJECT_CHECK_H

#include "inject/place.h"
#include "inject/verdict.h"
#include "proc/status.h"

/* A process under check. */
struct inject_target {
	struct proc_ref process;
	int pidfd;
	struct thread_stat identity; /* when the process began, and where its program is */
	struct inject_place place;
};

/* What a library is injected for. */
enum inject_purpose {
	INJECT_FOR_ANY,	 /* tests, which inject other libraries */
	INJECT_FOR_CUDA, /* refuses a process without libcuda, leaves one that has the shim alone */
	INJECT_FOR_PYTHON, /* the same for CPython and libferrum_python.so */
};

/*
 * Fills target and verdict. The caller clears both, whatever is returned.
 *
 * 0: an injection may be tried. If verdict->present is set, the shim is there already and nothing
 * else was checked. On failure verdict has the reason: -EPERM the process is refused; -ESRCH the
 * process has ended; -errno.
 */
int inject_check(struct inject_target *target, struct inject_verdict *verdict, uint32_t tgid,
		 enum inject_purpose purpose);
void inject_target_clear(struct inject_target *target);

/*
 * Whether the target is still the same process and program. Without ASLR a program that calls
 * execve on itself looks the same, so the stub is compared again before a thread is sent to it.
 */
bool inject_target_is_there(const struct inject_target *target);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Whether the shim can be put into a running process, found out from outside: nothing is stopped,
 * nothing is written.
 */
#ifndef FBT_INJECT_CHECK_H
#define FBT_INJECT_CHECK_H

#include "inject_place.h"
#include "inject_verdict.h"

/* A process as it is addressed from here on. */
struct inject_target {
	uint32_t tgid;
	uint32_t thread; /* a living one, for /proc: the first one may have ended */
	int pidfd;
	uint64_t start_ticks; /* field 22 of /proc/TGID/stat, see proc(5) */
	uint64_t start_code;  /* fields 26 and 28: they change with execve */
	uint64_t start_stack;
	struct inject_place place;
};

/*
 * Fills target and verdict; the caller clears both, whatever is returned. need_cuda: a process
 * without libcuda, or with the shim, is refused or left alone (else any library may be injected, as
 * tests do). 0: it may be tried, unless verdict says that the shim is present: then nothing else
 * was looked at. Else verdict says why not: -EPERM; -ESRCH it has ended; -errno.
 */
int inject_check(struct inject_target *target, struct inject_verdict *verdict, uint32_t tgid,
		 bool need_cuda);
void inject_target_clear(struct inject_target *target);

/*
 * Whether it is still that process, and the same program. Without ASLR a program that calls execve
 * with itself is the same: that the stub is gone is to be seen before a thread is sent to it.
 */
bool inject_target_is_there(const struct inject_target *target);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What /proc/TGID/task/TID/status and /proc/TGID/task/TID/limits say (proc(5)). */
#ifndef FBT_INJECT_STATUS_H
#define FBT_INJECT_STATUS_H

#include <stdbool.h>
#include <stdint.h>

struct inject_status {
	uint32_t tgid;
	char state;	  /* R, S, D, T (stopped), t (by a tracer), Z, X */
	uint32_t tracer;  /* pid; 0: none, or not of this PID namespace */
	uint32_t uid;	  /* real */
	uint32_t seccomp; /* SECCOMP_MODE_…, linux/seccomp.h */
	bool no_new_privs;
	bool shadow_stack;
	uint64_t caught;   /* signals with a handler; bit 0 is signal 1 */
	uint64_t size_kib; /* address space */
	uint64_t data_kib; /* private and writable */
	uint32_t threads;
};

/* Takes in one line of it; what it does not know is left alone. */
void inject_status_add(struct inject_status *status, const char *line);

/* 0; -ESRCH the thread is gone, -errno; without a message. */
int inject_status_read(struct inject_status *status, uint32_t tgid, uint32_t tid);

#define INJECT_UNLIMITED UINT64_MAX

/* The soft limit of that line ("Max open files"); INJECT_UNLIMITED also where it is not known. */
uint64_t inject_limit_read(uint32_t tgid, uint32_t thread, const char *name);

#endif

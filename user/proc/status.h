/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Reads stat, status, limits and cgroup of a thread in /proc (proc(5), cgroups(7)). */
#ifndef FBT_PROC_STATUS_H
#define FBT_PROC_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include "proc/open.h"

/* Bits of thread_stat.flags, PF_* of the kernel. */
#define THREAD_EXITING 0x00000004u
#define THREAD_FORKED  0x00000040u /* no execve since the fork: PF_FORKNOEXEC */
#define THREAD_KERNEL  0x00200000u

struct thread_stat {
	char state; /* R, S, D, T, Z, … */
	uint32_t parent_tgid;
	uint32_t flags;
	uint64_t start_ticks; /* since boot, sysconf(_SC_CLK_TCK) per second */
	uint64_t start_code;  /* this address and the next change with execve(2) */
	uint64_t start_stack;
	int32_t nice;
	uint32_t policy; /* SCHED_*, sched(7) */
	uint32_t cpu;	 /* that it runs on, or ran on last */
};

/* 0, -ESRCH if the thread has ended, or another -errno; without a message. */
int thread_stat_read(struct thread_stat *stat, struct proc_ref ref);

struct thread_status {
	uint32_t tgid;
	char state;	  /* R, S, D, T (stopped), t (by a tracer), Z, X */
	uint32_t tracer;  /* pid; 0: none, or in another PID namespace */
	uint32_t uid;	  /* real */
	uint32_t seccomp; /* SECCOMP_MODE_…, linux/seccomp.h; 0 also on a kernel without filters */
	uint32_t seccomp_filters;
	bool no_new_privs;
	bool shadow_stack;
	uint64_t caught;   /* signals with a handler; bit 0 is signal 1 */
	uint64_t size_kib; /* address space */
	uint64_t data_kib; /* private and writable */
	/* Code that is mapped and not writable: of the program itself, and all else. */
	uint64_t exe_kib;
	uint64_t lib_kib;
	uint32_t threads;
	uint64_t voluntary_switches; /* how often the thread gave up its CPU to wait */
	uint32_t ns_depth;	     /* nested PID namespaces, from that of /proc; 0: not known */
	uint32_t ns_tid;	     /* its thread ID in the innermost one */
};

/* Parses one line of the file. A line with other facts changes nothing. */
void thread_status_add(struct thread_status *status, const char *line);

/* 0, -ESRCH if the thread has ended, or another -errno; without a message. */
int thread_status_read(struct thread_status *status, struct proc_ref ref);

#define LIMIT_NONE UINT64_MAX

/* The soft limit with that name ("Max open files"); LIMIT_NONE also if it is not known. */
uint64_t limit_read(struct proc_ref ref, const char *name);

/*
 * Whether the cgroup of the thread is frozen, in either version of cgroups mounted below
 * /sys/fs/cgroup; false also if that is not known.
 */
bool cgroup_is_frozen(struct proc_ref ref);

/* How many more threads pids.max allows the process; UINT64_MAX if no limit, or not known. */
uint64_t cgroup_threads_left(struct proc_ref ref);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What a process is, and whether it may be looked at. */
#ifndef FBT_DOCTOR_PROCESS_H
#define FBT_DOCTOR_PROCESS_H

#include "doctor_check.h"

#define DOCTOR_COMM_MAX 64

struct doctor_process {
	uint32_t tgid;
	bool may_trace; /* we have CAP_SYS_PTRACE */
	int err;	/* of reading its memory map: 0, or -errno, and words say why */
	struct doctor_words words;
	char comm[DOCTOR_COMM_MAX];
	char exe[512];
	bool replaced; /* exe is not that file any more */
	uint32_t uid;
	uint32_t own_uid;
	uint32_t threads;
	char state;	 /* of its first living thread, as in /proc/PID/stat */
	uint32_t tracer; /* of that thread; 0: none */
	char tracer_comm[DOCTOR_COMM_MAX];
	uint32_t inner_pid; /* in its own PID namespace; 0: it has none */
};

/* Reads /proc; the process notices nothing. */
void doctor_process_read(struct doctor_process *process, uint32_t tgid);

/* Pure. */
void doctor_process_judge(const struct doctor_process *process, struct doctor_checks *checks);

/* The name of a process from /proc, "" if it cannot be read. */
void doctor_process_comm(uint32_t tgid, char comm[DOCTOR_COMM_MAX]);

#endif

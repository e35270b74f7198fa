/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Processes of this machine that look like an engine, so that the user knows whom to name. */
#ifndef FBT_DOCTOR_ENGINES_H
#define FBT_DOCTOR_ENGINES_H

#include "doctor_check.h"
#include "doctor_process.h"

#define DOCTOR_ENGINES_MAX 8

struct doctor_engine {
	uint32_t tgid;
	char comm[DOCTOR_COMM_MAX];
	char steps[256]; /* known step functions in it; "": none */
	bool cuda;	 /* it has libcuda */
};

struct doctor_engines {
	struct doctor_engine items[DOCTOR_ENGINES_MAX];
	size_t count;
	size_t more;	   /* found, and not listed */
	size_t not_looked; /* processes: the time was over */
};

/* Reads /proc and the files of processes for about budget_ns of CPU time at most. */
void doctor_engines_find(struct doctor_engines *engines, uint64_t budget_ns);

/* Pure. */
void doctor_engines_judge(const struct doctor_engines *engines, struct doctor_checks *checks);

#endif

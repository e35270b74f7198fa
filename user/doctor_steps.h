/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Where the steps of a process would begin and end. */
#ifndef FBT_DOCTOR_STEPS_H
#define FBT_DOCTOR_STEPS_H

#include "doctor_check.h"
#include "doctor_trial.h"
#include "options.h"
#include "step_function.h"

/* Candidates that are named where nothing is known. */
#define DOCTOR_CANDIDATES_MAX 4

struct doctor_steps {
	/* What was asked for. */
	bool named; /* by --step */
	bool waits; /* --wait-step */
	uint64_t interval_ns;
	/* What was found. */
	int found; /* number of functions, or -errno, and words say why */
	struct doctor_words words;
	function_vec functions;	 /* that -p would probe */
	function_vec candidates; /* that look like a step, if there are no functions */
	bool stripped;		 /* the program has no symbols of its own functions */
	int probe_err;		 /* the kernel does not take probes on functions: -errno, words */
};

/* Reads the process's files; the process notices nothing. */
void doctor_steps_read(struct doctor_steps *steps, uint32_t tgid, const struct options *options,
		       struct doctor_trial *trial);
void doctor_steps_clear(struct doctor_steps *steps);

/* Pure. */
void doctor_steps_judge(const struct doctor_steps *steps, uint32_t tgid,
			struct doctor_checks *checks);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Not what the kernel says it can, but what it does: our programs are loaded and attached as for a
 * window without targets, run on ourselves, and let go. For some 20 ms each system call of the
 * machine takes some ten nanoseconds longer; no other process is touched.
 */
#ifndef FBT_DOCTOR_TRIAL_H
#define FBT_DOCTOR_TRIAL_H

#include "doctor_check.h"
#include "loader.h"
#include "options.h"
#include "step_function.h"

struct doctor_trial {
	bool skipped; /* something is known to be in the way */
	int err;
	struct doctor_words words;
	uint64_t took_ns;
	uint64_t ring_bytes;
	struct fbt_cost cost;
	struct loader *loader; /* loaded, nothing attached; NULL: err */
};

/* Leaves nothing attached. */
void doctor_trial_run(struct doctor_trial *trial, const struct options *options);
void doctor_trial_clear(struct doctor_trial *trial);

/* Pure. */
void doctor_trial_judge(const struct doctor_trial *trial, struct doctor_checks *checks);

/*
 * Whether the kernel takes probes on these functions: in copies of their pages in this process,
 * where they never run, so that nothing happens to the process that they are from. 0; -errno, and
 * words are those of the attempt; 0 too where their files cannot be mapped here.
 */
int doctor_trial_probe(struct doctor_trial *trial, const function_vec *functions,
		       struct doctor_words *words);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * How many system calls a process makes, and so what tracing them would cost it. The _judge
 * function is pure.
 */
#ifndef FBT_COMMANDS_DOCTOR_CALLS_H
#define FBT_COMMANDS_DOCTOR_CALLS_H

#include "base/findings.h"
#include "commands/doctor_room.h"

/* With more, --detail probes is proposed: tracing them takes half a percent of a CPU or more. */
#define DOCTOR_CALLS_MANY 50000 /* a second */

struct doctor_calls {
	bool counted;
	bool has_steps; /* it has a step function, which --detail probes needs */
	uint64_t calls; /* that returned in count_ns, in all threads */
	uint64_t count_ns;
	uint64_t call_ps; /* what tracing adds to each */
};

/*
 * Counts for a fifth of a second, with the programs of the trial: meanwhile each call of the
 * process takes about call_ps longer, and each other call of the machine some ten nanoseconds.
 * Without a trial, or if its programs do not count calls (--detail probes), nothing is done.
 */
void doctor_calls_read(struct doctor_calls *calls, uint32_t tgid, bool has_steps,
		       struct doctor_trial *trial);
void doctor_calls_judge(const struct doctor_calls *calls, struct findings *checks);

#endif

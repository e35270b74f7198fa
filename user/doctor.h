/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* doctor [PID]: what works here and what does not, and what to do about it. */
#ifndef FBT_DOCTOR_H
#define FBT_DOCTOR_H

#include <stdio.h>
#include "options.h"

/*
 * Checks the machine, and the processes of options->pids, for a trace with these options; prints to
 * out as options->report says. Nothing is left behind, and no process is disturbed
 * (doctor_trial.h). 0 if -p would work; -EPERM if not, which is no message but the output; -errno,
 * logged, if that cannot be written.
 */
int doctor(const struct options *options, FILE *out);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Joins to a step what was looked at on demand: who had the CPUs that it waited for, and samples.
 */
#ifndef FBT_MODEL_TAKEN_H
#define FBT_MODEL_TAKEN_H

#include "model/step.h"

/* Sets step->taken. next is the latest record, which belongs to this step or to none; emptied. */
void taken_join(struct fbt_taken *next, struct step *step);

/* The same of step->samples. */
void samples_join(struct fbt_samples *next, struct step *step);

/* The same of step->fault_sites. */
void fault_sites_join(struct fbt_fault_sites *next, struct step *step);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Joins who had the CPUs that a step waited for to the step. */
#ifndef FBT_MODEL_TAKEN_H
#define FBT_MODEL_TAKEN_H

#include "model/step.h"

/* Sets step->taken. next is the latest record, which belongs to this step or to none; emptied. */
void taken_join(struct fbt_taken *next, struct step *step);

#endif

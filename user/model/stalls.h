/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What a CPython interpreter kept steps from: its collections, and waits for its global lock. */
#ifndef FBT_MODEL_STALLS_H
#define FBT_MODEL_STALLS_H

#include "model/step.h"
#include "model/window.h"

/*
 * Sets step->stalls. next is the latest fbt_stalls that came, which belongs to this step or to
 * none; it is emptied. The calls of the step must be known or forgotten by now.
 */
void stalls_join(const struct window *window, struct fbt_stalls *next, struct step *step);

#endif

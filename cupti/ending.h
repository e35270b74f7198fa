/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The end of the process. exit() runs the handlers of CUPTI and of the driver, which take apart
 * what a flush uses, while our thread goes on. A handler that was registered after theirs runs
 * before them: it has the last records sent, and then sees to it that nobody of us is in CUPTI.
 */
#ifndef FERRUM_ENDING_H
#define FERRUM_ENDING_H

#include "shim.h"

/* false: CUPTI may not be called any more. Else it may until ending__leave. */
bool ending__enter(struct shim *shim);
void ending__leave(struct shim *shim);

/* Whether the process is about to end: it waits for us, if not for long. */
bool ending__is_near(const struct shim *shim);

/* CUPTI is called no more; by whoever has had the last records sent. */
void ending__be_done(struct shim *shim);

/*
 * Registers the handler: once for each stage that CUPTI has come to, since what it registers itself
 * on its way must be older than ours.
 */
enum ending_stage {
	ENDING_LOADED = 1,
	ENDING_WORKING = 2,
};
void ending__watch(struct shim *shim, enum ending_stage stage);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * exit() runs the exit handlers of CUPTI and of the driver, which take apart what a flush uses,
 * while our thread still runs. Our handler is registered after theirs and so runs before them. It
 * waits until the last records are sent, and then until no thread of ours is in CUPTI.
 */
#ifndef FERRUM_EXIT_GUARD_H
#define FERRUM_EXIT_GUARD_H

#include "state.h"

/* true: CUPTI may be called until exit_guard__leave. false: it must not be called any more. */
bool exit_guard__enter(struct shim *shim);
void exit_guard__leave(struct shim *shim);

/* Whether exit() has been called. The process then waits for us, at most one second. */
bool exit_guard__is_exiting(const struct shim *shim);

/* The last records have been sent: from now on CUPTI is not called. */
void exit_guard__finish(struct shim *shim);

/*
 * Registers the exit handler, once for each stage that CUPTI reaches: CUPTI registers handlers of
 * its own on the way, and ours must be newer than those.
 */
enum exit_stage {
	EXIT_STAGE_LOADED = 1,
	EXIT_STAGE_COLLECTING = 2,
};
void exit_guard__register(struct shim *shim, enum exit_stage stage);

#endif

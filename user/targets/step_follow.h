/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The end of steps of functions that leave by jumps, where their call sites cannot tell it: at the
 * returns of the functions that they jump to. A jump that cannot be followed is probed itself: a
 * call that leaves by it is not traced, but counted.
 */
#ifndef FBT_TARGETS_STEP_FOLLOW_H
#define FBT_TARGETS_STEP_FOLLOW_H

#include "targets/live.h"

struct step_follow;
struct step_function;

/* live is borrowed, and its members are used from the first call on. NULL: -ENOMEM. */
struct step_follow *step_follow__new(const struct live *live);
void step_follow__free(struct step_follow *follow);

/*
 * Probes where calls of a kind end, in a process or in all traced ones. 0; or -errno, and why is
 * what step_follow__reason() says. After a failure its probes are to be dropped.
 */
int step_follow__attach(struct step_follow *follow, struct traced *traced, uint32_t kind);
int step_follow__attach_all(struct step_follow *follow, uint32_t kind);

/* "" if there is none. */
const char *step_follow__reason(const struct step_follow *follow, uint32_t kind);

/* Number of places that are probed for a kind, or were in processes that have ended. */
uint32_t step_follow__places(const struct step_follow *follow, uint32_t kind);

/* Its probes are gone, or about to go. */
void step_follow__drop(struct step_follow *follow, uint32_t kind);

/*
 * A call has left by a jump that was not followed (fbt_ring_site.jump_kind). The dynamic linker may
 * have bound it by now, or what a pointer led to is known.
 */
void step_follow__take(struct step_follow *follow, const struct fbt_ring_site *jump);

/*
 * Says that calls of a function are not traced: where they come from no probe can be attached, and
 * its jumps are not followed. why_not: NULL: it is not known.
 */
void step_follow_warn(const struct step_function *function, const char *why_not);

/* The process has ended or called execve. */
void step_follow__forget(struct step_follow *follow, uint32_t tgid);

#endif

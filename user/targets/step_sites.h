/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * How steps end. At first the exits of a step function are probed, and the places that it returns
 * to are learnt: the kernel side tells each new call site, which is then probed. When call sites
 * have proved to end its steps, the probes on its exits are removed, because they cost more. A
 * function that makes tail calls has no exits that end its steps, so only call sites do; its first
 * steps from a site that was not found in the code before are not traced. A site that many others
 * pass (a dispatch loop, libffi) costs more than it saves: then the exits stay. Of a function that
 * makes tail calls, and for callers that cannot be probed, these are the exits of what it jumps to
 * (targets/step_follow.h), unless others call that too often.
 */
#ifndef FBT_TRACE_STEP_SITES_H
#define FBT_TRACE_STEP_SITES_H

#include "targets/live.h"

struct step_sites;

/* live is borrowed, and its members are used from the first call on. NULL: -ENOMEM. */
struct step_sites *step_sites__new(const struct live *live);
void step_sites__free(struct step_sites *sites);

/*
 * steps_found__attach(), after the callers that are found in the process's code have been probed:
 * steps that they call do not have to be learnt first.
 */
int step_sites__attach(struct step_sites *sites, struct traced *traced);

/* A call site that the kernel side has told; it is probed at the next turn. */
void step_sites__take(struct step_sites *sites, const struct fbt_ring_site *site);

/* Probes new sites and decides how steps end from now on. Call it after each drain. */
void step_sites__turn(struct step_sites *sites, uint64_t now_ns);

/* The process has ended or called execve, or its probes are gone: its sites are no longer known. */
void step_sites__forget(struct step_sites *sites, uint32_t tgid);

/* The probes of these kinds are about to be switched off, or on again (steps_found__switch_off). */
void step_sites__switch_off(struct step_sites *sites, uint64_t kinds);
void step_sites__switch_on(struct step_sites *sites, uint64_t kinds);

/* Call at the end of the window: sends how the steps of each kind ended. */
void step_sites__finish(struct step_sites *sites);

#endif

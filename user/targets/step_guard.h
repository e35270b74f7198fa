/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Keeps step probes harmless. A table has a row for each step kind: whether its probes are on, what
 * they cost on each CPU, and the state of its rate guard (rate_guard.h). A function that is called
 * too often has its probes on for short times only, which the user and the stream are told.
 */
#ifndef FBT_TARGETS_STEP_GUARD_H
#define FBT_TARGETS_STEP_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include "kernel/shared.h"
#include "targets/live.h"
#include "targets/rate_guard.h"

struct step_guard;

/*
 * live and shared are borrowed. quick: switching probes takes no time (one link for many probes).
 * NULL: -ENOMEM.
 */
struct step_guard *step_guard__new(const struct live *live, const struct shared *shared,
				   bool quick);
void step_guard__free(struct step_guard *guard);

/* Call every few milliseconds. cost: that of a step's probes; 0: not measured. */
void step_guard__turn(struct step_guard *guard, uint64_t now_ns, const struct fbt_cost *cost);

/* Their probes are gone for ever, and are not switched on again. */
void step_guard__give_up(struct step_guard *guard, uint64_t kinds, uint64_t now_ns);

/* Call at the end of the window. */
void step_guard__finish(struct step_guard *guard, uint64_t now_ns);

/* Whether any probes have been switched off. */
bool step_guard__has_acted(const struct step_guard *guard);

/*
 * The parts of a turn follow. This one takes what the kernel side has counted (struct fbt_hits) for
 * these kinds since the last look, time_ns ago. probes: step_ns and site_ns.
 */
void step_guard__look(struct step_guard *guard, uint64_t kinds, uint64_t time_ns,
		      const struct fbt_cost *probes);

/*
 * From now on threads are charged for each step what its probes cost. They may spend the share of
 * their time on that.
 */
void step_guard__charge(const struct step_guard *guard, const struct fbt_cost *probes);

/* What these kinds have spent on one CPU between the last two looks. */
uint64_t step_guard__spent(const struct step_guard *guard, uint32_t cpu, uint64_t kinds);

/*
 * step_guard__spent for the CPU on which kinds have spent most, with the excess of all threads.
 * beside: kinds whose cost on that CPU is returned as beside_ns.
 */
struct rate_cost step_guard__worst(const struct step_guard *guard, uint64_t kinds, uint64_t beside);

/* What share of their time the probes took from threads with excess; 0: there was no excess. */
double step_guard__over_share(const struct step_guard *guard);

/* Number of calls of a kind's function since the window began, including nested ones. */
uint64_t step_guard__calls(const struct step_guard *guard, uint32_t kind);

#endif

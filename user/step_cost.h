/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What step probes cost, by CPU and kind, from what the kernel side counts (struct fbt_hits): a
 * look takes what was added since the one before.
 */
#ifndef FBT_STEP_COST_H
#define FBT_STEP_COST_H

#include <stdint.h>
#include "rate_guard.h"
#include "shared.h"

struct step_cost;

/* shared is borrowed. NULL: -ENOMEM. */
struct step_cost *step_cost__new(const struct shared *shared);
void step_cost__free(struct step_cost *cost);

/* kinds: those that are looked at. time_ns: since the last look. step_ns: of a step's two probes.
 */
void step_cost__look(struct step_cost *cost, uint64_t kinds, uint64_t time_ns, uint64_t step_ns);

/* From now on threads are charged step_ns for each step: they may spend share of their time. */
void step_cost__charge(const struct step_cost *cost, double share, uint64_t step_ns);

/* As of the last look. beside: kinds whose cost on the same CPU is beside_ns. */
struct rate_cost step_cost__worst(const struct step_cost *cost, uint64_t kinds, uint64_t beside);

/* As of the last look, on one CPU: spent by kinds. */
uint64_t step_cost__spent(const struct step_cost *cost, uint32_t cpu, uint64_t kinds);

/*
 * As of the last look: what probes take of the time of the threads where there was excess, which
 * share is too; 0: there was none.
 */
double step_cost__over_share(const struct step_cost *cost, double share);

/* Begins of a kind since the window began, nested ones too. */
uint64_t step_cost__calls(const struct shared *shared, uint32_t kind);

#endif

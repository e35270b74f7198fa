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

/* As of the last look, on the CPU where the cost of kinds exceeds share of the own time most. */
struct rate_cost step_cost__worst(const struct step_cost *cost, uint64_t kinds, double share,
				  uint32_t *cpu);

/* As of the last look, on one CPU: spent by kinds. */
uint64_t step_cost__spent(const struct step_cost *cost, uint32_t cpu, uint64_t kinds);

/* Time before the last look is no thread's own any more: a function was not seen in it. */
void step_cost__forget_time(struct step_cost *cost);

/* Begins of a kind since the window began, nested ones too. */
uint64_t step_cost__calls(const struct shared *shared, uint32_t kind);

#endif

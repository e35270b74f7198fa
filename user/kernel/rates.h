/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Measures how often functions are called, and how long their calls take. A function that is called
 * so often that its probes slow the process down is detached at once.
 *
 * A function without exits to probe (struct step_function.has_sites) is timed where it returns to:
 * rates__check() probes its call sites as they are seen, and the first call from each is not timed.
 */
#ifndef FBT_KERNEL_RATES_H
#define FBT_KERNEL_RATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kernel/rate_order.h"
#include "steps/resolve.h"

struct rates;

/* Probes functions, which are borrowed, in process tgid. 0 or -errno, logged. */
int rates__open(struct rates **rates, struct step_function *const *functions, size_t count,
		uint32_t tgid, bool perf_uprobes);

/* Probes new call sites, and detaches what is hit too often. To be called about every 20 ms. */
void rates__check(struct rates *rates);

/* Calls so far of the function at an index of rates__open(). */
uint64_t rates__calls(const struct rates *rates, size_t index);

/* Calls of that function that have begun and ended on a thread so far. */
uint64_t rates__ended_on(const struct rates *rates, size_t index, uint32_t tid);

/* Whether that function was called so often that it is not probed any more. */
bool rates__is_too_often(const struct rates *rates, size_t index);

/*
 * How often the function at one index has called that at the other, with no third of the functions
 * in between. Calls that have begun and ended.
 */
uint64_t rates__inside(const struct rates *rates, size_t outer, size_t inner);

/*
 * Detaches all functions and fills result, which has the count entries of rates__open(), likeliest
 * step functions first (rate_order).
 */
void rates__finish(struct rates *rates, struct rate *result);
void rates__free(struct rates *rates);

#endif

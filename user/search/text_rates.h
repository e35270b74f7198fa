/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Measures the functions that a text is in, before a window is open. */
#ifndef FBT_TRACE_TEXT_RATES_H
#define FBT_TRACE_TEXT_RATES_H

#include <stdbool.h>
#include "kernel/rates.h"
#include "proc/thread_use.h"
#include "steps/find.h"

/* A function_measure_fn (user/steps/find.h). Probes the functions for a second. */
int text_rates_measure(uint32_t tgid, struct step_function *const *functions, size_t count,
		       struct function_rate *result);

/*
 * Whether the thread that spends most time in a function is a busy one, and that time a good part
 * of what the busiest thread does. threads: what each has used meanwhile, the busiest first.
 */
bool text_rates_is_busy(const struct rate *rate, const thread_use_vec *threads);

#endif

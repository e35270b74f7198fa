/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Measures the functions that a text is in, before a window is open. */
#ifndef FBT_TRACE_TEXT_RATES_H
#define FBT_TRACE_TEXT_RATES_H

#include "steps/find.h"

/* A function_measure_fn (user/steps/find.h). Probes the functions for a second. */
int text_rates_measure(uint32_t tgid, struct step_function *const *functions, size_t count,
		       struct function_rate *result);

#endif

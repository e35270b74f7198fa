/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * An escalation as OTLP/JSON (OTLP specification 1.x, JSON Protobuf Encoding): a span for the step,
 * and a child for each category above 5 % of it. Pure.
 *
 * A category is a sum of calls, so its child does not tell when they were: it begins with the step,
 * lasts as long as the sum, never longer than the step, and has syscall.aggregated set.
 */
#ifndef FBT_OTLP_SPAN_H
#define FBT_OTLP_SPAN_H

#include <stdint.h>
#include "classify.h"
#include "json.h"
#include "step.h"
#include "window.h"

/* Random; none is all zeros. */
struct otlp_span_ids {
	uint8_t trace[16];
	uint8_t span[8];
	uint8_t children[FBT_CATEGORY_COUNT][8];
};

/*
 * Writes one object of resourceSpans; returns how many spans it has. service: service.name; NULL or
 * "": the process's name.
 */
uint32_t otlp_span_write(struct json *json, const struct window *window, const struct step *step,
			 const struct escalation *escalation, const char *service,
			 const struct otlp_span_ids *ids);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* escalation_prof: a step that was found wrong, why, and what caused it. */
#ifndef FBT_JSONL_ESCALATION_H
#define FBT_JSONL_ESCALATION_H

#include "escalation_fields.h"
#include "step.h"

struct jsonl_escalation {
	struct escalation_fields common; /* common.fields is the shape */
	struct json_fields stage_us;
	struct worst worst;
};

/* event must not be moved. */
void jsonl_escalation_fill(struct jsonl_escalation *event, const struct window *window,
			   const struct step *step, const struct escalation *escalation);

#endif

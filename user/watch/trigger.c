/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "watch/trigger.h"

#include <stdio.h>

#include "base/arith.h"

enum trigger_answer trigger_pull(struct trigger *trigger, const struct trigger_limits *limits,
				 uint32_t reason, const char *text, uint64_t now_ns)
{
	bool cools = trigger->since_ns &&
		     now_ns < add_saturating(trigger->since_ns, limits->cooldown_ns);

	if (trigger->pending && !trigger->asked)
		return TRIGGER_JOINED;
	/* Who asks by hand does not wait. */
	if (trigger->pending || (cools && reason != FLIGHT_MANUAL)) {
		trigger->ignored++;
		return TRIGGER_COOLING;
	}
	trigger->pending = true;
	trigger->asked = false;
	trigger->reason = reason;
	trigger->since_ns = now_ns;
	trigger->due_ns = add_saturating(now_ns, limits->after_ns);
	snprintf(trigger->text, sizeof(trigger->text), "%s", text);
	return TRIGGER_NEW;
}

bool trigger_is_due(struct trigger *trigger, uint64_t now_ns)
{
	if (!trigger->pending || trigger->asked || now_ns < trigger->due_ns)
		return false;
	trigger->asked = true;
	trigger->asked_ns = now_ns;
	return true;
}

void trigger_ask_again(struct trigger *trigger)
{
	trigger->asked = false;
}

bool trigger_is_late(const struct trigger *trigger, uint64_t limit_ns, uint64_t now_ns)
{
	return trigger->pending && trigger->asked &&
	       now_ns > add_saturating(trigger->asked_ns, limit_ns);
}

void trigger_end(struct trigger *trigger)
{
	trigger->pending = false;
	trigger->asked = false;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "watch/trigger.h"

#include <stdio.h>

#include "base/arith.h"

static void begin(struct trigger *trigger, uint32_t reason, const char *text, uint64_t since_ns,
		  uint64_t due_ns)
{
	trigger->pending = true;
	trigger->asked = false;
	trigger->reason = reason;
	trigger->cooldown.since_ns = since_ns;
	if (reason == FLIGHT_HANG)
		trigger->cooldown.hang_ns = since_ns;
	trigger->due_ns = due_ns;
	trigger->ignored = 0;
	snprintf(trigger->text, sizeof(trigger->text), "%s", text);
}

/* Who asks by hand does not wait, and a hang is worth a dump whatever was slow before. */
static bool is_cooling(const struct cooldown *cooldown, uint32_t reason, uint64_t cooldown_ns,
		       uint64_t now_ns)
{
	uint64_t since_ns = reason == FLIGHT_HANG ? cooldown->hang_ns : cooldown->since_ns;

	return reason != FLIGHT_MANUAL && since_ns &&
	       now_ns < add_saturating(since_ns, cooldown_ns);
}

static void queue_next(struct trigger *trigger, uint32_t reason, const char *text,
		       uint64_t since_ns, uint64_t due_ns)
{
	trigger->again = true;
	trigger->next_reason = reason;
	trigger->next_since_ns = since_ns;
	trigger->next_due_ns = due_ns;
	snprintf(trigger->next_text, sizeof(trigger->next_text), "%s", text);
}

static unsigned int worth_of(uint32_t reason)
{
	return reason == FLIGHT_MANUAL ? 2 : reason == FLIGHT_HANG ? 1 : 0;
}

/* A dump that is not asked for yet has it too. One that waits for its cooldown changes nothing. */
static enum trigger_answer join(struct trigger *trigger, uint32_t reason, const char *text,
				bool cools, uint64_t now_ns, uint64_t due_ns)
{
	uint32_t present = trigger->again ? trigger->next_reason : trigger->reason;

	if (!cools && reason == FLIGHT_HANG)
		trigger->cooldown.hang_ns = now_ns;
	if (cools || worth_of(reason) <= worth_of(present))
		return TRIGGER_JOINED;
	if (trigger->again) {
		queue_next(trigger, reason, text, now_ns, due_ns);
		return TRIGGER_JOINED;
	}
	begin(trigger, reason, text, now_ns, due_ns);
	return TRIGGER_RAISED;
}

enum trigger_answer trigger_pull(struct trigger *trigger, const struct trigger_limits *limits,
				 uint32_t reason, const char *text, uint64_t now_ns)
{
	uint64_t due_ns = add_saturating(now_ns, limits->after_ns);
	bool cools = is_cooling(&trigger->cooldown, reason, limits->cooldown_ns, now_ns);

	if (trigger->again || (trigger->pending && !trigger->asked))
		return join(trigger, reason, text, cools, now_ns, due_ns);
	if (cools) {
		trigger->ignored++;
		return TRIGGER_COOLING;
	}
	if (!trigger->pending) {
		begin(trigger, reason, text, now_ns, due_ns);
		return TRIGGER_NEW;
	}
	/* The one that was asked for may be made already. */
	queue_next(trigger, reason, text, now_ns, due_ns);
	return TRIGGER_NEXT;
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

bool trigger_end(struct trigger *trigger)
{
	trigger->pending = false;
	trigger->asked = false;
	if (trigger->again)
		begin(trigger, trigger->next_reason, trigger->next_text, trigger->next_since_ns,
		      trigger->next_due_ns);
	trigger->again = false;
	return trigger->pending;
}

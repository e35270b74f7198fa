/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* When there is a dump: some time after what is worth one, and not too often. Pure: no clock. */
#ifndef FBT_WATCH_TRIGGER_H
#define FBT_WATCH_TRIGGER_H

#include <stdbool.h>
#include <stdint.h>
#include "recorder/flight.h"

struct trigger_limits {
	uint64_t after_ns;    /* so that what follows is in the dump */
	uint64_t cooldown_ns; /* from a dump's trigger to the next one's; of a hang, from that of
				 another */
};

/* When it was pulled last, for a dump; 0: never. */
struct cooldown {
	uint64_t since_ns;
	uint64_t hang_ns; /* because of a hang */
};

struct trigger {
	bool pending;	 /* a dump is due */
	bool asked;	 /* for it */
	uint32_t reason; /* enum flight_reason */
	struct cooldown cooldown;
	uint64_t due_ns;
	uint64_t asked_ns; /* when it was asked for */
	uint64_t ignored;  /* since then, because of the cooldown */
	char text[sizeof(((struct flight_message *)0)->text)];

	/* Another one, after that which was asked for: */
	bool again;
	uint32_t next_reason;
	uint64_t next_since_ns;
	uint64_t next_due_ns;
	char next_text[sizeof(((struct flight_message *)0)->text)];
};

enum trigger_answer {
	TRIGGER_NEW,	/* there will be a dump */
	TRIGGER_JOINED, /* it will be in a dump that is due */
	TRIGGER_RAISED, /* that too, and the dump is about it now: it has its reason and text */
	TRIGGER_NEXT, /* there will be a dump after the one that was asked for: trigger_end tells */
	TRIGGER_COOLING, /* there will be none, because of the cooldown */
};

/*
 * In a dump that is due already, what is worth more takes the place of what it is about: a hang
 * that of a slow step, and a request by hand that of both, since somebody waits for it.
 */
enum trigger_answer trigger_pull(struct trigger *trigger, const struct trigger_limits *limits,
				 uint32_t reason, const char *text, uint64_t now_ns);

/* Whether to ask for the dump now; true once. */
bool trigger_is_due(struct trigger *trigger, uint64_t now_ns);

/* The tracer does not take the request yet: trigger_is_due is true once more. */
void trigger_ask_again(struct trigger *trigger);

/* Whether the dump was asked for longer than limit_ns ago. */
bool trigger_is_late(const struct trigger *trigger, uint64_t limit_ns, uint64_t now_ns);

/* The dump has come, or will not. Returns whether another one is due from now on. */
bool trigger_end(struct trigger *trigger);

#endif

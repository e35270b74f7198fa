/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The processes under trace: their threads get slots, what ended threads counted is kept, exact
 * tables are sent when a process or the window ends.
 */
#ifndef FBT_TRACED_H
#define FBT_TRACED_H

#include <stdbool.h>
#include "record.h"
#include "slots.h"
#include "vec.h"

struct target_seen;
struct uprobes;

/* A process. */
struct traced {
	uint32_t tgid;
	uint32_t live_threads; /* with a slot, as of the last traced__collect */
	uint64_t start_ns;     /* since when it is under trace */
	bool wanted;	       /* named by -p or started as COMMAND, not found by --follow or -a */
	uint32_t parent_tgid;  /* set if --follow found it */
	bool taken;	       /* its threads have slots, and new ones get them */
	bool rescan;	       /* look for step functions now */
	struct uprobes *uprobes; /* where links are per process, else NULL */
	struct uprobes *stale; /* bound to a first thread that is gone; until new ones are there */
	VEC(uint32_t) kinds;   /* of the step functions in the files it has mapped */
	uint32_t missing;      /* threads that found no free slot */
	size_t probed_kinds;   /* so many of them are probed */
	struct target_seen *seen;
	struct process_sums ended;     /* what its ended threads left */
	struct process_sums *previous; /* interval steps: sums at the last boundary, or NULL */
	uint64_t previous_ns;
};

struct traced_set;

/* shared is borrowed. NULL: -ENOMEM. */
struct traced_set *traced_set__new(struct shared *shared, const struct record_output *output);
void traced_set__free(struct traced_set *set);

/* Adds a process, or finds it: NULL if out of memory. */
struct traced *traced_set__add(struct traced_set *set, uint32_t tgid);
struct traced *traced_set__find(struct traced_set *set, uint32_t tgid);

size_t traced_set__count(const struct traced_set *set);

/* The index-th, in the order of coming; NULL behind the last. */
struct traced *traced_set__at(struct traced_set *set, size_t index);

/*
 * Gives slots to the threads a process has that are not ending; call after the kernel side follows
 * new ones, and again where slots were missing. How many have one now, or -ESRCH if the process is
 * gone.
 */
int traced_set__take_threads(struct traced_set *set, uint32_t tgid, uint64_t now_ns);

/* The most threads that were without a slot at once: what they did then was not seen. */
uint64_t traced_set__lost_threads(const struct traced_set *set);

/*
 * Collecting ended threads has two halves: mark before the rings are drained, collect after, so
 * that a slot is not given back while a ring still names it. on_end, if
 * not NULL, is told of each.
 */
void traced_set__mark_ended(struct traced_set *set);
void traced_set__collect(struct traced_set *set, void (*on_end)(void *ctx, uint32_t tid),
			 void *ctx);

/* For a process that is gone but has slots that say otherwise: they end now. */
void traced_set__end_slots(struct traced_set *set, const struct traced *traced, uint64_t now_ns);

/* Sums of a process: ended and living threads, as of now_ns. */
void traced_set__sum(struct traced_set *set, const struct traced *traced, uint64_t now_ns,
		     struct process_sums *sums);

/* Sends the table of a process. */
void traced_set__send_table(struct traced_set *set, const struct traced *traced, uint64_t now_ns);

/* Forgets a process, silently. */
void traced_set__forget(struct traced_set *set, struct traced *traced);

/* Sends table and exit of a process that has ended, and forgets it. */
void traced_set__remove(struct traced_set *set, struct traced *traced, uint64_t now_ns);

#endif

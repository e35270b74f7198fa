/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "evidence.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A step whose calls nobody wanted yet. */
struct held {
	struct step step;
	uint64_t order; /* the oldest goes first where there is no room */
};

/* The latest steps of one thread. */
struct lane {
	uint32_t tgid;
	uint32_t tid;
	uint32_t wanted; /* so many steps more are context of an escalated one */
	uint64_t latest_ns;
	VEC(struct held) held; /* oldest first, at most context */
};

struct evidence {
	uint32_t context;
	int (*on_calls)(void *ctx, const struct window *window, const struct step *step);
	void *ctx;
	VEC(struct lane) lanes;
	size_t calls; /* held */
	uint64_t pushed;
};

/* Threads that come and go leave lanes behind. */
#define LANES_MAX 4096

struct evidence *evidence__new(uint32_t context,
			       int (*on_calls)(void *ctx, const struct window *window,
					       const struct step *step),
			       void *ctx)
{
	struct evidence *evidence = calloc(1, sizeof(*evidence));

	if (!evidence)
		return NULL;
	evidence->context = context;
	evidence->on_calls = on_calls;
	evidence->ctx = ctx;
	return evidence;
}

static void drop_oldest(struct evidence *evidence, struct lane *lane)
{
	evidence->calls -= lane->held.items[0].step.calls.count;
	vec_free(&lane->held.items[0].step.calls);
	lane->held.count--;
	memmove(&lane->held.items[0], &lane->held.items[1],
		lane->held.count * sizeof(lane->held.items[0]));
}

static void clear_lane(struct evidence *evidence, struct lane *lane)
{
	while (lane->held.count)
		drop_oldest(evidence, lane);
	vec_free(&lane->held);
}

void evidence__free(struct evidence *evidence)
{
	if (!evidence)
		return;
	vec_for_each (lane, &evidence->lanes)
		clear_lane(evidence, lane);
	vec_free(&evidence->lanes);
	free(evidence);
}

static struct lane *find_lane(struct evidence *evidence, const struct fbt_step *record)
{
	struct lane fresh = {.tgid = record->tgid, .tid = record->tid};
	struct lane *oldest = NULL;

	vec_for_each (lane, &evidence->lanes) {
		if (lane->tid == record->tid && lane->tgid == record->tgid)
			return lane;
		if (!oldest || lane->latest_ns < oldest->latest_ns)
			oldest = lane;
	}
	if (evidence->lanes.count >= LANES_MAX) {
		clear_lane(evidence, oldest);
		*oldest = fresh;
		return oldest;
	}
	if (vec_push(&evidence->lanes, fresh))
		return NULL;
	return &evidence->lanes.items[evidence->lanes.count - 1];
}

static void make_room(struct evidence *evidence, size_t calls)
{
	while (evidence->calls && evidence->calls + calls > EVIDENCE_CALLS_MAX) {
		struct lane *oldest = NULL;

		vec_for_each (lane, &evidence->lanes) {
			if (lane->held.count &&
			    (!oldest || lane->held.items[0].order < oldest->held.items[0].order))
				oldest = lane;
		}
		if (!oldest)
			return;
		drop_oldest(evidence, oldest);
	}
}

/* Takes the calls of a step; they may be context of the next one. */
static int hold(struct evidence *evidence, struct lane *lane, struct step *step)
{
	struct held held = {.step = *step, .order = evidence->pushed};

	if (!evidence->context)
		return 0;
	if (lane->held.count == evidence->context)
		drop_oldest(evidence, lane);
	make_room(evidence, step->calls.count);
	if (vec_push(&lane->held, held))
		return -ENOMEM;
	evidence->calls += step->calls.count;
	memset(&step->calls, 0, sizeof(step->calls));
	return 0;
}

static int show_held(struct evidence *evidence, const struct window *window, struct lane *lane)
{
	int err = 0, result;

	while (lane->held.count) {
		result = evidence->on_calls(evidence->ctx, window, &lane->held.items[0].step);
		err = err ? err : result;
		drop_oldest(evidence, lane);
	}
	return err;
}

int evidence__push(struct evidence *evidence, const struct window *window, struct step *step,
		   bool escalated)
{
	bool shown = escalated || step->kind_number <= EVIDENCE_FIRST ||
		     window->record.detail == FBT_DETAIL_ALL;
	struct lane *lane;
	int err = 0, result;

	/* Interval steps take the calls of all threads: no thread's steps are beside them. */
	lane = find_lane(evidence, &step->record);
	if (!lane)
		return shown ? evidence->on_calls(evidence->ctx, window, step) : -ENOMEM;
	evidence->pushed++;
	lane->latest_ns = step->record.end_ns;
	if (lane->wanted && !shown)
		shown = true;
	if (lane->wanted)
		lane->wanted--;
	if (escalated) {
		lane->wanted = evidence->context;
		err = show_held(evidence, window, lane);
	}
	if (!shown)
		return hold(evidence, lane, step);
	result = evidence->on_calls(evidence->ctx, window, step);
	return err ? err : result;
}

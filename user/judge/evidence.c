/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/evidence.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/log.h"

/* Threads whose latest steps are held: threads that have ended keep their lanes. */
#define LANES_MAX 1024

/* A step whose calls were not wanted so far. */
struct held {
	struct step step;
	uint64_t position; /* among the steps of its thread */
	uint64_t order;	   /* among all: the oldest goes first where there is no room */
};

/* The latest steps of one thread. An interval is a step of its process's first thread. */
struct lane {
	uint32_t tgid;
	uint32_t tid;
	uint32_t wanted; /* this many more steps are context of an escalated one */
	uint64_t steps;
	uint64_t order;	   /* of the latest */
	struct held *held; /* a ring of context steps; NULL until one is held */
	uint32_t first;
	uint32_t count;
};

struct evidence {
	uint32_t context;
	int (*on_calls)(void *ctx, const struct window *window, const struct step *step);
	void *ctx;
	struct tid_map *lanes_by_tid;
	VEC(struct lane *) lanes;
	size_t calls;	 /* held */
	uint64_t pushed; /* steps */
};

struct evidence *evidence__new(uint32_t context,
			       int (*on_calls)(void *ctx, const struct window *window,
					       const struct step *step),
			       void *ctx)
{
	struct evidence *evidence = calloc(1, sizeof(*evidence));

	if (!evidence)
		return NULL;
	evidence->lanes_by_tid = tid_map__new();
	if (!evidence->lanes_by_tid) {
		free(evidence);
		return NULL;
	}
	evidence->context = context;
	evidence->on_calls = on_calls;
	evidence->ctx = ctx;
	return evidence;
}

static struct held *oldest_held(const struct lane *lane)
{
	return &lane->held[lane->first];
}

static void drop_oldest(struct evidence *evidence, struct lane *lane)
{
	struct held *held = oldest_held(lane);

	evidence->calls -= held->step.calls.count;
	vec_free(&held->step.calls);
	lane->first = (lane->first + 1) % evidence->context;
	lane->count--;
}

static void clear_lane(struct evidence *evidence, struct lane *lane)
{
	while (lane->count)
		drop_oldest(evidence, lane);
	free(lane->held);
}

void evidence__free(struct evidence *evidence)
{
	if (!evidence)
		return;
	vec_for_each (lane, &evidence->lanes) {
		clear_lane(evidence, *lane);
		free(*lane);
	}
	vec_free(&evidence->lanes);
	tid_map__free(evidence->lanes_by_tid);
	free(evidence);
}

/* Gives a lane to another thread. */
static int restart_lane(struct evidence *evidence, struct lane *lane, const struct fbt_step *record)
{
	int err = tid_map__set(evidence->lanes_by_tid, record->tid, lane);

	if (err)
		return err;
	if (lane->tid != record->tid)
		tid_map__remove(evidence->lanes_by_tid, lane->tid);
	clear_lane(evidence, lane);
	*lane = (struct lane){.tgid = record->tgid, .tid = record->tid};
	return 0;
}

static struct lane *add_lane(struct evidence *evidence, const struct fbt_step *record)
{
	struct lane *lane = calloc(1, sizeof(*lane));

	if (!lane)
		return NULL;
	lane->tgid = record->tgid;
	lane->tid = record->tid;
	if (vec_push(&evidence->lanes, lane)) {
		free(lane);
		return NULL;
	}
	if (tid_map__set(evidence->lanes_by_tid, record->tid, lane)) {
		evidence->lanes.count--;
		free(lane);
		return NULL;
	}
	return lane;
}

static struct lane *oldest_lane(const struct evidence *evidence)
{
	struct lane *oldest = NULL;

	vec_for_each (lane, &evidence->lanes) {
		if (!oldest || (*lane)->order < oldest->order)
			oldest = *lane;
	}
	return oldest;
}

static struct lane *find_lane(struct evidence *evidence, const struct fbt_step *record)
{
	struct lane *lane = tid_map__get(evidence->lanes_by_tid, record->tid);

	if (lane && lane->tgid == record->tgid)
		return lane;
	if (!lane && evidence->lanes.count < LANES_MAX)
		return add_lane(evidence, record);
	/* The tid belonged to another process before, or there are too many threads. */
	if (!lane)
		lane = oldest_lane(evidence);
	return restart_lane(evidence, lane, record) ? NULL : lane;
}

static void make_room(struct evidence *evidence, size_t calls)
{
	while (evidence->calls && evidence->calls + calls > EVIDENCE_CALLS_MAX) {
		struct lane *oldest = NULL;

		vec_for_each (lane, &evidence->lanes) {
			if ((*lane)->count &&
			    (!oldest || oldest_held(*lane)->order < oldest_held(oldest)->order))
				oldest = *lane;
		}
		if (!oldest)
			return;
		drop_oldest(evidence, oldest);
	}
}

/* Takes the calls of a step: they may become the context of a later one. */
static int hold(struct evidence *evidence, struct lane *lane, struct step *step)
{
	struct held *held;

	if (!evidence->context)
		return 0;
	if (!lane->held)
		lane->held = calloc(evidence->context, sizeof(*lane->held));
	if (!lane->held)
		return -ENOMEM;
	if (lane->count == evidence->context)
		drop_oldest(evidence, lane);
	make_room(evidence, step->calls.count);
	held = &lane->held[(lane->first + lane->count++) % evidence->context];
	*held = (struct held){.step = *step, .position = lane->steps, .order = evidence->pushed};
	/* These are freed before the calls may be shown. */
	held->step.gpu = NULL;
	held->step.wakes = (wake_vec){0};
	held->step.stacks = (stack_vec){0};
	held->step.peers = (peer_vec){0};
	held->step.looks = (look_vec){0};
	held->step.wokens = (woken_vec){0};
	held->step.takens = (taken_vec){0};
	evidence->calls += step->calls.count;
	memset(&step->calls, 0, sizeof(step->calls));
	return 0;
}

/* Begins the lane's next step: drops what is too old to be its context. */
static void advance(struct evidence *evidence, struct lane *lane)
{
	lane->order = ++evidence->pushed;
	lane->steps++;
	while (lane->count && oldest_held(lane)->position + evidence->context < lane->steps)
		drop_oldest(evidence, lane);
}

static int show_held(struct evidence *evidence, const struct window *window, struct lane *lane)
{
	int err = 0;

	while (lane->count) {
		keep_first(&err,
			   evidence->on_calls(evidence->ctx, window, &oldest_held(lane)->step));
		drop_oldest(evidence, lane);
	}
	return err;
}

int evidence__push(struct evidence *evidence, const struct window *window, struct step *step,
		   bool escalated)
{
	/* PyTorch's operators of a profiled step are shown beside its calls. */
	bool shown = escalated || step->kind_number <= EVIDENCE_FIRST || step_is_profiled(step) ||
		     window->record.detail == FBT_DETAIL_ALL;
	struct lane *lane = find_lane(evidence, &step->record);
	int err = 0;

	if (!lane)
		return shown ? evidence->on_calls(evidence->ctx, window, step) : -ENOMEM;
	advance(evidence, lane);
	if (lane->wanted) {
		lane->wanted--;
		shown = true;
	}
	if (escalated) {
		lane->wanted = evidence->context;
		err = show_held(evidence, window, lane);
	}
	if (!shown)
		return hold(evidence, lane, step);
	keep_first(&err, evidence->on_calls(evidence->ctx, window, step));
	return err;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu/launches.h"

#include <math.h>
#include <sys/random.h>

#include "base/arith.h"
#include "base/stats.h"
#include "model/gpu.h"

/* Numbers keys 0, 1, … in the order in which they are first seen. */
struct numbering {
	uint64_t *keys;	 /* by number */
	uint32_t *slots; /* a hash table: number + 1, 0: free */
	size_t mask;	 /* slots - 1 */
	int shift;	 /* that leaves the bits of mask, of 64 */
	uint64_t factor; /* random: the process chooses the keys, and must not know which collide */
	size_t count;
	size_t last; /* number that was looked up last: mostly it is looked up again */
};

struct launch {
	const struct fbt_gpu_api *call;
	bool mine;
	uint64_t first_ns;  /* start of its first work, in time */
	uint64_t last_ns;   /* … and of its last; 0: none takes time */
	uint64_t before_ns; /* end of the work before the first, in its stream; 0: none */
	uint64_t work_ns;
};

struct launches {
	struct numbering calls;
	struct numbering streams;
	struct launch *items;	  /* by number of the call */
	uint64_t *stream_ends_ns; /* by number of the stream */
	uint64_t *values;	  /* those that a median is looked for in */
};

static int numbering_init(struct numbering *numbering, size_t most, uint64_t factor)
{
	size_t slots = 16;
	int shift = 60;

	for (; slots < 2 * most; shift--)
		slots *= 2;
	*numbering = (struct numbering){.mask = slots - 1, .shift = shift, .factor = factor};
	numbering->keys = reallocarray(NULL, most, sizeof(*numbering->keys));
	numbering->slots = calloc(slots, sizeof(*numbering->slots));
	return numbering->keys && numbering->slots ? 0 : -ENOMEM;
}

static void numbering_free(struct numbering *numbering)
{
	free(numbering->keys);
	free(numbering->slots);
}

/* The number of a key. It is new if it equals count before the call. */
static size_t find_number(struct numbering *numbering, uint64_t key)
{
	size_t i = key * numbering->factor >> numbering->shift;

	if (numbering->count && numbering->keys[numbering->last] == key)
		return numbering->last;
	while (numbering->slots[i] && numbering->keys[numbering->slots[i] - 1] != key)
		i = (i + 1) & numbering->mask;
	if (!numbering->slots[i]) {
		numbering->keys[numbering->count++] = key;
		numbering->slots[i] = (uint32_t)numbering->count;
	}
	numbering->last = numbering->slots[i] - 1;
	return numbering->last;
}

static int launches_init(struct launches *all, size_t count)
{
	uint64_t factor;
	int err;

	*all = (struct launches){0};
	if (getrandom(&factor, sizeof(factor), GRND_NONBLOCK) < 0)
		factor = UINT64_C(0x9e3779b97f4a7c15);
	factor |= 1;
	err = numbering_init(&all->calls, count, factor);
	if (!err)
		err = numbering_init(&all->streams, count, factor);
	if (err)
		return err;
	all->items = reallocarray(NULL, count, sizeof(*all->items));
	all->stream_ends_ns = reallocarray(NULL, count, sizeof(*all->stream_ends_ns));
	all->values = reallocarray(NULL, count, sizeof(*all->values));
	return all->items && all->stream_ends_ns && all->values ? 0 : -ENOMEM;
}

static void launches_free(struct launches *all)
{
	numbering_free(&all->calls);
	numbering_free(&all->streams);
	free(all->items);
	free(all->stream_ends_ns);
	free(all->values);
}

/* Replaces the end of the latest work in a stream by that of this work; returns the old one. */
static uint64_t replace_stream_end(struct launches *all, const struct fbt_gpu_work *work)
{
	/* A context is of one device. */
	uint64_t key = (uint64_t)work->context << 32 | work->stream;
	size_t known = all->streams.count;
	size_t number = find_number(&all->streams, key);
	uint64_t before_ns = number == known ? 0 : all->stream_ends_ns[number];

	all->stream_ends_ns[number] = max_u64(before_ns, work->end_ns);
	return before_ns;
}

static void add_item(struct launches *all, const struct gpu_item *item)
{
	const struct fbt_gpu_api *call = gpu_item_call(item);
	const struct fbt_gpu_work *work = item->work;
	uint64_t before_ns = replace_stream_end(all, work);
	struct launch *launch;
	size_t known, number;

	if (!call)
		return;
	known = all->calls.count;
	number = find_number(&all->calls, call->correlation);
	launch = &all->items[number];
	if (number == known)
		*launch = (struct launch){.call = call,
					  .mine = item->mine,
					  .first_ns = work->start_ns,
					  .before_ns = before_ns};
	launch->work_ns =
		add_saturating(launch->work_ns, sub_saturating(work->end_ns, work->start_ns));
	if (gpu_item_takes_time(item))
		launch->last_ns = work->start_ns;
}

static uint64_t call_of(const struct launch *launch)
{
	return sub_saturating(launch->call->end_ns, launch->call->start_ns);
}

static uint64_t delay_of(const struct launch *launch)
{
	return sub_saturating(launch->first_ns, max_u64(launch->call->end_ns, launch->before_ns));
}

/* The median over the step's launches of a value, an expression of launch, a pointer. */
#define median_over(all, value)                                                                    \
	({                                                                                         \
		size_t median_count = 0;                                                           \
		for (size_t i = 0; i < (all)->calls.count; i++) {                                  \
			const struct launch *launch = &(all)->items[i];                            \
			if (launch->mine)                                                          \
				(all)->values[median_count++] = (value);                           \
		}                                                                                  \
		median_u64((all)->values, median_count);                                           \
	})

static double depth_of(const struct launches *all, struct gpu_interval step)
{
	uint64_t ns = 0;

	if (!all->calls.count || !gpu_interval_ns(step))
		return (double)NAN;
	for (size_t i = 0; i < all->calls.count; i++) {
		const struct launch *launch = &all->items[i];
		struct gpu_interval waits = {launch->call->end_ns, launch->last_ns};

		ns = add_saturating(ns, gpu_interval_ns(gpu_interval_clip(waits, step)));
	}
	return (double)ns / (double)gpu_interval_ns(step);
}

static void fill(struct launches *all, struct gpu_interval step, struct gpu_figures *figures)
{
	for (size_t i = 0; i < all->calls.count; i++) {
		const struct launch *launch = &all->items[i];

		if (!launch->mine)
			continue;
		figures->launches++;
		figures->graph_launches += launch->call->api_class == FBT_GPU_API_GRAPH;
		figures->tklqt_ns = add_saturating(
			figures->tklqt_ns, add_saturating(call_of(launch), delay_of(launch)));
	}
	figures->launch_latency_ns =
		median_over(all, sub_saturating(launch->first_ns, launch->call->end_ns));
	figures->launch_api_ns = median_over(all, call_of(launch));
	figures->queue_delay_ns = median_over(all, delay_of(launch));
	figures->wait_behind_ns =
		median_over(all, sub_saturating(min_u64(launch->first_ns, launch->before_ns),
						launch->call->end_ns));
	figures->work_ns = median_over(all, launch->work_ns);
	figures->queue_depth = depth_of(all, step);
}

int gpu_launches_compute(const struct gpu_item *items, size_t count, struct gpu_interval step,
			 struct gpu_figures *figures)
{
	struct launches all;
	int err;

	figures->queue_depth = (double)NAN;
	if (!count)
		return 0;
	err = launches_init(&all, count);
	for (size_t i = 0; !err && i < count; i++)
		add_item(&all, &items[i]);
	if (!err)
		fill(&all, step, figures);
	launches_free(&all);
	return err;
}

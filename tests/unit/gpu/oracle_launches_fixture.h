/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The definitions of the figures of launches and of the queue, each counted tick by tick. */
#ifndef FBT_ORACLE_LAUNCHES_FIXTURE_H
#define FBT_ORACLE_LAUNCHES_FIXTURE_H

#include <math.h>

#include "oracle_fixture.h"

static inline int compare_numbers(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static inline uint64_t median(uint64_t *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare_numbers);
	/* round((count - 1) / 2), halves up */
	return count ? values[(size_t)round((double)(count - 1) / 2)] : 0;
}

/* The time at which the stream has finished all earlier work. */
static inline uint64_t end_before(const struct oracle *oracle, size_t of)
{
	const struct fbt_gpu_work *work = oracle->items[of]->work;
	uint64_t end = 0;

	for (size_t i = 0; i < of; i++) {
		const struct fbt_gpu_work *other = oracle->items[i]->work;

		if (other->device == work->device && other->context == work->context &&
		    other->stream == work->stream && other->end_ns > end)
			end = other->end_ns;
	}
	return end;
}

static inline uint64_t above(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static inline uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

struct launches {
	uint64_t latency[SCENE_MAX], call[SCENE_MAX], delay[SCENE_MAX], behind[SCENE_MAX];
	uint64_t work[SCENE_MAX];
	uint64_t depth_ns;
	size_t all;
};

static inline bool is_first_of_launch(const struct oracle *oracle, size_t of)
{
	for (size_t i = 0; i < of; i++) {
		if (oracle->items[i]->api == oracle->items[of]->api)
			return false;
	}
	return true;
}

static inline void expect_launch(const struct oracle *oracle, size_t of, struct launches *launches,
				 struct gpu_figures *expected)
{
	const struct gpu_item *first = oracle->items[of];
	uint64_t call_end = first->api->end_ns, before = end_before(oracle, of);
	uint64_t begin = first->work->start_ns, last = 0, work = 0;
	size_t n = expected->launches;

	for (size_t i = of; i < oracle->count; i++) {
		if (oracle->items[i]->api != first->api)
			continue;
		work += oracle->items[i]->work->end_ns - oracle->items[i]->work->start_ns;
		if (takes_time(oracle->items[i]))
			last = oracle->items[i]->work->start_ns;
	}
	launches->all++;
	for (int i = 0; i < TICKS; i++)
		launches->depth_ns +=
			covers_tick(call_end, last, step_tick(oracle, i)) ? oracle->tick_ns : 0;
	if (!first->mine)
		return;
	launches->latency[n] = above(begin, call_end);
	launches->call[n] = call_end - first->api->start_ns;
	launches->delay[n] = above(begin, larger(call_end, before));
	launches->behind[n] = above(smaller(begin, before), call_end);
	launches->work[n] = work;
	expected->tklqt_ns += launches->call[n] + launches->delay[n];
	expected->graph_launches += first->api->api_class == FBT_GPU_API_GRAPH;
	expected->launches++;
}

static inline bool queue_is_empty(const struct oracle *oracle, uint64_t at)
{
	for (size_t i = 0; i < oracle->count; i++) {
		if (is_known(oracle->items[i]) && takes_time(oracle->items[i]) &&
		    covers_tick(oracle->items[i]->api->end_ns, oracle->items[i]->work->start_ns,
				at))
			return false;
	}
	return true;
}

static inline void expect_queue(const struct oracle *oracle, struct gpu_figures *expected)
{
	struct launches launches = {0};
	uint64_t empty = 0;
	size_t n;

	for (size_t i = 0; i < oracle->count; i++) {
		if (is_known(oracle->items[i]) && is_first_of_launch(oracle, i))
			expect_launch(oracle, i, &launches, expected);
	}
	n = expected->launches;
	expected->launch_latency_ns = median(launches.latency, n);
	expected->launch_api_ns = median(launches.call, n);
	expected->queue_delay_ns = median(launches.delay, n);
	expected->wait_behind_ns = median(launches.behind, n);
	expected->work_ns = median(launches.work, n);
	for (int i = 0; i < TICKS; i++) {
		uint64_t at = step_tick(oracle, i);

		if (!runs(oracle, ANY, at) && queue_is_empty(oracle, at))
			empty += oracle->tick_ns;
	}
	expected->queue_depth =
		launches.all ? (double)launches.depth_ns / (double)(TICKS * oracle->tick_ns)
			     : (double)NAN;
	expected->idle_empty =
		expected->idle_ns ? (double)empty / (double)expected->idle_ns : (double)NAN;
}

#endif

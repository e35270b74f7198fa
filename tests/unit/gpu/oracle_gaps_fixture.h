/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The definitions of what the GPU waits for, each counted tick by tick. */
#ifndef FBT_ORACLE_GAPS_FIXTURE_H
#define FBT_ORACLE_GAPS_FIXTURE_H

#include "oracle_fixture.h"

static inline const struct gpu_item *launched_first(const struct gpu_item *a,
						    const struct gpu_item *b)
{
	if (!a || !is_known(a))
		return b;
	if (!is_known(b))
		return a;
	return b->api->start_ns < a->api->start_ns ? b : a;
}

/*
 * The work that begins at the end of a gap, or in the last gap the work that follows the step.
 * NULL: there is none.
 */
static inline const struct gpu_item *next_of(const struct oracle *oracle, uint64_t from,
					     uint64_t to)
{
	bool tail = to == step_tick(oracle, TICKS);
	const struct gpu_item *next = NULL;

	for (size_t i = 0; i < oracle->count; i++) {
		const struct gpu_item *item = oracle->items[i];

		if (!takes_time(item) || item->work->start_ns < to)
			continue;
		if (!tail && item->work->start_ns == to)
			next = launched_first(next, item);
		if (!tail || !is_known(item) || item->api->start_ns >= to)
			continue;
		if (!next || item->work->start_ns < next->work->start_ns)
			next = item;
		else if (item->work->start_ns == next->work->start_ns)
			next = launched_first(next, item);
	}
	return next;
}

/* Of the work that ends where a gap begins, the one that started first. */
static inline const struct fbt_gpu_work *before_of(const struct oracle *oracle, uint64_t from)
{
	for (size_t i = 0; i < oracle->count && from > step_tick(oracle, 0); i++) {
		if (takes_time(oracle->items[i]) && oracle->items[i]->work->end_ns == from)
			return oracle->items[i]->work;
	}
	return NULL;
}

struct wait_sums {
	uint64_t ns[8][2]; /* by number, and whether it blocked */
};

static inline void expect_wait(const struct oracle *oracle, uint64_t at, bool mine,
			       struct gpu_figures *expected, struct wait_sums *sums)
{
	const struct fbt_call *call = call_at(oracle->scene, at);
	bool blocked = blocks_at(oracle->scene, at);

	expected->host_wait_ns += oracle->tick_ns;
	if (!mine || !calls_known(&oracle->scene->step)) {
		expected->wait_unknown_ns += oracle->tick_ns;
		return;
	}
	if (!call)
		expected->wait_user_ns += oracle->tick_ns;
	else if (blocked)
		expected->wait_blocked_ns += oracle->tick_ns;
	else
		expected->wait_syscall_ns += oracle->tick_ns;
	if (call)
		sums->ns[call->nr][blocked] += oracle->tick_ns;
}

static inline void expect_gap(const struct oracle *oracle, uint64_t from, uint64_t to,
			      struct gpu_figures *expected, struct wait_sums *sums)
{
	const struct gpu_item *next = next_of(oracle, from, to);
	const struct fbt_gpu_work *before = before_of(oracle, from);
	bool nodes = next && before && before->graph_node && next->work->graph_node &&
		     before->graph == next->work->graph;
	uint64_t host = 0, queued = 0;

	for (uint64_t at = from; at < to; at += oracle->tick_ns) {
		if (next && !is_known(next)) {
			expected->unattributed_ns += oracle->tick_ns;
		} else if (!next || at < next->api->start_ns) {
			expect_wait(oracle, at, !next || next->api->tid == SCENE_THREAD, expected,
				    sums);
			host++;
		} else if (at < next->api->end_ns) {
			expected->launch_ns += oracle->tick_ns;
		} else {
			queued += oracle->tick_ns;
		}
	}
	expected->queue_ns += queued;
	if (queued < (nodes ? 2000 : 5000))
		expected->kernel_wait_ns += queued;
	else
		expected->dependency_ns += queued;
	if (host)
		expected->hta_host_wait_ns += to - from;
}

static inline void list_sums(struct wait_sums *sums, struct gpu_figures *expected)
{
	for (int place = 0; place < GPU_WAIT_CALLS_MAX; place++) {
		uint64_t *most = &sums->ns[0][0];

		for (size_t i = 0; i < 16; i++) {
			if ((&sums->ns[0][0])[i] > *most)
				most = &(&sums->ns[0][0])[i];
		}
		if (!*most)
			break;
		expected->wait_calls[place] =
			(struct gpu_wait_call){.nr = (uint32_t)((most - &sums->ns[0][0]) / 2),
					       .blocked = (most - &sums->ns[0][0]) % 2,
					       .ns = *most};
		*most = 0;
	}
}

static inline void expect_gaps(const struct oracle *oracle, struct gpu_figures *expected)
{
	struct wait_sums sums = {0};
	int from = -1;

	for (int i = 0; i <= TICKS; i++) {
		bool idle = i < TICKS && !runs(oracle, ANY, step_tick(oracle, i));

		if (idle && from < 0)
			from = i;
		if (!idle && from >= 0) {
			expect_gap(oracle, step_tick(oracle, from), step_tick(oracle, i), expected,
				   &sums);
			from = -1;
		}
	}
	list_sums(&sums, expected);
}

#endif

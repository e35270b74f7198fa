/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_queue.h"

#include <math.h>
#include <sys/random.h>

#include "gpu_interval.h"

/* Numbers keys 0, 1, … in the order in which they are first seen. */
struct numbering {
	uint64_t *keys;	 /* by number */
	uint32_t *slots; /* a hash table: number + 1, 0: free */
	size_t mask;	 /* slots - 1 */
	int shift;	 /* that leaves the bits of mask, of 64 */
	uint64_t factor; /* the process chooses the keys: it may not know which of them meet */
	size_t count;
	size_t last; /* number that was looked up last: most often it is asked for again */
};

struct launch {
	const struct fbt_gpu_api *call;
	bool mine;
	uint64_t first_ns;  /* start of its first work, in time */
	uint64_t last_ns;   /* … and of its last; 0: none takes time */
	uint64_t before_ns; /* end of the work before the first, in its stream; 0: none */
	uint64_t work_ns;
};

struct queue {
	struct numbering calls;
	struct numbering streams;
	struct launch *launches;  /* by number of the call */
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

/* Number of a key; it is new if that is what count was. */
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

static int queue_init(struct queue *queue, size_t count)
{
	uint64_t factor;
	int err;

	*queue = (struct queue){0};
	if (getrandom(&factor, sizeof(factor), GRND_NONBLOCK) < 0)
		factor = UINT64_C(0x9e3779b97f4a7c15);
	factor |= 1;
	err = numbering_init(&queue->calls, count, factor);
	if (!err)
		err = numbering_init(&queue->streams, count, factor);
	if (err)
		return err;
	queue->launches = reallocarray(NULL, count, sizeof(*queue->launches));
	queue->stream_ends_ns = reallocarray(NULL, count, sizeof(*queue->stream_ends_ns));
	queue->values = reallocarray(NULL, count, sizeof(*queue->values));
	return queue->launches && queue->stream_ends_ns && queue->values ? 0 : -ENOMEM;
}

static void queue_free(struct queue *queue)
{
	numbering_free(&queue->calls);
	numbering_free(&queue->streams);
	free(queue->launches);
	free(queue->stream_ends_ns);
	free(queue->values);
}

/* End of the work before this one in its stream, which its own takes the place of. */
static uint64_t replace_stream_end(struct queue *queue, const struct fbt_gpu_work *work)
{
	/* A context is of one device. */
	uint64_t key = (uint64_t)work->context << 32 | work->stream;
	size_t known = queue->streams.count;
	size_t number = find_number(&queue->streams, key);
	uint64_t before_ns = number == known ? 0 : queue->stream_ends_ns[number];

	queue->stream_ends_ns[number] = gpu_ns_max(before_ns, work->end_ns);
	return before_ns;
}

static void add_item(struct queue *queue, const struct gpu_item *item)
{
	const struct fbt_gpu_api *call = gpu_item_call(item);
	const struct fbt_gpu_work *work = item->work;
	uint64_t before_ns = replace_stream_end(queue, work);
	struct launch *launch;
	size_t known, number;

	if (!call)
		return;
	known = queue->calls.count;
	number = find_number(&queue->calls, call->correlation);
	launch = &queue->launches[number];
	if (number == known)
		*launch = (struct launch){.call = call,
					  .mine = item->mine,
					  .first_ns = work->start_ns,
					  .before_ns = before_ns};
	launch->work_ns = gpu_ns_add(launch->work_ns, gpu_ns_since(work->end_ns, work->start_ns));
	if (gpu_item_takes_time(item))
		launch->last_ns = work->start_ns;
}

/* --- figures -------------------------------------------------------------------------------- */

/* Times that need more rounds of selection were made to. */
#define ROUNDS_MAX 64

static int compare_values(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* Hoare's selection. */
uint64_t gpu_median(uint64_t *values, size_t count)
{
	size_t rank = count / 2, low = 0, high = count ? count - 1 : 0;

	for (int round = 0; low < high && round < ROUNDS_MAX; round++) {
		uint64_t pivot = values[low + (high - low) / 2];
		size_t i = low, j = high;

		for (;;) {
			uint64_t swapped;

			while (values[i] < pivot)
				i++;
			while (values[j] > pivot)
				j--;
			if (i >= j)
				break;
			swapped = values[i];
			values[i++] = values[j];
			values[j--] = swapped;
		}
		/* All up to j are at most the pivot, all behind at least. */
		if (rank <= j)
			high = j;
		else
			low = j + 1;
	}
	if (low < high)
		qsort(values, count, sizeof(*values), compare_values);
	return count ? values[rank] : 0;
}

static uint64_t latency_of(const struct launch *launch)
{
	return gpu_ns_since(launch->first_ns, launch->call->end_ns);
}

static uint64_t call_of(const struct launch *launch)
{
	return gpu_ns_since(launch->call->end_ns, launch->call->start_ns);
}

static uint64_t delay_of(const struct launch *launch)
{
	return gpu_ns_since(launch->first_ns, gpu_ns_max(launch->call->end_ns, launch->before_ns));
}

static uint64_t behind_of(const struct launch *launch)
{
	return gpu_ns_since(gpu_ns_min(launch->first_ns, launch->before_ns), launch->call->end_ns);
}

static uint64_t work_of(const struct launch *launch)
{
	return launch->work_ns;
}

static uint64_t median_of(struct queue *queue, uint64_t (*figure)(const struct launch *launch))
{
	size_t count = 0;

	for (size_t i = 0; i < queue->calls.count; i++) {
		if (queue->launches[i].mine)
			queue->values[count++] = figure(&queue->launches[i]);
	}
	return gpu_median(queue->values, count);
}

static double depth_of(const struct queue *queue, struct gpu_interval step)
{
	uint64_t ns = 0;

	if (!queue->calls.count || !gpu_interval_ns(step))
		return (double)NAN;
	for (size_t i = 0; i < queue->calls.count; i++) {
		const struct launch *launch = &queue->launches[i];
		struct gpu_interval waits = {launch->call->end_ns, launch->last_ns};

		ns = gpu_ns_add(ns, gpu_interval_ns(gpu_interval_clip(waits, step)));
	}
	return (double)ns / (double)gpu_interval_ns(step);
}

static void fill(struct queue *queue, struct gpu_interval step, struct gpu_figures *figures)
{
	for (size_t i = 0; i < queue->calls.count; i++) {
		const struct launch *launch = &queue->launches[i];

		if (!launch->mine)
			continue;
		figures->launches++;
		figures->graph_launches += launch->call->api_class == FBT_GPU_API_GRAPH;
		figures->tklqt_ns = gpu_ns_add(figures->tklqt_ns,
					       gpu_ns_add(call_of(launch), delay_of(launch)));
	}
	figures->launch_latency_ns = median_of(queue, latency_of);
	figures->launch_api_ns = median_of(queue, call_of);
	figures->queue_delay_ns = median_of(queue, delay_of);
	figures->wait_behind_ns = median_of(queue, behind_of);
	figures->work_ns = median_of(queue, work_of);
	figures->queue_depth = depth_of(queue, step);
}

int gpu_queue_compute(const struct gpu_item *items, size_t count, struct gpu_interval step,
		      struct gpu_figures *figures)
{
	struct queue queue;
	int err;

	figures->queue_depth = (double)NAN;
	if (!count)
		return 0;
	err = queue_init(&queue, count);
	for (size_t i = 0; !err && i < count; i++)
		add_item(&queue, &items[i]);
	if (!err)
		fill(&queue, step, figures);
	queue_free(&queue);
	return err;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_interval.h"

int gpu_interval_append(gpu_interval_vec *set, struct gpu_interval interval)
{
	if (set->count) {
		struct gpu_interval *last = &set->items[set->count - 1];

		if (interval.start_ns <= last->end_ns) {
			last->end_ns = gpu_ns_max(last->end_ns, interval.end_ns);
			return 0;
		}
	}
	return gpu_interval_ns(interval) ? vec_push(set, interval) : 0;
}

static int compare_starts(const void *a, const void *b)
{
	const struct gpu_interval *left = a, *right = b;

	return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

void gpu_interval_sort(gpu_interval_vec *set)
{
	size_t count = set->count;

	if (!count)
		return;
	qsort(set->items, count, sizeof(*set->items), compare_starts);
	set->count = 0;
	/* There is room: the set never grows beyond what has been read. */
	for (size_t i = 0; i < count; i++)
		(void)gpu_interval_append(set, set->items[i]);
}

uint64_t gpu_interval_length(const gpu_interval_vec *set)
{
	uint64_t ns = 0;

	vec_for_each (interval, set)
		ns = gpu_ns_add(ns, gpu_interval_ns(*interval));
	return ns;
}

uint64_t gpu_interval_common_with(const gpu_interval_vec *set, size_t *next,
				  struct gpu_interval interval)
{
	uint64_t ns = 0;

	while (*next < set->count && set->items[*next].end_ns <= interval.start_ns)
		++*next;
	for (size_t i = *next; i < set->count; i++) {
		if (set->items[i].start_ns >= interval.end_ns)
			break;
		ns = gpu_ns_add(ns, gpu_interval_ns(gpu_interval_clip(interval, set->items[i])));
	}
	return ns;
}

uint64_t gpu_interval_common(const gpu_interval_vec *a, const gpu_interval_vec *b)
{
	uint64_t ns = 0;
	size_t next = 0;

	vec_for_each (interval, a)
		ns = gpu_ns_add(ns, gpu_interval_common_with(b, &next, *interval));
	return ns;
}

int gpu_interval_unite(const gpu_interval_vec *a, const gpu_interval_vec *b,
		       gpu_interval_vec *result)
{
	size_t i = 0, j = 0;
	int err = 0;

	while (!err && (i < a->count || j < b->count)) {
		bool from_a = j == b->count ||
			      (i < a->count && a->items[i].start_ns <= b->items[j].start_ns);

		err = gpu_interval_append(result, from_a ? a->items[i++] : b->items[j++]);
	}
	return err;
}

int gpu_interval_intersect(const gpu_interval_vec *a, const gpu_interval_vec *b,
			   gpu_interval_vec *result)
{
	size_t i = 0, j = 0;
	int err = 0;

	while (!err && i < a->count && j < b->count) {
		struct gpu_interval common = gpu_interval_clip(a->items[i], b->items[j]);

		if (gpu_interval_ns(common))
			err = gpu_interval_append(result, common);
		if (a->items[i].end_ns < b->items[j].end_ns)
			i++;
		else
			j++;
	}
	return err;
}

int gpu_interval_subtract(const gpu_interval_vec *a, const gpu_interval_vec *b,
			  gpu_interval_vec *result)
{
	size_t j = 0;
	int err;

	vec_for_each (whole, a) {
		uint64_t start_ns = whole->start_ns;

		while (j < b->count && b->items[j].end_ns <= start_ns)
			j++;
		for (size_t k = j; k < b->count && b->items[k].start_ns < whole->end_ns; k++) {
			struct gpu_interval part = {start_ns, b->items[k].start_ns};

			err = gpu_interval_append(result, part);
			if (err)
				return err;
			start_ns = b->items[k].end_ns;
		}
		err = gpu_interval_append(result, (struct gpu_interval){start_ns, whole->end_ns});
		if (err)
			return err;
	}
	return 0;
}

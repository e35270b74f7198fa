/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "class_history.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FILTERED_MIN 10 /* where fewer pass the filter, all count */
#define CAPACITY_MIN 16

struct class_history {
	uint32_t window_steps;
	uint32_t count;
	uint32_t told;	 /* so many steps more */
	uint32_t oldest; /* 0 until the window is full */
	uint32_t capacity;
	struct cause_times *steps; /* a ring once it is full */
	uint64_t *works;	   /* sorted */
	uint64_t *rests;	   /* sorted */
	uint64_t *scratch;
};

struct class_history *class_history__new(uint32_t window_steps)
{
	struct class_history *history = calloc(1, sizeof(*history));

	if (history)
		history->window_steps = window_steps;
	return history;
}

void class_history__free(struct class_history *history)
{
	if (!history)
		return;
	free(history->steps);
	free(history->works);
	free(history->rests);
	free(history->scratch);
	free(history);
}

static uint64_t rest_of(const struct cause_times *times)
{
	uint64_t rest = 0;

	for (int i = 0; i < CAUSE_COUNT; i++)
		rest += times->ns[i];
	return rest - cause_work_ns(times);
}

static int grow_array(void **array, uint32_t capacity, size_t size)
{
	void *larger = reallocarray(*array, capacity, size);

	if (!larger)
		return -ENOMEM;
	*array = larger;
	return 0;
}

/* Most classes are small: a prompt of that length came once. */
static int grow(struct class_history *history)
{
	uint32_t capacity = history->capacity ? history->capacity * 2 : CAPACITY_MIN;
	int err;

	if (history->count < history->capacity)
		return 0;
	if (capacity > history->window_steps)
		capacity = history->window_steps;
	err = grow_array((void **)&history->steps, capacity, sizeof(*history->steps));
	if (!err)
		err = grow_array((void **)&history->works, capacity, sizeof(*history->works));
	if (!err)
		err = grow_array((void **)&history->rests, capacity, sizeof(*history->rests));
	if (!err)
		err = grow_array((void **)&history->scratch, capacity, sizeof(*history->scratch));
	if (!err)
		history->capacity = capacity;
	return err;
}

/* Where value is in a sorted array, or belongs: before those equal to it. */
static uint32_t position_of(const uint64_t *sorted, uint32_t count, uint64_t value)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (sorted[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void insert_sorted(uint64_t *sorted, uint32_t count, uint64_t value)
{
	uint32_t at = position_of(sorted, count, value);

	memmove(&sorted[at + 1], &sorted[at], (count - at) * sizeof(*sorted));
	sorted[at] = value;
}

/* Moves only what lies between the two. */
static void replace_sorted(uint64_t *sorted, uint32_t count, uint64_t old, uint64_t value)
{
	uint32_t from = position_of(sorted, count, old);
	uint32_t to = position_of(sorted, count, value);

	if (to > from) {
		to--;
		memmove(&sorted[from], &sorted[from + 1], (to - from) * sizeof(*sorted));
	} else {
		memmove(&sorted[to + 1], &sorted[to], (from - to) * sizeof(*sorted));
	}
	sorted[to] = value;
}

static void replace_oldest(struct class_history *history, const struct cause_times *times)
{
	struct cause_times *oldest = &history->steps[history->oldest];

	replace_sorted(history->works, history->count, cause_work_ns(oldest), cause_work_ns(times));
	replace_sorted(history->rests, history->count, rest_of(oldest), rest_of(times));
	*oldest = *times;
	history->oldest = (history->oldest + 1) % history->window_steps;
}

int class_history__add(struct class_history *history, const struct cause_times *times)
{
	int err;

	history->told -= history->told != 0;
	if (history->count == history->window_steps) {
		replace_oldest(history, times);
		return 0;
	}
	err = grow(history);
	if (err)
		return err;
	insert_sorted(history->works, history->count, cause_work_ns(times));
	insert_sorted(history->rests, history->count, rest_of(times));
	history->steps[history->count++] = *times;
	return 0;
}

void class_history__mark_told(struct class_history *history)
{
	history->told = history->window_steps;
}

bool class_history__is_told(const struct class_history *history)
{
	return history->told != 0;
}

uint32_t class_history__count(const struct class_history *history)
{
	return history->count;
}

static uint64_t median_of(const struct class_history *history, const uint64_t *sorted)
{
	return history->count ? sorted[history->count / 2] : 0;
}

uint64_t class_history__usual_work_ns(const struct class_history *history)
{
	return median_of(history, history->works);
}

uint64_t class_history__usual_rest_ns(const struct class_history *history)
{
	return median_of(history, history->rests);
}

/* The steps first … last - 1 of those sorted by their rest. */
static double cv_of(const struct class_history *history, double work, uint32_t first, uint32_t last)
{
	double count = (double)(last - first), sum = 0, squares = 0, mean;

	for (uint32_t i = first; i < last; i++)
		sum += work + (double)history->rests[i];
	mean = sum / count;
	for (uint32_t i = first; i < last; i++) {
		double difference = work + (double)history->rests[i] - mean;

		squares += difference * difference;
	}
	return mean > 0 ? sqrt(squares / count) / mean * 100 : 0;
}

double class_history__cv_percent(const struct class_history *history)
{
	double work = (double)class_history__usual_work_ns(history);
	uint32_t first = 0, last = history->count;
	uint32_t quarter = history->count / 4;
	uint32_t three_quarters = (uint32_t)((uint64_t)history->count * 3 / 4);
	double low, high, reach;

	if (!history->count)
		return 0;
	if (history->count >= FILTERED_MIN) {
		/* In doubles, as the seed computes them. */
		low = work + (double)history->rests[quarter];
		high = work + (double)history->rests[three_quarters];
		reach = 1.5 * (high - low);
		while (first < last && work + (double)history->rests[first] < low - reach)
			first++;
		while (last > first && work + (double)history->rests[last - 1] > high + reach)
			last--;
	}
	if (last - first >= FILTERED_MIN)
		return cv_of(history, work, first, last);
	return cv_of(history, work, 0, history->count);
}

static void swap(uint64_t *a, uint64_t *b)
{
	uint64_t value = *a;

	*a = *b;
	*b = value;
}

/* Hoare's selection: the value that would be at rank if values were sorted. Reorders them. */
static uint64_t value_at_rank(uint64_t *values, int64_t count, int64_t rank)
{
	int64_t low = 0, high = count - 1;

	while (low < high) {
		uint64_t pivot = values[low + (high - low) / 2];
		int64_t i = low, j = high;

		while (i <= j) {
			while (values[i] < pivot)
				i++;
			while (values[j] > pivot)
				j--;
			if (i <= j)
				swap(&values[i++], &values[j--]);
		}
		if (rank <= j)
			high = j;
		else if (rank >= i)
			low = i;
		else
			break;
	}
	return values[rank];
}

/* Of what was put into scratch. Most parts of most steps are 0. */
static uint64_t scratch_median(const struct class_history *history)
{
	uint32_t zeros = 0;

	for (uint32_t i = 0; i < history->count; i++)
		zeros += !history->scratch[i];
	if (zeros > history->count / 2 || !history->count)
		return 0;
	return value_at_rank(history->scratch, history->count, history->count / 2);
}

void class_history__usual(const struct class_history *history, struct cause_times *usual)
{
	for (int part = 0; part < CAUSE_COUNT; part++) {
		for (uint32_t i = 0; i < history->count; i++)
			history->scratch[i] = history->steps[i].ns[part];
		usual->ns[part] = scratch_median(history);
	}
	for (uint32_t i = 0; i < history->count; i++)
		history->scratch[i] = history->steps[i].threads_made;
	usual->threads_made = (uint32_t)scratch_median(history);
	for (uint32_t i = 0; i < history->count; i++)
		history->scratch[i] = history->steps[i].signals;
	usual->signals = (uint32_t)scratch_median(history);
}

uint64_t class_history__usual_ns(const struct class_history *history)
{
	for (uint32_t i = 0; i < history->count; i++)
		history->scratch[i] =
			cause_work_ns(&history->steps[i]) + rest_of(&history->steps[i]);
	return scratch_median(history);
}

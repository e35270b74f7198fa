/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"

/*
 * Log-linear buckets: each power of two is cut into 2^SUB_BITS, and a bucket stands for its middle,
 * so it is off by at most 1 / 2^(SUB_BITS + 1) of the value.
 */
#define SUB_BITS    9
#define SUB_COUNT   (1u << SUB_BITS)
#define BLOCK_COUNT (64 - SUB_BITS + 1)

struct stats {
	uint64_t count;
	uint64_t placed; /* values that found a bucket */
	uint64_t min;
	uint64_t max;
	unsigned __int128 sum;
	/* Welford's running mean and sum of squared differences from it. */
	long double mean;
	long double squares;
	/* Block 0: values below SUB_COUNT; block i: those of SUB_BITS + i bits. NULL until hit. */
	uint64_t *blocks[BLOCK_COUNT];
};

struct stats *stats__new(void)
{
	return calloc(1, sizeof(struct stats));
}

void stats__free(struct stats *stats)
{
	if (!stats)
		return;
	for (int i = 0; i < BLOCK_COUNT; i++)
		free(stats->blocks[i]);
	free(stats);
}

static void add_to_bucket(struct stats *stats, uint64_t value)
{
	unsigned int block = 0, sub = (unsigned int)value;

	if (value >= SUB_COUNT) {
		block = 64u - (unsigned int)__builtin_clzll(value) - SUB_BITS;
		sub = (unsigned int)(value >> (block - 1)) - SUB_COUNT;
	}
	if (!stats->blocks[block])
		stats->blocks[block] = calloc(SUB_COUNT, sizeof(uint64_t));
	if (!stats->blocks[block])
		return;
	stats->blocks[block][sub]++;
	stats->placed++;
}

static uint64_t middle_of_bucket(unsigned int block, unsigned int sub)
{
	if (!block)
		return sub;
	return ((uint64_t)(SUB_COUNT + sub) << (block - 1)) + ((UINT64_C(1) << (block - 1)) >> 1);
}

void stats__add(struct stats *stats, uint64_t value)
{
	long double difference = (long double)value - stats->mean;

	if (!stats->count || value < stats->min)
		stats->min = value;
	if (value > stats->max)
		stats->max = value;
	stats->count++;
	stats->sum += value;
	stats->mean += difference / (long double)stats->count;
	stats->squares += difference * ((long double)value - stats->mean);
	add_to_bucket(stats, value);
}

uint64_t stats__count(const struct stats *stats)
{
	return stats->count;
}

uint64_t stats__sum(const struct stats *stats)
{
	return stats->sum > UINT64_MAX ? UINT64_MAX : (uint64_t)stats->sum;
}

uint64_t stats__min(const struct stats *stats)
{
	return stats->min;
}

uint64_t stats__max(const struct stats *stats)
{
	return stats->max;
}

double stats__mean(const struct stats *stats)
{
	return stats->count ? (double)((long double)stats->sum / (long double)stats->count) : 0;
}

static uint64_t value_at_rank(const struct stats *stats, uint64_t rank)
{
	uint64_t value;

	for (unsigned int block = 0; block < BLOCK_COUNT; block++) {
		for (unsigned int sub = 0; stats->blocks[block] && sub < SUB_COUNT; sub++) {
			if (rank >= stats->blocks[block][sub]) {
				rank -= stats->blocks[block][sub];
				continue;
			}
			value = middle_of_bucket(block, sub);
			if (value < stats->min)
				return stats->min;
			return value > stats->max ? stats->max : value;
		}
	}
	return stats->max;
}

uint64_t stats__percentile(const struct stats *stats, double p)
{
	uint64_t last, rank;

	if (!stats->placed)
		return stats->max;
	if (!(p > 0))
		return stats->min;
	if (p >= 1)
		return stats->max;
	last = stats->placed - 1;
	rank = (uint64_t)round(p * (double)last);
	if (!rank)
		return stats->min;
	return rank >= last ? stats->max : value_at_rank(stats, rank);
}

double stats__cv_percent(const struct stats *stats)
{
	if (!stats->count || !stats->sum || stats->squares <= 0)
		return 0;
	return (double)(sqrtl(stats->squares / (long double)stats->count) / stats->mean * 100);
}

void top_keys_clear(struct top_keys *keys)
{
	memset(keys->slots, 0, sizeof(keys->slots));
	keys->count = 0;
}

/* The entry of key, added if it is new; NULL if there is no room. */
static struct top_key *find_entry(struct top_keys *keys, uint64_t key)
{
	uint32_t i = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) % TOP_KEYS_SLOTS;

	while (keys->slots[i]) {
		struct top_key *entry = &keys->items[keys->slots[i] - 1];

		if (entry->key == key)
			return entry;
		i = (i + 1) % TOP_KEYS_SLOTS;
	}
	if (keys->count == TOP_KEYS_MAX)
		return NULL;
	keys->items[keys->count] = (struct top_key){.key = key};
	keys->slots[i] = (uint16_t)++keys->count;
	return &keys->items[keys->count - 1];
}

void top_keys_add(struct top_keys *keys, uint64_t key, uint64_t ns)
{
	top_keys_add_many(keys, key, ns, 1);
}

void top_keys_add_many(struct top_keys *keys, uint64_t key, uint64_t ns, uint64_t calls)
{
	struct top_key *entry = find_entry(keys, key);

	if (!entry)
		return;
	entry->calls = add_saturating(entry->calls, calls);
	entry->ns = add_saturating(entry->ns, ns);
}

struct top_key top_keys_largest(const struct top_keys *keys)
{
	struct top_key largest = {0};

	for (uint32_t i = 0; i < keys->count; i++) {
		if (!largest.calls || keys->items[i].ns > largest.ns)
			largest = keys->items[i];
	}
	return largest;
}

/* Only values made up for the purpose need more rounds of selection. */
#define ROUNDS_MAX 64

static int compare_values(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* Hoare's selection. */
uint64_t median_u64(uint64_t *values, size_t count)
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
		/* All up to j are at most the pivot, all after it at least. */
		if (rank <= j)
			high = j;
		else
			low = j + 1;
	}
	if (low < high)
		qsort(values, count, sizeof(*values), compare_values);
	return count ? values[rank] : 0;
}

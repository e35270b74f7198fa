/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Distribution of durations in bounded memory: exact count, sum, min, max and mean; percentiles
 * exact below 1024, within 0.1 % above; 0.5 KiB, plus 4 KiB for each power of two that is hit
 * (values below 512 share one).
 */
#ifndef FBT_BASE_STATS_H
#define FBT_BASE_STATS_H

#include <stddef.h>
#include <stdint.h>

struct stats;

struct stats *stats__new(void); /* NULL: -ENOMEM */
void stats__free(struct stats *stats);

/* Without memory, a value counts in everything except the percentiles. */
void stats__add(struct stats *stats, uint64_t value);
uint64_t stats__count(const struct stats *stats);
uint64_t stats__sum(const struct stats *stats); /* saturates */
uint64_t stats__min(const struct stats *stats); /* 0 if empty, as all below */
uint64_t stats__max(const struct stats *stats);
double stats__mean(const struct stats *stats);

/* Rank round(p * (count - 1)), as ferrum's bench does; p is 0 … 1. */
uint64_t stats__percentile(const struct stats *stats, double p);

/*
 * Population standard deviation over mean, in percent; NaN-free: 0 if the mean is 0. Relative error
 * below 1e-9 up to 2^32 values.
 */
double stats__cv_percent(const struct stats *stats);

/*
 * The value of rank round((count - 1) / 2), as ferrum's bench takes percentiles; 0 without
 * values. Reorders values.
 */
uint64_t median_u64(uint64_t *values, size_t count);

/*
 * Time by key, to find the lock, file, command or number that took most of it. Call top_keys_clear
 * first. Keys beyond the first TOP_KEYS_MAX are ignored.
 */
#define TOP_KEYS_MAX   1024
#define TOP_KEYS_SLOTS 2048 /* a power of two */

struct top_key {
	uint64_t key;
	uint64_t ns;	/* saturates */
	uint64_t calls; /* 0: there is none */
};

struct top_keys {
	uint16_t slots[TOP_KEYS_SLOTS]; /* a hash table: index + 1 in items, 0: free */
	uint32_t count;
	struct top_key items[TOP_KEYS_MAX];
};

/* Leaves items as they are, for most steps use few of them. */
void top_keys_clear(struct top_keys *keys);
void top_keys_add(struct top_keys *keys, uint64_t key, uint64_t ns);

/* The same of several calls, ns together. */
void top_keys_add_many(struct top_keys *keys, uint64_t key, uint64_t ns, uint64_t calls);

/* The key with the most time, the first of equals; calls is 0 if there is none. */
struct top_key top_keys_largest(const struct top_keys *keys);

#endif

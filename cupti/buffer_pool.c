/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "buffer_pool.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define ALL_FREE   (UINT64_MAX >> (64 - BUFFER_POOL_COUNT))
#define LOOK_BYTES 64 /* the beginning of the first record of a buffer */
#define FNV_PRIME  0x100000001b3ull
#define POOL_TOTAL ((size_t)BUFFER_POOL_COUNT * BUFFER_POOL_BYTES)

int buffer_pool__prepare(struct buffer_pool *pool)
{
	void *memory;

	if (pool->memory)
		return 0;
	memory = mmap(NULL, POOL_TOTAL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	/*
	 * A forked child gets zero pages instead, at no cost to the fork. The mapping must stay:
	 * CUPTI in the child may still write into a buffer that it was given before.
	 */
	madvise(memory, POOL_TOTAL, MADV_WIPEONFORK);
	pool->memory = memory;
	__atomic_store_n(&pool->free, ALL_FREE, __ATOMIC_RELEASE);
	return 0;
}

uint8_t *buffer_pool__take(struct buffer_pool *pool, uint64_t now_ns)
{
	uint64_t free = __atomic_load_n(&pool->free, __ATOMIC_ACQUIRE);

	/* The lowest free buffer, so that as few pages as possible are touched. */
	while (free) {
		uint32_t place = (uint32_t)__builtin_ctzll(free);

		if (!__atomic_compare_exchange_n(&pool->free, &free, free & (free - 1), true,
						 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			continue;
		__atomic_store_n(&pool->taken_ns[place], now_ns, __ATOMIC_RELAXED);
		return pool->memory + (size_t)place * BUFFER_POOL_BYTES;
	}
	return NULL;
}

bool buffer_pool__owns(const struct buffer_pool *pool, const uint8_t *buffer)
{
	return pool->memory && buffer >= pool->memory && buffer < pool->memory + POOL_TOTAL;
}

static uint32_t place_of(const struct buffer_pool *pool, const uint8_t *buffer)
{
	return (uint32_t)((size_t)(buffer - pool->memory) / BUFFER_POOL_BYTES);
}

void buffer_pool__give_back(struct buffer_pool *pool, uint8_t *buffer)
{
	uint32_t place = place_of(pool, buffer);

	/* Clear the whole buffer: CUPTI may have begun records after the valid ones. */
	memset(buffer, 0, BUFFER_POOL_BYTES);
	__atomic_fetch_or(&pool->free, UINT64_C(1) << place, __ATOMIC_RELEASE);
}

static bool is_clear(const uint8_t *buffer)
{
	const uint64_t *words = (const uint64_t *)buffer;
	uint64_t bits = 0;

	for (size_t i = 0; i < LOOK_BYTES / sizeof(*words); i++)
		bits |= __atomic_load_n(&words[i], __ATOMIC_RELAXED);
	return !bits;
}

/* Whether a buffer is outstanding and CUPTI has written into it. */
static bool is_in_use(const struct buffer_pool *pool, uint64_t free, uint32_t place)
{
	return !(free & UINT64_C(1) << place) &&
	       !is_clear(pool->memory + (size_t)place * BUFFER_POOL_BYTES);
}

/*
 * A buffer is known by the time at which it was taken: one that comes back and is taken again
 * meanwhile has another time, so no mark has to be removed, and no other thread needs to know.
 */
void buffer_pool__write_off(struct buffer_pool *pool)
{
	uint64_t free = __atomic_load_n(&pool->free, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < BUFFER_POOL_COUNT && pool->memory; i++) {
		uint64_t taken_ns = __atomic_load_n(&pool->taken_ns[i], __ATOMIC_RELAXED);

		if (is_in_use(pool, free, i))
			__atomic_store_n(&pool->written_off_ns[i], taken_ns, __ATOMIC_RELAXED);
	}
}

bool buffer_pool__is_written_off(const struct buffer_pool *pool, const uint8_t *buffer)
{
	uint32_t place = place_of(pool, buffer);

	return __atomic_load_n(&pool->taken_ns[place], __ATOMIC_RELAXED) ==
	       __atomic_load_n(&pool->written_off_ns[place], __ATOMIC_RELAXED);
}

uint64_t buffer_pool__oldest_ns(const struct buffer_pool *pool)
{
	uint64_t free = __atomic_load_n(&pool->free, __ATOMIC_ACQUIRE);
	uint64_t oldest_ns = UINT64_MAX;

	for (uint32_t i = 0; i < BUFFER_POOL_COUNT && pool->memory; i++) {
		uint64_t taken_ns = __atomic_load_n(&pool->taken_ns[i], __ATOMIC_RELAXED);

		if (taken_ns < oldest_ns && taken_ns != pool->written_off_ns[i] &&
		    is_in_use(pool, free, i))
			oldest_ns = taken_ns;
	}
	return oldest_ns;
}

uint64_t buffer_pool__content(const struct buffer_pool *pool)
{
	uint64_t free = __atomic_load_n(&pool->free, __ATOMIC_ACQUIRE);
	uint64_t hash = 0;

	for (uint32_t i = 0; i < BUFFER_POOL_COUNT && pool->memory; i++) {
		const uint64_t *words =
			(const uint64_t *)(pool->memory + (size_t)i * BUFFER_POOL_BYTES);

		if (free & UINT64_C(1) << i)
			continue;
		/* FNV-1a, by words. An empty buffer counts too: the first record changes it. */
		hash = (hash ^ (i + 1)) * FNV_PRIME;
		for (size_t word = 0; word < BUFFER_POOL_BYTES / sizeof(*words); word++)
			hash = (hash ^ __atomic_load_n(&words[word], __ATOMIC_RELAXED)) * FNV_PRIME;
	}
	return hash;
}

uint8_t *buffer_pool__scrap(void)
{
	static uint8_t scrap[BUFFER_SCRAP_BYTES] __attribute__((aligned(64)));

	return scrap;
}

void buffer_pool__clear_scrap(void)
{
	memset(buffer_pool__scrap(), 0, BUFFER_SCRAP_BYTES);
}

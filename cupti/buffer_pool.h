/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The buffers that CUPTI fills. A buffer belongs to CUPTI from its request to its completion,
 * however long that takes, so the memory is never unmapped. If all buffers are out, CUPTI gets
 * NULL. Before 12.9 CUPTI crashes on NULL; it then gets a shared scrap buffer that is never read.
 * The pool is lock-free, because requests come from application threads.
 */
#ifndef FERRUM_BUFFER_POOL_H
#define FERRUM_BUFFER_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Many small buffers: CUPTI keeps a buffer while any work in it runs, and on a GPU that is never
 * idle it returns a buffer only when the buffer is full.
 */
#define BUFFER_POOL_COUNT  64u
#define BUFFER_POOL_BYTES  (128u << 10) /* bytes of one buffer */
#define BUFFER_SCRAP_BYTES (128u << 10)

struct buffer_pool {
	uint8_t *memory;
	uint64_t free;			      /* bit n: buffer n is free */
	uint64_t taken_ns[BUFFER_POOL_COUNT]; /* when it was last handed out */
	/* taken_ns of a buffer that was written off; written by the shim's own thread alone */
	uint64_t written_off_ns[BUFFER_POOL_COUNT];
};

/* Maps the memory, once. 0 or -errno. */
int buffer_pool__prepare(struct buffer_pool *pool);

/* Takes a buffer of BUFFER_POOL_BYTES zero bytes, 8-byte aligned. NULL: all are out. */
uint8_t *buffer_pool__take(struct buffer_pool *pool, uint64_t now_ns);

/* Whether buffer is one of the pool. */
bool buffer_pool__owns(const struct buffer_pool *pool, const uint8_t *buffer);

/* Takes a buffer back from CUPTI, and clears it. */
void buffer_pool__give_back(struct buffer_pool *pool, uint8_t *buffer);

/*
 * Writes off the outstanding buffers that CUPTI has written into: buffer_pool__oldest_ns leaves
 * them out until they have come back. Call when arming, on the shim's own thread: their records are
 * of an earlier window, so a buffer that never comes back must not spoil this one.
 */
void buffer_pool__write_off(struct buffer_pool *pool);

/*
 * Whether a buffer of the pool that CUPTI returns was written off: it has records of an earlier
 * window, and perhaps some of this one.
 */
bool buffer_pool__is_written_off(const struct buffer_pool *pool, const uint8_t *buffer);

/*
 * When the oldest outstanding buffer that CUPTI has written into was requested, CLOCK_MONOTONIC ns;
 * UINT64_MAX: none. Reads CUPTI's buffers, which are zero when it gets them. Call on the shim's own
 * thread.
 */
uint64_t buffer_pool__oldest_ns(const struct buffer_pool *pool);

/*
 * A number that changes when CUPTI writes into an outstanding buffer; 0: none is outstanding. Reads
 * all of these buffers, so it is for rare occasions.
 */
uint64_t buffer_pool__content(const struct buffer_pool *pool);

/* The scrap buffer, of BUFFER_SCRAP_BYTES; static, so that a forked child has it too. */
uint8_t *buffer_pool__scrap(void);

/*
 * Clears the scrap buffer after its completion, because CUPTI expects cleared buffers. It may be in
 * use again by then, which is harmless: nobody reads it.
 */
void buffer_pool__clear_scrap(void);

#endif

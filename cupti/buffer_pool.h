/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The buffers that CUPTI fills. A buffer that was handed out is CUPTI's until it is completed,
 * however long that takes: the memory is never given back. Where all are out, CUPTI gets none, or,
 * before 12.9, which does not survive that, one that is shared and never read. Lock-free: requests
 * come from application threads.
 */
#ifndef FERRUM_BUFFER_POOL_H
#define FERRUM_BUFFER_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Many small ones: CUPTI keeps a buffer back while any work in it runs, and on a GPU that is never
 * idle the one it fills comes back only when it is full.
 */
#define BUFFER_POOL_COUNT  64u
#define BUFFER_POOL_BYTES  (128u << 10) /* of one */
#define BUFFER_SCRAP_BYTES (128u << 10)

struct buffer_pool {
	uint8_t *memory;
	uint64_t free;			      /* a bit per buffer */
	uint64_t taken_ns[BUFFER_POOL_COUNT]; /* when it was last handed out */
};

/* Maps the memory, once. 0 or -errno. */
int buffer_pool__prepare(struct buffer_pool *pool);

/* A buffer of BUFFER_POOL_BYTES zero bytes, 8-byte aligned; NULL: all are out. */
uint8_t *buffer_pool__take(struct buffer_pool *pool, uint64_t now_ns);

/* Whether it is one of the pool's. */
bool buffer_pool__owns(const struct buffer_pool *pool, const uint8_t *buffer);

/* Takes it back from CUPTI, and clears it. */
void buffer_pool__give_back(struct buffer_pool *pool, uint8_t *buffer);

/*
 * When the oldest buffer was handed out that CUPTI holds and has written into; UINT64_MAX: there is
 * none. A look into CUPTI's buffers, which are clear when it gets them, and no more than that.
 */
uint64_t buffer_pool__oldest_ns(const struct buffer_pool *pool);

/*
 * The one that is never read, of BUFFER_SCRAP_BYTES: static, so that it is there in a forked child
 * too.
 */
uint8_t *buffer_pool__scrap(void);

/*
 * It came back. CUPTI was promised clear buffers; one that has it once more meanwhile is none the
 * worse for it, since nobody reads what is written there.
 */
void buffer_pool__clear_scrap(void);

#endif

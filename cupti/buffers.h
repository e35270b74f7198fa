/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* CUPTI's two buffer callbacks: it requests an empty buffer, and returns a completed one. */
#ifndef FERRUM_BUFFERS_H
#define FERRUM_BUFFERS_H

#include "state.h"

/*
 * cupti_request_fn; runs on application threads. buffer_pool.h says what CUPTI gets if the pool is
 * empty.
 */
void buffers__request(uint8_t **buffer, size_t *size, size_t *max_records);

/* cupti_complete_fn: copies the records into the ring while the shim collects. */
void buffers__complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

/* Adds the records that CUPTI has dropped since the last call. Call without the lock. */
void buffers__count_dropped(struct shim *shim);

/* Compares our clock with CUPTI's and puts a clock sample into the ring. Call without the lock. */
void buffers__check_clock(struct shim *shim);

#endif

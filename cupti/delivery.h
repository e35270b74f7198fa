/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* CUPTI's two buffer callbacks: it asks for a buffer, and brings one that it has filled. */
#ifndef FERRUM_DELIVERY_H
#define FERRUM_DELIVERY_H

#include "shim.h"

/*
 * Whose buffers they are, for the life of the process; before they are registered. false: it has
 * been said before.
 */
bool delivery__bind(struct shim *shim);

/* What was bound; NULL: nothing. */
struct shim *delivery__bound(void);

/* cupti_request_fn: never answers that there is no buffer. On application threads. */
void delivery__request(uint8_t **buffer, size_t *size, size_t *max_records);

/* cupti_complete_fn: copies the records into the ring, if they are wanted. */
void delivery__complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

/* Asks CUPTI what it has dropped since it was last asked, and adds it up. Not under the lock. */
void delivery__count_dropped(struct shim *shim);

/* Holds the clock against CUPTI's, and puts a sample of it for what follows. Not under the lock. */
void delivery__check_clock(struct shim *shim);

#endif

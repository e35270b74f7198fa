/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Notices that another tool has taken CUPTI's records over, which CUPTI tells nobody.
 *
 * The seat of the subscriber keeps out only tools that subscribe. PyTorch's profiler does not, from
 * August 2026 on: it replaces our buffer callbacks, and later disables the kinds that we use. Then
 * no record comes any more, as from an idle engine. So at each turn the shim makes one call of the
 * driver whose records are enabled, a canary. If no buffer moves for some turns in spite of it,
 * CUPTI does not write for us. This is believed only where records of earlier canaries have come.
 */
#ifndef FERRUM_TAKEOVER_H
#define FERRUM_TAKEOVER_H

#include <stdbool.h>
#include "state.h"

/* Call when arming. */
void takeover__begin(struct shim *shim);

/* Makes the canary call. Call before a flush. */
void takeover__send_canary(const struct shim *shim);

/*
 * Call once after each flush that followed a canary. false: it is not sure that all records have
 * come to us; certain says whether another tool has them.
 */
bool takeover__look(struct shim *shim);

/* Call from CUPTI's callbacks: a buffer was requested or returned. */
void takeover__count_buffer(struct takeover *takeover);

/* Call from CUPTI's callback: another tool was recording when we were armed. */
void takeover__set_foreign(struct takeover *takeover);

/* What to tell the user when certain. */
const char *takeover__detail(const struct takeover *takeover);

#endif

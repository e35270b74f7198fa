/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Sends who stopped a process, once for each signal that did. */
#ifndef FBT_STREAM_STOP_SENDERS_H
#define FBT_STREAM_STOP_SENDERS_H

#include "kernel/senders.h"
#include "model/event.h"

struct stop_senders;

/* senders (NULL: nothing is known) and output are borrowed. NULL: no memory. */
struct stop_senders *stop_senders__new(const struct senders *senders,
				       const struct record_output *output);
void stop_senders__free(struct stop_senders *senders);

/*
 * A process was seen stopped by a signal at seen_ns. To be called before that is sent. Nothing if
 * senders is NULL.
 */
void stop_senders__tell(struct stop_senders *senders, uint32_t tgid, uint64_t seen_ns);

#endif

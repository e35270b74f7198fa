/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Keeps the latest records of stopped threads until the steps that they belong to have come. */
#ifndef FBT_MODEL_STOP_TABLE_H
#define FBT_MODEL_STOP_TABLE_H

#include <stdint.h>
#include "fbt_explain.h"
#include "fbt_look.h"
#include "model/step.h"

/* Number of stops that are kept, which may all be of one moment. */
#define STOPS_KEPT 256

#define SENDERS_KEPT 64

struct stop_table {
	struct fbt_stop stops[STOPS_KEPT];
	uint64_t count; /* of all stops so far */
	struct fbt_stop_sender senders[SENDERS_KEPT];
	uint64_t sender_count;
};

void stop_table_add(struct stop_table *table, const struct fbt_stop *stop);

/*
 * Sets the stop of a step, of the gap before it, and the stopped_ns of its wakes. About a thread
 * that the step waited for, the kernel side only knows that it was off its CPU, not that it was
 * stopped.
 */
void stop_table_join(const struct stop_table *table, struct step *step);

void stop_table_add_sender(struct stop_table *table, const struct fbt_stop_sender *sender);

/*
 * The signal by which a process was stopped that was seen stopped at time_ns. header.type 0: it is
 * not known.
 */
struct fbt_stop_sender stop_table_sender(const struct stop_table *table, uint32_t tgid,
					 uint64_t time_ns);

/* Sets who sent the signals of these stops, and of those of the step's peers, which it has by now.
 */
void stop_table_join_senders(const struct stop_table *table, struct step *step);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What a peer did between two looks at its thread. Pure. */
#ifndef FBT_STREAM_PEER_TIME_H
#define FBT_STREAM_PEER_TIME_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_look.h"
#include "proc/thread_use.h"

/* The thread at a look. */
struct peer_reading {
	struct thread_use use;
	char state;	  /* as in /proc/PID/stat; 0: not known */
	bool is_tickless; /* on a CPU where its time on it may stand still (cpus_find_tickless) */
};

/*
 * Divides the time from record->time_ns to now_ns among the record's sums, and sets time_ns. The
 * kernel adds up waits for a CPU only when they have ended. So a thread that is ready to run, and
 * has not run, waits for one: since the last look, if it was not asleep then. Else it may have been
 * woken just now. On a CPU without a tick it may as well have run: what it did is not known.
 */
void peer_time_add(struct fbt_peer *record, const struct peer_reading *last,
		   const struct peer_reading *now, bool is_stopped, uint64_t now_ns);

#endif

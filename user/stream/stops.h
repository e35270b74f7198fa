/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Sees threads that are stopped in a step, or while a step waits: by a signal, a tracer or a
 * freezer. The kernel counts that as sleep, like a wait for a page; only its state in /proc tells,
 * as long as it lasts.
 */
#ifndef FBT_KERNEL_STOPS_H
#define FBT_KERNEL_STOPS_H

#include <stdbool.h>
#include <stdint.h>
#include "kernel/shared.h"
#include "model/event.h"

struct stops;

/*
 * Fills in who stopped a thread, which is named by its tgid and tid. False: it is not stopped, or
 * has ended.
 */
bool stop_find_reason(struct fbt_stop *stop);

/* shared and output are borrowed. NULL: no memory. */
struct stops *stops__new(const struct shared *shared, const struct record_output *output);
void stops__free(struct stops *stops);

/*
 * To be called every few ms. Looks every 20 ms at each thread that has been in a step for 20 ms and
 * is in no call; every 5 ms once the step has taken twice as long as usual. Sends an FBT_EVENT_STOP
 * each time that a thread is found stopped, and when it continues. A shorter stop may not be seen.
 * The same is done for other threads of a process in which a step has waited in a call for 20 ms,
 * or has taken 20 ms and twice as long as usual: it may spin until the other thread comes. Of many
 * threads, four at a time are looked at.
 */
void stops__look(struct stops *stops, uint64_t now_ns);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The last steps of a class: what they took by part, and what is usual of it. A step is its work
 * and the rest: syscalls, run queue, page faults. All medians are those of rank round((n - 1) / 2),
 * as the seed's bench takes percentiles; 0 if there is no step.
 */
#ifndef FBT_CLASS_HISTORY_H
#define FBT_CLASS_HISTORY_H

#include <stdbool.h>
#include <stdint.h>
#include "cause.h"

struct class_history;

/* Of the last window_steps (not 0) steps. NULL: -ENOMEM. */
struct class_history *class_history__new(uint32_t window_steps);
void class_history__free(struct class_history *history);

/* Adds a step; the oldest goes if there are more than window_steps. 0, or -ENOMEM: not added. */
int class_history__add(struct class_history *history, const struct cause_times *times);

uint32_t class_history__count(const struct class_history *history);
uint64_t class_history__usual_work_ns(const struct class_history *history);
uint64_t class_history__usual_rest_ns(const struct class_history *history);

/*
 * CV, as cbtop's calculate_latency_stats computes it, of the steps with their work held constant:
 * usual work + the rest of each. IQR filter (quartiles at ranks n / 4 and 3 n / 4, 1.5 IQR), its
 * result only if 10 steps pass it; population deviation over mean, in percent.
 */
double class_history__cv_percent(const struct class_history *history);

/* Medians of each part and count, and of the length: these take microseconds. */
void class_history__usual(const struct class_history *history, struct cause_times *usual);
uint64_t class_history__usual_ns(const struct class_history *history);

/* For the next window_steps steps it is known that something was said of the class. */
void class_history__mark_told(struct class_history *history);
bool class_history__is_told(const struct class_history *history);

#endif

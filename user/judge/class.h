/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Classes: which steps a step is compared with, and what is usual for them.
 *
 * A class is the steps of one process and kind whose work, or whose argument (class_argument), has
 * the same highest bit. A step's time is its work and the rest: syscalls, run queue, page
 * faults. All medians are of rank round((n - 1) / 2), as ferrum's bench takes percentiles; 0
 * without steps. Pure.
 */
#ifndef FBT_JUDGE_CLASS_H
#define FBT_JUDGE_CLASS_H

#include <stdbool.h>
#include <stdint.h>
#include "judge/cause.h"
#include "model/window.h"

/* A class with fewer steps is not known yet. */
#define CLASS_KNOWN_STEPS 10
#define CLASSES_MAX	  1024
/* Steps of all classes together: 16 MiB. */
#define CLASS_STEPS_MAX 131072

/* The last steps of a class. */
struct class_history;

/* Of the last window_steps (not 0) steps. NULL: -ENOMEM. */
struct class_history *class_history__new(uint32_t window_steps);
void class_history__free(struct class_history *history);

/*
 * Adds a step, the number-th of all classes together; the oldest goes if there are more than
 * window_steps. 0, or -ENOMEM: not added.
 */
int class_history__add(struct class_history *history, const struct cause_times *times,
		       uint64_t number);

uint32_t class_history__count(const struct class_history *history);
bool class_history__is_known(const struct class_history *history); /* NULL is not */
uint64_t class_history__key(const struct class_history *history);  /* in its table; else 0 */
uint64_t class_history__usual_work_ns(const struct class_history *history);
uint64_t class_history__usual_rest_ns(const struct class_history *history);

/*
 * What a step of another class, with that key and this work, may spend on the rest: the usual rest
 * of this class, in proportion to the work if that is more than usual here. For classes by an
 * argument also in proportion to that, by powers of two: the larger of both.
 */
uint64_t class_history__rest_for_ns(const struct class_history *history, uint64_t key,
				    uint64_t work_ns);

/*
 * CV, as cbtop's calculate_latency_stats computes it, of the steps with their work held constant:
 * median work + the rest of each. IQR filter (quartiles at ranks n / 4 and 3 n / 4, 1.5 IQR), used
 * only if 10 steps pass it; population deviation over mean, in percent.
 */
double class_history__cv_percent(const struct class_history *history);

/* Medians of each part and count, and of the length. Each call takes microseconds. */
void class_history__usual(const struct class_history *history, struct cause_times *usual);
uint64_t class_history__usual_ns(const struct class_history *history);

/* That the class is unsteady was told: is_told stays true for the next window_steps steps. */
void class_history__mark_told(struct class_history *history);
bool class_history__is_told(const struct class_history *history);

/* Classes by key, in bounded memory: the least recently used class is dropped first. */
struct class_table;

/* Of classes of window_steps (1 … CLASS_STEPS_MAX) steps. NULL: -ENOMEM. */
struct class_table *class_table__new(uint32_t window_steps);
void class_table__free(struct class_table *table);

/* NULL if there is none. Valid until the next class_table__add. */
struct class_history *class_table__find(struct class_table *table, uint64_t key);

/*
 * Finds the class to hold a step against: own (the class of key; may be NULL) if own is a standard;
 * else the standard of the same process and kind that is nearest by work; else own. Without this, a
 * problem that adds to the work of its steps would put them into a class of their own, where they
 * look usual.
 *
 * A standard is a class that is known and is no anomaly. A class is an anomaly if its usual step
 * has an efficiency below efficiency_percent by the budget of the nearest standard that is common
 * enough:
 * - one with up to eight times more or less work, if it, or all such classes together whose usual
 *   steps are efficient by any budget, are at least twice as common as the inefficient steps of the
 *   class;
 * - one that is farther away, if it is at least eight times as common, and all its steps together
 *   have more work.
 *
 * In some classes, half of the work of most steps may be no work (cause_blame). The work that may
 * be none is then left out, down to that of the standard, and twice as common is enough at any
 * distance.
 *
 * A class is as common as its steps are frequent among the steps of all classes. For classes by an
 * argument, the argument takes the place of the work; such a class has no standard until it is
 * known.
 */
struct class_history *class_table__find_standard(struct class_table *table,
						 struct class_history *own, uint64_t key,
						 double efficiency_percent);

/* Adds a step to one of its classes. 0, or -ENOMEM: not added. */
int class_table__add_step(struct class_table *table, struct class_history *history,
			  const struct cause_times *times);

/* Adds a class that is not there. NULL: -ENOMEM. */
struct class_history *class_table__add(struct class_table *table, uint64_t key);

/* What a key says of its class; usual_ns is not known. */
struct step_class class_of_key(uint64_t key);

/*
 * The argument by which steps of a kind have their classes: class_by, the name that the user has
 * given, or NULL; then n_waited or n_tokens of a Python function that records it, because what such
 * a step waits for in a spinning loop looks like work. n_waited are the tokens that it waits for
 * where those that it launches are waited for by the next one. NULL: by work. Borrowed.
 */
const char *class_argument(const struct window *window, uint32_t kind, const char *class_by);

/*
 * Key of a step's class. A step without the argument (class_argument) goes by its work. Values of 0
 * and less share a class.
 */
uint64_t class_key(const struct window *window, const struct fbt_step *record, const char *class_by,
		   uint64_t work_ns);

/*
 * Key of the class of such steps whose GPU records are missing: their waits for the GPU are not
 * known to be work. No standard of one sort of classes is found for the other.
 */
uint64_t class_key_without_gpu(uint64_t key);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Classes: which steps a step is compared with, and what is usual for them.
 *
 * A class is the steps of one process and kind whose work, or whose argument named by --class-by,
 * has the same highest bit. A step's time is its work and the rest: syscalls, run queue, page
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
 * What a step of so much work, of another class, may spend on the rest: the usual of this class, or
 * if it has more work than usual here, so many times as much.
 */
uint64_t class_history__rest_for_ns(const struct class_history *history, uint64_t work_ns);

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
 * The class to hold a step against: own (of key, may be NULL) if it is a standard, else the nearest
 * standard by work of the same process and kind; own if there is none. Time that a problem leaves
 * in a step's work must not hide the step in a class of its own, however often it comes.
 *
 * A standard is a class that is known and is no anomaly. An anomaly is a class whose usual step has
 * an efficiency below efficiency_percent by the budget of the nearest standard that is at least
 * twice as common and has up to eight times more or less work; or that is farther away, at least
 * eight times as common, and has more of the kind's work in sum. Where half of the work of most of
 * its steps may be none (cause_blame), that is left out, and twice as common is enough at any
 * distance. How common a class is, is told by how many steps of all classes its own go back. Of
 * classes by an argument that takes the place of the work, but one that is not known has no
 * standard.
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
 * Key of a step's class. class_by: name of an argument, or NULL; a step without that argument goes
 * by its work. Values of 0 and less share a class.
 */
uint64_t class_key(const struct window *window, const struct fbt_step *record, const char *class_by,
		   uint64_t work_ns);

#endif

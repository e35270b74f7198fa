/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* In which functions a thread spends its time, by samples of its stack. Pure. */
#ifndef FBT_STACKS_SHARES_H
#define FBT_STACKS_SHARES_H

#include <stdbool.h>
#include "stacks/chains.h"

#define SHARE_THREADS_MAX 8

/* Fewer samples of a thread say nothing. */
#define SHARE_SAMPLES_MIN 20

/*
 * Of a thread's samples, a function that does its work is in at least this part; and of few, in so
 * many that it would not be a half by chance.
 */
#define SHARE_MIN 0.6

/* And most of these have the same function as its caller: what has several is called by parts. */
#define SHARE_CALLER_MIN 0.8

struct share {
	uint32_t function; /* index in the chain_set */
	double part;	   /* of the samples of the thread */
	/* The part of the samples of each sampled thread; 0 where it is below a fifth. */
	double parts[SHARE_THREADS_MAX];
};

typedef VEC(struct share) share_vec;

/*
 * The functions that the thread tids[which] is in for most of the time, and that are called from
 * one other function, the outermost first. None if the thread has too few samples.
 * 0 or -ENOMEM.
 */
int shares_find(share_vec *shares, const struct chain_set *set, const uint32_t *tids,
		size_t tid_count, size_t which);

#endif

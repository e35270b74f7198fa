/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Quantiles of durations, and how sure they are. Pure.
 *
 * Steps that follow each other are not independent: a busy neighbour slows many in a row. So the
 * error of a quantile comes from a block bootstrap (Kuensch 1989): the steps, in the order of time,
 * are cut into blocks of equal length, and as many blocks are drawn with replacement, 400 times;
 * the error is the standard deviation of the logarithm of the quantile over these draws. The blocks
 * are long beside the correlation of what a quantile is made of, the indicator "a step is at most
 * that long": its length by Politis and White (2004, corrected by Patton, Politis and White 2009),
 * times QUANTILE_LENGTHS, and at least a QUANTILE_BLOCKS_MAX-th of the steps. The draws come from
 * nrand48(3) with a fixed seed: the same steps give the same error.
 */
#ifndef FBT_DIFF_QUANTILE_H
#define FBT_DIFF_QUANTILE_H

#include <stddef.h>
#include <stdint.h>

/* Without so many blocks an error is not known well enough. */
#define QUANTILE_BLOCKS_MIN 15
/* More blocks add little: the error's own error is then 6 %. */
#define QUANTILE_BLOCKS_MAX 128
#define QUANTILE_LENGTHS    2

/*
 * So many steps have to lie above a quantile, and below it; and so many independent ones: n
 * correlated steps are worth n divided by the sum of their autocorrelations.
 */
#define QUANTILE_TAIL_MIN      20
#define QUANTILE_EFFECTIVE_MIN 15

enum quantile_state {
	QUANTILE_KNOWN = 0,
	QUANTILE_TOO_FEW,	 /* too few steps */
	QUANTILE_TOO_CORRELATED, /* enough steps, but too few blocks of them, or independent ones */
};

/* A step. Those with weight 0 do not count. */
struct weighted {
	uint64_t ns;
	float weight; /* 0 or more */
};

struct quantile {
	uint64_t ns; /* the first value with at least its share of the weight; 0 without steps */
	enum quantile_state state;
	double error;	    /* standard error of the logarithm of ns; only if it is known */
	uint32_t blocks;    /* the error is of */
	double block_steps; /* length of a block */
	double correlated;  /* sum of autocorrelations; 1: independent */
	double effective;   /* steps / correlated */
};

/*
 * count steps in the order of time; share is 0 … 1, exclusive. 0, or -ENOMEM. Takes time in
 * proportion to count * log(count).
 */
int quantile_find(const struct weighted *steps, size_t count, double share,
		  struct quantile *quantile);

/*
 * Of count values in the order of time: the length of blocks for the circular block bootstrap that
 * is optimal for their mean, and in *correlated the sum of their autocorrelations from -M to M with
 * a flat-top window, at least 1. 1 if they are all equal, or fewer than 8. values are replaced.
 */
double block_length(double *values, size_t count, double *correlated);

#endif

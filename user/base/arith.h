/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Arithmetic on counts and times that come from outside: results saturate, they never wrap. */
#ifndef FBT_BASE_ARITH_H
#define FBT_BASE_ARITH_H

#include <stdint.h>

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t clamp_u64(uint64_t value, uint64_t low, uint64_t high)
{
	return min_u64(max_u64(value, low), high);
}

static inline uint64_t add_saturating(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* a - b; 0 if b is larger. */
static inline uint64_t sub_saturating(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Of a difference that is signed in meaning: 0 if it is less than 0. */
static inline uint64_t not_negative(uint64_t value)
{
	return (int64_t)value > 0 ? value : 0;
}

/* Takes at most value from what is left. Returns what was taken. */
static inline uint64_t take_u64(uint64_t value, uint64_t *left)
{
	uint64_t taken = min_u64(value, *left);

	*left -= taken;
	return taken;
}

/* Rounds towards 0. */
static inline uint64_t to_u64_saturating(long double value)
{
	return value >= 0x1p64l ? UINT64_MAX : (uint64_t)value;
}

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/call_limits.h"

#include <stdbool.h>

#include "base/vec.h"
#include "fbt_shared.h"

#define OPEN_MAX  1024
#define USUAL_MAX 1024
/* Room is made by comparing all with all: not before so many came since the last time. */
#define FRESH_MIN (OPEN_MAX / 8)
/* Two buckets for each power of two, from 2^16 ns, about 65 us, to 2^36 ns, about 69 s. */
#define FIRST_SHIFT 16
#define BUCKETS	    40
/* After so many steps of a kind the older ones count half. */
#define STEPS_MAX 512
#define FACTOR	  2

/* A call of a step that has not been added yet, or the longest of several of a number. */
struct open_call {
	uint32_t tid;
	uint32_t nr;
	uint64_t start_ns;
	uint64_t ns;
};

/* In how many steps of a kind the longest call of a number, or all of a category, took so long. */
struct usual {
	uint32_t at; /* in the table: the kind, and the number or category */
	bool has_limit;
	uint32_t counts[BUCKETS];
};

struct call_limits {
	uint64_t *table;
	VEC(struct open_call) open;
	uint32_t fresh;		 /* of these, at most, were added since room was made */
	VEC(struct usual) usual; /* by place in the table */
	uint32_t steps[FBT_KIND_COUNT];
};

struct call_limits *call_limits__new(uint64_t *table)
{
	struct call_limits *limits = calloc(1, sizeof(*limits));

	if (limits)
		limits->table = table;
	return limits;
}

void call_limits__free(struct call_limits *limits)
{
	if (!limits)
		return;
	vec_free(&limits->open);
	vec_free(&limits->usual);
	free(limits);
}

static void remove_open(struct call_limits *limits, size_t index)
{
	limits->open.items[index] = limits->open.items[--limits->open.count];
}

/*
 * If one before index is of the same number and began from from_ns to to_ns, only the longer of the
 * two is left, there.
 */
static bool join_open(struct call_limits *limits, size_t index, uint64_t from_ns, uint64_t to_ns)
{
	const struct open_call call = limits->open.items[index];

	for (size_t i = 0; i < index; i++) {
		struct open_call *other = &limits->open.items[i];

		if (other->tid != call.tid || other->nr != call.nr || other->start_ns < from_ns ||
		    other->start_ns > to_ns)
			continue;
		if (call.ns > other->ns)
			*other = call;
		remove_open(limits, index);
		return true;
	}
	return false;
}

/* Whether there is one of the same thread and number: the longer of the two is left. */
static bool join_call(struct call_limits *limits, const struct open_call *call)
{
	vec_for_each (other, &limits->open) {
		if (other->tid != call->tid || other->nr != call->nr)
			continue;
		if (call->ns > other->ns)
			*other = *call;
		return true;
	}
	return false;
}

/* Most of them are of one step, which has been open for long. */
static void make_room(struct call_limits *limits)
{
	if (limits->fresh < FRESH_MIN)
		return;
	for (size_t i = limits->open.count; i-- > 0;)
		(void)join_open(limits, i, 0, UINT64_MAX);
	limits->fresh = 0;
}

void call_limits__add_call(struct call_limits *limits, uint32_t tid, uint32_t nr, uint64_t start_ns,
			   uint64_t ns)
{
	struct open_call call = {tid, nr, start_ns, ns};

	if (ns < FBT_LONG_NS || nr >= FBT_NR_COUNT)
		return;
	if (limits->open.count >= OPEN_MAX) {
		if (join_call(limits, &call))
			return;
		make_room(limits);
	}
	/* Without room the limit stays as it is. */
	if (limits->open.count < OPEN_MAX && !vec_push(&limits->open, call))
		limits->fresh++;
}

static unsigned int bucket_of(uint64_t ns)
{
	unsigned int shift = 63 - (unsigned int)__builtin_clzll(ns | 1), bucket;

	if (shift < FIRST_SHIFT)
		return 0;
	bucket = 2 * (shift - FIRST_SHIFT) + (ns >> (shift - 1) & 1);
	return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

static uint64_t bucket_end(unsigned int bucket)
{
	uint64_t begin = 1ull << (FIRST_SHIFT + bucket / 2);

	return bucket % 2 ? 2 * begin : begin + begin / 2;
}

/* 0: in half of the steps or more there is no such call, or there are few. */
static uint64_t median_of(const struct usual *usual, uint32_t steps)
{
	uint32_t longer = 0;

	for (unsigned int i = BUCKETS; i-- > 0;) {
		longer += usual->counts[i];
		if (2 * longer > steps)
			return bucket_end(i);
	}
	return 0;
}

static void set_limit(struct call_limits *limits, struct usual *usual)
{
	uint64_t ns = FACTOR * median_of(usual, limits->steps[usual->at / FBT_LIMITS]);

	if (ns < FBT_LIMIT_MIN_NS)
		ns = 0;
	usual->has_limit = ns != 0;
	__atomic_store_n(&limits->table[usual->at], ns >> FBT_LIMIT_SHIFT, __ATOMIC_RELAXED);
}

/* NULL: there is no room. */
static struct usual *find_usual(struct call_limits *limits, uint32_t at)
{
	size_t place = vec_lower_bound(&limits->usual, item->at, at);
	struct usual fresh = {.at = at};

	if (place < limits->usual.count && limits->usual.items[place].at == at)
		return &limits->usual.items[place];
	if (limits->usual.count == USUAL_MAX || vec_insert(&limits->usual, place, fresh))
		return NULL;
	return &limits->usual.items[place];
}

static void age(struct call_limits *limits, uint32_t kind)
{
	limits->steps[kind] /= 2;
	vec_for_each (usual, &limits->usual)
		for (int i = 0; usual->at / FBT_LIMITS == kind && i < BUCKETS; i++)
			usual->counts[i] /= 2;
}

/* What this step did not call is less usual by that. */
static void set_limits(struct call_limits *limits, uint32_t kind)
{
	size_t i = vec_lower_bound(&limits->usual, item->at, kind * FBT_LIMITS);

	for (; i < limits->usual.count && limits->usual.items[i].at / FBT_LIMITS == kind; i++)
		if (limits->usual.items[i].has_limit)
			set_limit(limits, &limits->usual.items[i]);
}

static void count(struct call_limits *limits, uint32_t kind, uint32_t which, uint64_t ns)
{
	struct usual *usual = find_usual(limits, kind * FBT_LIMITS + which);

	if (!usual)
		return;
	usual->counts[bucket_of(ns)]++;
	set_limit(limits, usual);
}

void call_limits__add_step(struct call_limits *limits, uint32_t tid, uint32_t kind,
			   uint64_t start_ns, uint64_t end_ns)
{
	if (kind >= FBT_KIND_COUNT)
		return;
	if (++limits->steps[kind] > STEPS_MAX)
		age(limits, kind);
	for (size_t i = limits->open.count; i-- > 0;) {
		const struct open_call call = limits->open.items[i];
		/* Else it is of a step that was lost. */
		bool is_own = call.start_ns >= start_ns;

		if (call.tid != tid || call.start_ns > end_ns ||
		    (is_own && join_open(limits, i, start_ns, end_ns)))
			continue;
		if (is_own)
			count(limits, kind, call.nr, call.ns);
		remove_open(limits, i);
	}
	set_limits(limits, kind);
}

void call_limits__add_sums(struct call_limits *limits, uint32_t kind,
			   const struct fbt_sum sums[FBT_CATEGORY_COUNT])
{
	for (uint32_t i = 0; i < FBT_CATEGORY_COUNT && kind < FBT_KIND_COUNT; i++)
		if (sums[i].ns >= FBT_LONG_NS)
			count(limits, kind, FBT_NR_COUNT + i, sums[i].ns);
}

void call_limits__forget(struct call_limits *limits, uint32_t tid)
{
	for (size_t i = limits->open.count; i-- > 0;)
		if (limits->open.items[i].tid == tid)
			remove_open(limits, i);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/call_limits.h"

#include "base/vec.h"
#include "fbt_shared.h"

#define OPEN_MAX  4096
#define USUAL_MAX 1024
/* Two buckets for each power of two, from 2^16 ns, about 65 us, to 2^36 ns, about 69 s. */
#define FIRST_SHIFT 16
#define BUCKETS	    40
/* After so many steps of a kind the older ones count half. */
#define STEPS_MAX 512
#define FACTOR	  2

/* The longest call of a number in the step of a thread that is open. */
struct open_calls {
	uint32_t tid;
	uint32_t nr;
	uint64_t longest_ns;
};

/* In how many steps of a kind the longest call of a number was so long. */
struct usual {
	uint32_t at; /* in the table: the kind and the number */
	uint32_t counts[BUCKETS];
};

struct call_limits {
	uint64_t *table;
	VEC(struct open_calls) open;
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

void call_limits__add_call(struct call_limits *limits, uint32_t tid, uint32_t nr, uint64_t ns)
{
	struct open_calls call = {tid, nr, ns};

	if (ns < FBT_LONG_NS || nr >= FBT_NR_COUNT)
		return;
	vec_for_each (open, &limits->open) {
		if (open->tid != tid || open->nr != nr)
			continue;
		if (ns > open->longest_ns)
			open->longest_ns = ns;
		return;
	}
	/* Without room the limit stays as it is. */
	if (limits->open.count < OPEN_MAX)
		(void)vec_push(&limits->open, call);
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

/* 0: in half of the steps or more there is no long call of that number. */
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

static void set_limit(struct call_limits *limits, const struct usual *usual)
{
	uint64_t ns = FACTOR * median_of(usual, limits->steps[usual->at / FBT_NR_COUNT]);

	if (ns < FBT_LIMIT_MIN_NS)
		ns = 0;
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
	vec_for_each (usual, &limits->usual) {
		if (usual->at / FBT_NR_COUNT != kind)
			continue;
		for (int i = 0; i < BUCKETS; i++)
			usual->counts[i] /= 2;
		set_limit(limits, usual);
	}
}

/* The limits of what this step did not call are set when it is called again, or by age(). */
void call_limits__add_step(struct call_limits *limits, uint32_t tid, uint32_t kind)
{
	if (kind >= FBT_KIND_COUNT)
		return;
	if (++limits->steps[kind] > STEPS_MAX)
		age(limits, kind);
	for (size_t i = limits->open.count; i-- > 0;) {
		struct open_calls *open = &limits->open.items[i];
		struct usual *usual;

		if (open->tid != tid)
			continue;
		usual = find_usual(limits, kind * FBT_NR_COUNT + open->nr);
		if (usual) {
			usual->counts[bucket_of(open->longest_ns)]++;
			set_limit(limits, usual);
		}
		*open = limits->open.items[--limits->open.count];
	}
}

void call_limits__forget(struct call_limits *limits, uint32_t tid)
{
	for (size_t i = limits->open.count; i-- > 0;)
		if (limits->open.items[i].tid == tid)
			limits->open.items[i] = limits->open.items[--limits->open.count];
}

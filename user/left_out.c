/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "left_out.h"

#include <stddef.h>
#include <string.h>
#include "vec.h"

/* Processes that are remembered; 16 bytes each. Above it those that have ended are forgotten. */
#define REMEMBERED_MAX 16384

struct one {
	uint32_t tgid;
	uint64_t end_ns; /* 0: still running */
};

struct left_out {
	VEC(struct one) all; /* by tgid */
};

struct left_out *left_out__new(void)
{
	return calloc(1, sizeof(struct left_out));
}

void left_out__free(struct left_out *left_out)
{
	if (!left_out)
		return;
	vec_free(&left_out->all);
	free(left_out);
}

/* Where it is, or belongs. */
static size_t position_of(const struct left_out *left_out, uint32_t tgid)
{
	size_t low = 0, high = left_out->all.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (left_out->all.items[middle].tgid < tgid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct one *find(const struct left_out *left_out, uint32_t tgid)
{
	size_t position = position_of(left_out, tgid);

	if (position == left_out->all.count || left_out->all.items[position].tgid != tgid)
		return NULL;
	return &left_out->all.items[position];
}

static void forget_ended(struct left_out *left_out)
{
	size_t kept = 0;

	vec_for_each (one, &left_out->all) {
		if (!one->end_ns)
			left_out->all.items[kept++] = *one;
	}
	left_out->all.count = kept;
}

static bool insert(struct left_out *left_out, uint32_t tgid)
{
	struct one one = {.tgid = tgid};
	size_t position;

	if (left_out->all.count >= REMEMBERED_MAX)
		forget_ended(left_out);
	position = position_of(left_out, tgid);
	if (left_out->all.count >= REMEMBERED_MAX || vec_push(&left_out->all, one))
		return false;
	memmove(&left_out->all.items[position + 1], &left_out->all.items[position],
		(left_out->all.count - 1 - position) * sizeof(one));
	left_out->all.items[position] = one;
	return true;
}

bool left_out__add(struct left_out *left_out, uint32_t tgid, uint64_t start_ns)
{
	struct one *one = find(left_out, tgid);

	if (!one)
		return insert(left_out, tgid) || start_ns;
	if (!one->end_ns || start_ns < one->end_ns)
		return false;
	one->end_ns = 0;
	return true;
}

bool left_out__has(const struct left_out *left_out, uint32_t tgid)
{
	return find(left_out, tgid);
}

void left_out__end(struct left_out *left_out, uint32_t tgid, uint64_t end_ns)
{
	struct one *one = find(left_out, tgid);

	if (one)
		one->end_ns = end_ns;
}

bool left_out__has_ended(const struct left_out *left_out, uint32_t tgid)
{
	const struct one *one = find(left_out, tgid);

	return one && one->end_ns;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/overflow.h"

#include <stdlib.h>

#include "base/vec.h"

/* Most processes remembered, of 16 bytes each. If full, those that have ended are forgotten. */
#define OVERFLOW_MAX 16384

/* A process that is counted but not kept. */
struct unkept {
	uint32_t tgid;
	uint64_t end_ns; /* 0: still running */
};

struct overflow {
	VEC(struct unkept) processes; /* by tgid */
};

struct overflow *overflow__new(void)
{
	return calloc(1, sizeof(struct overflow));
}

void overflow__free(struct overflow *overflow)
{
	if (!overflow)
		return;
	vec_free(&overflow->processes);
	free(overflow);
}

static struct unkept *find_unkept(const struct overflow *overflow, uint32_t tgid)
{
	size_t position = vec_lower_bound(&overflow->processes, item->tgid, tgid);

	if (position == overflow->processes.count ||
	    overflow->processes.items[position].tgid != tgid)
		return NULL;
	return &overflow->processes.items[position];
}

static void forget_ended(struct overflow *overflow)
{
	size_t kept = 0;

	vec_for_each (process, &overflow->processes) {
		if (!process->end_ns)
			overflow->processes.items[kept++] = *process;
	}
	overflow->processes.count = kept;
}

static bool insert_unkept(struct overflow *overflow, uint32_t tgid)
{
	struct unkept process = {.tgid = tgid};

	if (overflow->processes.count >= OVERFLOW_MAX)
		forget_ended(overflow);
	return overflow->processes.count < OVERFLOW_MAX &&
	       !vec_insert(&overflow->processes,
			   vec_lower_bound(&overflow->processes, item->tgid, tgid), process);
}

bool overflow__add(struct overflow *overflow, uint32_t tgid, uint64_t start_ns)
{
	struct unkept *process = find_unkept(overflow, tgid);

	if (!process)
		return insert_unkept(overflow, tgid) || start_ns;
	if (!process->end_ns || start_ns < process->end_ns)
		return false;
	process->end_ns = 0;
	return true;
}

bool overflow__has(const struct overflow *overflow, uint32_t tgid)
{
	return find_unkept(overflow, tgid);
}

void overflow__end(struct overflow *overflow, uint32_t tgid, uint64_t end_ns)
{
	struct unkept *process = find_unkept(overflow, tgid);

	if (process)
		process->end_ns = end_ns;
}

bool overflow__has_ended(const struct overflow *overflow, uint32_t tgid)
{
	const struct unkept *process = find_unkept(overflow, tgid);

	return process && process->end_ns;
}

void overflow__remove(struct overflow *overflow, uint32_t tgid)
{
	size_t position = vec_lower_bound(&overflow->processes, item->tgid, tgid);

	if (!find_unkept(overflow, tgid))
		return;
	overflow->processes.count--;
	for (; position < overflow->processes.count; position++)
		overflow->processes.items[position] = overflow->processes.items[position + 1];
}

bool overflow__is_over(const struct overflow *overflow, uint32_t tgid, uint64_t start_ns)
{
	const struct unkept *process = find_unkept(overflow, tgid);

	return !process || (process->end_ns && process->end_ns <= start_ns);
}

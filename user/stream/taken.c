/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/taken.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/vec.h"
#include "proc/machine_load.h"

/* Steps that are open, or whose record was lost. */
#define SUMS_MAX 512
/* Takers of one step that are told apart. */
#define TAKERS_MAX 24
/* A cgroup is looked up for one that took this part of the time. */
#define NAMED_PART 10
#define CGROUPS	   32

struct sum {
	struct fbt_taken all; /* takers is not used */
	uint32_t count;
	struct fbt_taker takers[TAKERS_MAX];
};

struct cgroup {
	uint32_t tgid;
	char comm[sizeof(((struct fbt_taker *)0)->comm)];
	char name[sizeof(((struct fbt_taker *)0)->cgroup)];
};

struct taken_sums {
	const struct record_output *output;
	VEC(struct sum) sums; /* the oldest first */
	struct cgroup cgroups[CGROUPS];
	uint32_t next_cgroup;
};

struct taken_sums *taken_sums__new(const struct record_output *output)
{
	struct taken_sums *sums = calloc(1, sizeof(*sums));

	if (sums)
		sums->output = output;
	return sums;
}

void taken_sums__free(struct taken_sums *sums)
{
	if (!sums)
		return;
	vec_free(&sums->sums);
	free(sums);
}

static void drop(struct taken_sums *sums, size_t index)
{
	sums->sums.count--;
	memmove(sums->sums.items + index, sums->sums.items + index + 1,
		(sums->sums.count - index) * sizeof(*sums->sums.items));
	vec_shrink(&sums->sums, 16);
}

/* The index of a step's sum, or the number of sums. */
static size_t find(const struct taken_sums *sums, uint32_t tid, uint64_t start_ns)
{
	size_t i = 0;

	while (i < sums->sums.count &&
	       (sums->sums.items[i].all.tid != tid || sums->sums.items[i].all.start_ns != start_ns))
		i++;
	return i;
}

static void add_taker(struct sum *sum, const struct fbt_taker *taker)
{
	uint32_t i = 0;

	while (i < sum->count &&
	       (sum->takers[i].tgid != taker->tgid || sum->takers[i].tid != taker->tid))
		i++;
	if (i == TAKERS_MAX) {
		sum->all.other_ns += taker->ns;
		return;
	}
	if (i == sum->count) {
		sum->takers[sum->count++] = *taker;
		return;
	}
	sum->takers[i].ns += taker->ns;
}

void taken_sums__add(struct taken_sums *sums, const struct fbt_taken *taken)
{
	size_t at = find(sums, taken->tid, taken->start_ns);
	struct sum *sum;

	if (at == sums->sums.count) {
		struct sum fresh = {.all = {.tgid = taken->tgid,
					    .tid = taken->tid,
					    .start_ns = taken->start_ns}};

		if (sums->sums.count == SUMS_MAX)
			drop(sums, 0);
		if (vec_push(&sums->sums, fresh))
			return;
		at = sums->sums.count - 1;
	}
	sum = &sums->sums.items[at];
	sum->all.waited_ns += taken->waited_ns;
	sum->all.idle_ns += taken->idle_ns;
	sum->all.other_ns += taken->other_ns;
	for (uint32_t i = 0; i < FBT_TAKERS && i < taken->count; i++)
		add_taker(sum, &taken->takers[i]);
}

static int compare_takers(const void *left, const void *right)
{
	const struct fbt_taker *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return (a->tgid > b->tgid) - (a->tgid < b->tgid);
}

/* A process may have ended; its name tells whether the id has another one by now. */
static void name_cgroup(struct taken_sums *sums, struct fbt_taker *taker)
{
	struct cgroup *cgroup;

	for (uint32_t i = 0; i < CGROUPS; i++) {
		cgroup = &sums->cgroups[i];
		if (cgroup->tgid == taker->tgid &&
		    !memcmp(cgroup->comm, taker->comm, sizeof(cgroup->comm))) {
			memcpy(taker->cgroup, cgroup->name, sizeof(taker->cgroup));
			return;
		}
	}
	cgroup = &sums->cgroups[sums->next_cgroup++ % CGROUPS];
	cgroup->tgid = taker->tgid;
	memcpy(cgroup->comm, taker->comm, sizeof(cgroup->comm));
	machine_cgroup_name(taker->tgid, cgroup->name, sizeof(cgroup->name));
	memcpy(taker->cgroup, cgroup->name, sizeof(taker->cgroup));
}

/*
 * The thread that was moved to another CPU may have been charged for both. What does not fit is
 * taken from the smallest.
 */
static void clamp(struct fbt_taken *taken)
{
	uint64_t left_ns = taken->waited_ns;

	for (uint32_t i = 0; i < taken->count; i++)
		taken->takers[i].ns = take_u64(taken->takers[i].ns, &left_ns);
	taken->other_ns = take_u64(taken->other_ns, &left_ns);
	taken->idle_ns = take_u64(taken->idle_ns, &left_ns);
}

static void send(struct taken_sums *sums, struct sum *sum)
{
	struct fbt_taken taken = sum->all;

	qsort(sum->takers, sum->count, sizeof(sum->takers[0]), compare_takers);
	taken.count = sum->count < FBT_TAKERS ? sum->count : FBT_TAKERS;
	for (uint32_t i = 0; i < sum->count; i++) {
		if (i >= FBT_TAKERS) {
			taken.other_ns += sum->takers[i].ns;
			continue;
		}
		if (!sum->takers[i].tid && sum->takers[i].ns >= taken.waited_ns / NAMED_PART)
			name_cgroup(sums, &sum->takers[i]);
		taken.takers[i] = sum->takers[i];
	}
	clamp(&taken);
	record_send(sums->output, &taken, sizeof(taken), FBT_EVENT_TAKEN);
}

void taken_sums__send(struct taken_sums *sums, const struct fbt_step *step)
{
	size_t at = find(sums, step->tid, step->start_ns);

	if (at == sums->sums.count)
		return;
	if (sums->sums.items[at].all.waited_ns)
		send(sums, &sums->sums.items[at]);
	drop(sums, at);
}

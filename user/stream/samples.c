/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/samples.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* Steps that are open, or whose record was lost. */
#define SUMS_MAX 64
/* Functions of one step that are told apart. */
#define FUNCTIONS_MAX 64

struct sum {
	struct fbt_samples all; /* functions is not used */
	uint32_t count;
	struct {
		uint32_t code;
		uint32_t samples;
	} functions[FUNCTIONS_MAX];
};

struct sample_sums {
	const struct record_output *output;
	VEC(struct sum) sums; /* the oldest first */
};

struct sample_sums *sample_sums__new(const struct record_output *output)
{
	struct sample_sums *sums = calloc(1, sizeof(*sums));

	if (sums)
		sums->output = output;
	return sums;
}

void sample_sums__free(struct sample_sums *sums)
{
	if (!sums)
		return;
	vec_free(&sums->sums);
	free(sums);
}

static void drop(struct sample_sums *sums, size_t index)
{
	sums->sums.count--;
	memmove(sums->sums.items + index, sums->sums.items + index + 1,
		(sums->sums.count - index) * sizeof(*sums->sums.items));
}

static size_t find(const struct sample_sums *sums, uint32_t tid, uint64_t start_ns)
{
	size_t i = 0;

	while (i < sums->sums.count &&
	       (sums->sums.items[i].all.tid != tid || sums->sums.items[i].all.start_ns != start_ns))
		i++;
	return i;
}

void sample_sums__add(struct sample_sums *sums, const struct fbt_samples *of, uint32_t code)
{
	size_t at = find(sums, of->tid, of->start_ns);
	struct sum *sum;
	uint32_t i = 0;

	if (at == sums->sums.count) {
		struct sum fresh = {
			.all = {.tgid = of->tgid, .tid = of->tid, .start_ns = of->start_ns}};

		if (sums->sums.count == SUMS_MAX)
			drop(sums, 0);
		if (vec_push(&sums->sums, fresh))
			return;
		at = sums->sums.count - 1;
	}
	sum = &sums->sums.items[at];
	sum->all.samples++;
	while (i < sum->count && sum->functions[i].code != code)
		i++;
	if (i == FUNCTIONS_MAX)
		return;
	if (i == sum->count)
		sum->functions[sum->count++].code = code;
	sum->functions[i].samples++;
}

/* Moves the one with most samples among those from index on to index. */
static void move_most(struct sum *sum, uint32_t index)
{
	uint32_t most = index;
	typeof(sum->functions[0]) other = sum->functions[index];

	for (uint32_t i = index + 1; i < sum->count; i++)
		if (sum->functions[i].samples > sum->functions[most].samples)
			most = i;
	sum->functions[index] = sum->functions[most];
	sum->functions[most] = other;
}

void sample_sums__send(struct sample_sums *sums, const struct fbt_step *step)
{
	size_t at = find(sums, step->tid, step->start_ns);
	struct fbt_samples record;
	struct sum *sum;

	if (at == sums->sums.count)
		return;
	sum = &sums->sums.items[at];
	record = sum->all;
	for (uint32_t i = 0; i < sum->count && i < FBT_SAMPLED_FUNCTIONS; i++) {
		move_most(sum, i);
		record.functions[i].code = sum->functions[i].code;
		record.functions[i].samples = sum->functions[i].samples;
		record.count++;
	}
	record_send(sums->output, &record, sizeof(record), FBT_EVENT_SAMPLES);
	drop(sums, at);
}

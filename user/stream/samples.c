/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/samples.h"

#include <stdlib.h>
#include <string.h>

#include "stream/step_sums.h"

/* Steps that are open, or whose record was lost. */
#define SUMS_MAX 64
/* Functions of one step that are told apart. */
#define FUNCTIONS_MAX 64
/* Ways to them, and functions of a way. */
#define WAYS_MAX   32
#define FRAMES_MAX 64

struct way {
	uint32_t samples;
	uint32_t flags; /* FBT_STACK_* */
	uint32_t count;
	uint32_t codes[FRAMES_MAX];
};

struct sum {
	struct step_sum of;
	uint32_t samples; /* of all functions */
	uint32_t count;
	struct {
		uint32_t code;
		uint32_t samples;
	} functions[FUNCTIONS_MAX];
	uint32_t way_count;
	struct way ways[WAYS_MAX];
};

struct sample_sums {
	const struct record_output *output;
	struct step_sums *sums;
};

struct sample_sums *sample_sums__new(const struct record_output *output)
{
	struct sample_sums *sums = calloc(1, sizeof(*sums));

	if (!sums)
		return NULL;
	sums->output = output;
	sums->sums = step_sums__new(sizeof(struct sum), SUMS_MAX);
	if (sums->sums)
		return sums;
	free(sums);
	return NULL;
}

void sample_sums__free(struct sample_sums *sums)
{
	if (!sums)
		return;
	step_sums__free(sums->sums);
	free(sums);
}

static void add_way(struct sum *sum, const struct stack_codes *codes)
{
	uint32_t count = codes->count < FRAMES_MAX ? codes->count : FRAMES_MAX, i = 0;
	struct way *way;

	while (i < sum->way_count &&
	       (sum->ways[i].count != count ||
		memcmp(sum->ways[i].codes, codes->codes, count * sizeof(codes->codes[0])) != 0))
		i++;
	if (i == WAYS_MAX)
		return;
	way = &sum->ways[i];
	if (i == sum->way_count) {
		sum->way_count++;
		way->count = count;
		memcpy(way->codes, codes->codes, count * sizeof(codes->codes[0]));
	}
	way->samples++;
	way->flags |= codes->flags | (codes->count > count ? FBT_STACK_CUT : 0);
}

static void add_function(struct sum *sum, uint32_t code)
{
	uint32_t i = 0;

	while (i < sum->count && sum->functions[i].code != code)
		i++;
	if (i == FUNCTIONS_MAX)
		return;
	if (i == sum->count)
		sum->functions[sum->count++].code = code;
	sum->functions[i].samples++;
}

void sample_sums__add(struct sample_sums *sums, const struct fbt_samples *of,
		      const struct stack_codes *codes)
{
	const struct step_sum key = {of->tgid, of->tid, of->start_ns};
	struct sum *sum = step_sums__get(sums->sums, &key);

	if (!sum)
		return;
	sum->samples++;
	add_function(sum, codes->codes[0]);
	add_way(sum, codes);
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

static void send_ways(const struct sample_sums *sums, const struct sum *sum)
{
	for (uint32_t i = 0; i < sum->way_count; i++) {
		const struct way *way = &sum->ways[i];
		struct fbt_stack record = {.header.flags = (__u16)(way->flags | FBT_STACK_SAMPLED),
					   .tgid = sum->of.tgid,
					   .tid = sum->of.tid,
					   .owner = sum->of.tid,
					   .start_ns = sum->of.start_ns,
					   .nr = FBT_NR_COUNT - 1,
					   .samples = way->samples,
					   .count = way->count};

		memcpy(record.codes, way->codes, way->count * sizeof(way->codes[0]));
		record_send(sums->output, &record, sizeof(record), FBT_EVENT_STACK);
	}
}

void sample_sums__send(struct sample_sums *sums, const struct fbt_step *step)
{
	struct sum *sum = step_sums__find(sums->sums, step->tid, step->start_ns);
	struct fbt_samples record;

	if (!sum)
		return;
	record = (struct fbt_samples){.tgid = sum->of.tgid,
				      .tid = sum->of.tid,
				      .start_ns = sum->of.start_ns,
				      .samples = sum->samples};
	for (uint32_t i = 0; i < sum->count && i < FBT_SAMPLED_FUNCTIONS; i++) {
		move_most(sum, i);
		record.functions[i].code = sum->functions[i].code;
		record.functions[i].samples = sum->functions[i].samples;
		record.count++;
	}
	send_ways(sums, sum);
	record_send(sums->output, &record, sizeof(record), FBT_EVENT_SAMPLES);
	step_sums__drop(sums->sums, sum);
}

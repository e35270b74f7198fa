/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "diff/side.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"

#define PER_OCTAVE  16
#define OCTAVE_BITS 4

/* The argument of Python engines that says how much there is to do. */
#define TOKENS "n_tokens"
#define WAITED "n_waited" /* see class_argument() */

uint32_t size_bin(uint64_t size)
{
	uint32_t octave;

	if (size < PER_OCTAVE)
		return (uint32_t)size;
	octave = 63 - (uint32_t)__builtin_clzll(size);
	return (octave - OCTAVE_BITS + 1) * PER_OCTAVE +
	       (uint32_t)(size >> (octave - OCTAVE_BITS)) % PER_OCTAVE;
}

uint64_t size_bin_low(uint32_t bin)
{
	uint32_t shift;

	if (bin < PER_OCTAVE)
		return bin;
	if (bin >= SIZE_BINS)
		return UINT64_MAX;
	shift = bin / PER_OCTAVE - 1;
	return (uint64_t)(PER_OCTAVE + bin % PER_OCTAVE) << shift;
}

struct side *side__new(const char *path)
{
	struct side *side = calloc(1, sizeof(*side));

	if (side)
		side->path = path;
	return side;
}

static void free_kind(struct side_kind *kind)
{
	for (int by = 0; by < SIZE_BY_COUNT; by++)
		for (int bin = 0; bin < SIZE_BINS; bin++)
			free(kind->sums[by][bin]);
	free(kind->name);
	free(kind->argument);
	free(kind);
}

void side__free(struct side *side)
{
	if (!side)
		return;
	vec_for_each (kind, &side->kinds)
		free_kind(*kind);
	vec_free(&side->kinds);
	vec_free(&side->steps);
	for (int i = 0; i < FACT_COUNT; i++)
		free(side->facts[i]);
	free(side);
}

static int find_argument(const char *const arguments[FBT_ARG_COUNT], const char *name)
{
	for (int i = 0; i < FBT_ARG_COUNT; i++) {
		if (arguments[i] && !strcmp(arguments[i], name))
			return i;
	}
	return -1;
}

/* Which of the arguments a new kind has as its size: -1 if none. */
static int choose_argument(const char *class_by, const char *const arguments[FBT_ARG_COUNT])
{
	int chosen = find_argument(arguments, class_by ? class_by : WAITED);

	if (class_by)
		return chosen;
	if (chosen < 0)
		chosen = find_argument(arguments, TOKENS);
	for (int i = 0, first = chosen; i < FBT_ARG_COUNT && first < 0; i++) {
		if (arguments[i] && (chosen < 0 || strcmp(arguments[i], arguments[chosen]) < 0))
			chosen = i;
	}
	return chosen;
}

static struct side_kind *make_kind(const char *name, const char *argument, bool is_interval)
{
	struct side_kind *kind = calloc(1, sizeof(*kind));

	if (!kind)
		return NULL;
	kind->name = strndup(name, SIDE_NAME_MAX);
	kind->argument = argument ? strndup(argument, SIDE_NAME_MAX) : NULL;
	kind->is_interval = is_interval;
	if (kind->name && (kind->argument || !argument))
		return kind;
	free_kind(kind);
	return NULL;
}

int side_kind_argument(const struct side_kind *kind, const char *const arguments[FBT_ARG_COUNT])
{
	return kind->argument ? find_argument(arguments, kind->argument) : -1;
}

int side__kind(struct side *side, const char *name, const char *const arguments[FBT_ARG_COUNT],
	       bool is_interval)
{
	int chosen = choose_argument(side->class_by, arguments), err;
	struct side_kind *kind;

	for (size_t i = 0; i < side->kinds.count; i++)
		if (!strncmp(side->kinds.items[i]->name, name, SIDE_NAME_MAX) &&
		    side->kinds.items[i]->is_interval == is_interval)
			return (int)i;
	if (side->kinds.count == SIDE_KINDS_MAX)
		return -ENOSPC;
	kind = make_kind(name, chosen < 0 ? NULL : arguments[chosen], is_interval);
	if (!kind)
		return -ENOMEM;
	err = vec_push(&side->kinds, kind);
	if (err)
		free_kind(kind);
	return err ? err : (int)side->kinds.count - 1;
}

static struct size_sums *find_sums(struct side_kind *kind, enum size_by by, uint64_t size)
{
	struct size_sums **sums = &kind->sums[by][size_bin(size)];

	if (!*sums)
		*sums = calloc(1, sizeof(**sums));
	return *sums;
}

static int add_to_sums(struct side_kind *kind, enum size_by by, const struct side_step *step,
		       const uint64_t *parts)
{
	struct size_sums *sums = find_sums(kind, by, step->size[by]);

	if (!sums)
		return -ENOMEM;
	if (!sums->steps || step->size[by] < sums->low)
		sums->low = step->size[by];
	sums->high = max_u64(sums->high, step->size[by]);
	sums->steps++;
	sums->ns = add_saturating(sums->ns, step->ns);
	if (!parts)
		return 0;
	sums->known++;
	for (int i = 0; i < STEP_PARTS; i++)
		sums->part_ns[i] = add_saturating(sums->part_ns[i], parts[i]);
	return 0;
}

int side__add(struct side *side, const struct side_step *step, const uint64_t *parts)
{
	struct side_kind *kind = side->kinds.items[step->kind];
	int err;

	side->has_last = false;
	if (side->steps.count == SIDE_STEPS_MAX) {
		kind->left_out[LEFT_TOO_MANY]++;
		return 0;
	}
	err = vec_push(&side->steps, *step);
	if (!err)
		err = add_to_sums(kind, SIZE_BY_WORK, step, parts);
	if (!err && step->has_argument)
		err = add_to_sums(kind, SIZE_BY_ARGUMENT, step, parts);
	if (err)
		return err;
	kind->steps++;
	kind->ns = add_saturating(kind->ns, step->ns);
	kind->with_argument += step->has_argument;
	side->has_last = true;
	return 0;
}

void side__leave_out(struct side *side, uint8_t kind, enum left_out why)
{
	side->kinds.items[kind]->left_out[why]++;
	side->has_last = false;
}

void side__add_cause(struct side *side, enum cause_kind cause, uint64_t extra_ns)
{
	const struct side_step *step;
	struct side_kind *kind;

	if (!side->has_last)
		return;
	side->has_last = false;
	step = &side->steps.items[side->steps.count - 1];
	kind = side->kinds.items[step->kind];
	for (int by = 0; by < SIZE_BY_COUNT; by++) {
		struct size_sums *sums = kind->sums[by][size_bin(step->size[by])];

		if (!sums || (by == SIZE_BY_ARGUMENT && !step->has_argument))
			continue;
		sums->causes[cause].steps++;
		sums->causes[cause].extra_ns =
			add_saturating(sums->causes[cause].extra_ns, extra_ns);
	}
}

int side__set_fact(struct side *side, enum side_fact fact, const char *value)
{
	if (!value)
		return 0;
	if (side->facts[fact]) {
		side->facts_vary |= strncmp(side->facts[fact], value, SIDE_NAME_MAX) != 0;
		return 0;
	}
	side->facts[fact] = strndup(value, SIDE_NAME_MAX);
	return side->facts[fact] ? 0 : -ENOMEM;
}

const char *side_gpu_fact(const struct side *side, bool is_strict)
{
	if (!side->has_gpu)
		return "off";
	return is_strict ? "strict" : "on";
}

uint64_t side_ns(const struct side *side)
{
	uint64_t sum = 0;

	vec_for_each (kind, &side->kinds)
		sum = add_saturating(sum, (*kind)->ns);
	return sum;
}

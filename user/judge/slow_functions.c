/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/slow_functions.h"

#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "judge/frames.h"

#define PROFILES_MAX  64
#define FUNCTIONS_MAX 128
/* From so many samples on all are halved, so that it follows what the engine does now. */
#define SAMPLES_MAX 20000
/* A function that has less than this part of the growth is not named. */
#define GROWN_PART 20

enum which { NORMAL, SLOW, KINDS };

struct function {
	uint32_t code;
	uint32_t samples[KINDS];
};

struct profile {
	uint64_t key;
	uint64_t used; /* when, in steps */
	uint32_t samples[KINDS];
	uint32_t count;
	struct function functions[FUNCTIONS_MAX];
};

struct slow_functions {
	struct profile *list[PROFILES_MAX];
	uint32_t count;
	uint64_t steps;
};

struct slow_functions *slow_functions__new(void)
{
	return calloc(1, sizeof(struct slow_functions));
}

void slow_functions__free(struct slow_functions *profiles)
{
	if (!profiles)
		return;
	for (uint32_t i = 0; i < profiles->count; i++)
		free(profiles->list[i]);
	free(profiles);
}

/* Takes the place of the one that was not used for longest, if there are too many. */
static struct profile *add_profile(struct slow_functions *profiles, uint64_t key)
{
	struct profile *profile;

	if (profiles->count < PROFILES_MAX) {
		profile = calloc(1, sizeof(*profile));
		if (!profile)
			return NULL;
		profiles->list[profiles->count++] = profile;
	} else {
		profile = profiles->list[0];
		for (uint32_t i = 1; i < profiles->count; i++)
			if (profiles->list[i]->used < profile->used)
				profile = profiles->list[i];
		memset(profile, 0, sizeof(*profile));
	}
	profile->key = key;
	return profile;
}

static struct profile *find_profile(struct slow_functions *profiles, uint64_t key)
{
	for (uint32_t i = 0; i < profiles->count; i++)
		if (profiles->list[i]->key == key)
			return profiles->list[i];
	return NULL;
}

static void halve(struct profile *profile)
{
	for (int which = 0; which < KINDS; which++)
		profile->samples[which] /= 2;
	for (uint32_t i = 0; i < profile->count; i++)
		for (int which = 0; which < KINDS; which++)
			profile->functions[i].samples[which] /= 2;
}

static uint32_t samples_of(const struct function *function)
{
	return function->samples[NORMAL] + function->samples[SLOW];
}

/*
 * The function, added if it is new. If there are too many it takes the place of the one with the
 * fewest samples; NULL: it has no more samples than that.
 */
static struct function *find_function(struct profile *profile, uint32_t code, uint32_t samples)
{
	struct function *least = profile->functions;

	for (uint32_t i = 0; i < profile->count; i++) {
		struct function *function = &profile->functions[i];

		if (function->code == code)
			return function;
		if (samples_of(function) < samples_of(least))
			least = function;
	}
	if (profile->count < FUNCTIONS_MAX)
		least = &profile->functions[profile->count++];
	else if (samples_of(least) >= samples)
		return NULL;
	*least = (struct function){.code = code};
	return least;
}

static void add_function(struct profile *profile, enum which which, uint32_t code, uint32_t samples)
{
	struct function *function = find_function(profile, code, samples);

	if (function)
		function->samples[which] += samples;
}

static void add_samples(struct profile *profile, enum which which,
			const struct fbt_samples *samples)
{
	/* More than a step can have: such a record is not ours. */
	if (samples->samples > SAMPLES_MAX)
		return;
	if (profile->samples[which] + samples->samples > SAMPLES_MAX)
		halve(profile);
	profile->samples[which] += samples->samples;
	for (uint32_t i = 0; i < samples->count; i++)
		add_function(profile, which, samples->functions[i].code,
			     samples->functions[i].samples);
}

static uint64_t share_of(const struct profile *profile, enum which which, uint32_t index,
			 uint64_t ns)
{
	uint32_t all = profile->samples[which];

	if (!all)
		return 0;
	return (uint64_t)((unsigned __int128)ns * profile->functions[index].samples[which] / all);
}

/* Keeps those that have grown most, the first most. */
static void keep_grown(struct cause *cause, uint32_t code, uint64_t ns)
{
	uint32_t place = cause->grown_count;

	while (place && cause->grown[place - 1].ns < ns)
		place--;
	if (place == CAUSE_GROWN)
		return;
	if (cause->grown_count < CAUSE_GROWN)
		cause->grown_count++;
	memmove(&cause->grown[place + 1], &cause->grown[place],
		(cause->grown_count - 1 - place) * sizeof(cause->grown[0]));
	cause->grown[place] = (typeof(cause->grown[0])){.codes = {code}, .ns = ns};
}

/* Who called the functions that have grown: the way to each that has most samples. */
static void find_callers(const struct window *window, const struct step *step, struct cause *cause)
{
	const char *kind = window__kind_name(window, step->record.kind);

	for (uint32_t i = 0; i < cause->grown_count; i++) {
		uint32_t *codes = cause->grown[i].codes, most = 0;

		vec_for_each (stack, &step->stacks) {
			uint32_t count =
				min_u64(frames_of_step(window, kind, stack->codes, stack->count),
					CAUSE_GROWN_CODES);

			if (!(stack->header.flags & FBT_STACK_SAMPLED) ||
			    stack->codes[0] != codes[0] || stack->samples <= most)
				continue;
			most = stack->samples;
			memset(codes + 1, 0, (CAUSE_GROWN_CODES - 1) * sizeof(*codes));
			memcpy(codes, stack->codes, count * sizeof(*codes));
		}
	}
}

/* By the step's own samples, or by those of all slow steps if they are too few. */
static uint64_t slow_share_of(const struct profile *profile, uint32_t index,
			      const struct fbt_samples *own, uint64_t ns)
{
	if (own->samples < SLOW_FUNCTIONS_LEAST)
		return share_of(profile, SLOW, index, ns);
	for (uint32_t i = 0; i < own->count; i++)
		if (own->functions[i].code == profile->functions[index].code)
			return (uint64_t)((unsigned __int128)ns * own->functions[i].samples /
					  own->samples);
	return 0;
}

static void find_grown(const struct profile *profile, const struct fbt_samples *own,
		       struct cause *cause)
{
	bool has_usual = profile->samples[NORMAL] >= SLOW_FUNCTIONS_LEAST && !cause->is_usual;
	/* No sample has what other threads or the GPU did meanwhile. */
	uint64_t own_ns = sub_saturating(cause->time_ns, cause->elsewhere_ns);
	uint64_t own_usual_ns = sub_saturating(cause->usual_ns, cause->elsewhere_usual_ns);
	uint64_t usual_ns = has_usual ? own_usual_ns : 0;
	uint64_t least_ns = sub_saturating(own_ns, usual_ns) / GROWN_PART;

	if (profile->samples[SLOW] < SLOW_FUNCTIONS_LEAST || own_ns <= usual_ns)
		return;
	if (cause_is_of_other(cause))
		return;
	cause->grown_usual = usual_ns != 0;
	for (uint32_t i = 0; i < profile->count; i++) {
		uint64_t slow_ns = slow_share_of(profile, i, own, own_ns);
		uint64_t normal_ns = share_of(profile, NORMAL, i, usual_ns);

		if (profile->functions[i].code && slow_ns > normal_ns &&
		    slow_ns - normal_ns >= least_ns)
			keep_grown(cause, profile->functions[i].code, slow_ns - normal_ns);
	}
}

void slow_functions__judge(struct slow_functions *profiles, const struct window *window,
			   uint64_t key, const struct step *step, struct cause *cause)
{
	const struct fbt_samples *samples = &step->samples;
	bool has_samples = samples->header.type == FBT_EVENT_SAMPLES && samples->samples;
	struct profile *profile = find_profile(profiles, key);

	profiles->steps++;
	if (cause && cause->kind != CAUSE_COMPUTE)
		return;
	if (has_samples && !profile)
		profile = add_profile(profiles, key);
	if (!profile)
		return;
	profile->used = profiles->steps;
	if (has_samples)
		add_samples(profile, cause ? SLOW : NORMAL, samples);
	/* Another step says nothing of one that was not sampled. */
	if (cause && has_samples)
		find_grown(profile, samples, cause);
	if (cause)
		find_callers(window, step, cause);
}

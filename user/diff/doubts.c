/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What is to be known before the figures are believed. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/format.h"
#include "diff/result.h"

/* Steps that are left out may be the slow ones: beyond that share it is told. */
#define LEFT_OUT_SHARE 0.01

static const char *const side_names[SIDES] = {"A", "B"};

/* Facts in which the two should not differ. */
static int compare_facts(struct result *result)
{
	static const struct {
		enum side_fact fact;
		bool is_serious;
		const char *words;
	} rows[] = {
		{FACT_HOST, true, "A and B are from different machines"},
		{FACT_ARCH, true, "A and B are from machines of different architectures"},
		{FACT_KERNEL, false, "A and B ran on different kernels"},
		{FACT_TOOL, true, "A and B were measured by different versions of ferrum-bpftrace"},
		{FACT_DETAIL, true,
		 "A and B were measured with different --detail, which adds "
		 "different times to each step"},
		{FACT_GPU, true,
		 "GPU records, which make steps longer, were not taken alike in A and B"},
		{FACT_MODEL, true, "A and B are of different models"},
		{FACT_CONCURRENCY, false, "A and B had different numbers of concurrent requests"},
		{FACT_ENV_HASH, false, "A and B have different environment hashes"},
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows) && !err; i++) {
		const char *a = result->sides[0]->facts[rows[i].fact];
		const char *b = result->sides[1]->facts[rows[i].fact];

		if (a && b && strcmp(a, b) != 0)
			err = result__doubt(result, rows[i].is_serious, "%s: %.80s and %.80s",
					    rows[i].words, a, b);
	}
	return err;
}

static int doubt_windows(struct result *result, const struct side *side, const char *name)
{
	int err = 0;

	if (side->lost)
		err = result__doubt(result, true,
				    "%s: %s record%s lost: steps or calls are missing", name,
				    FORMAT_COUNT(side->lost), plural(side->lost));
	if (!err && side->bad_lines)
		err = result__doubt(result, true, "%s: %s line%s of the file %s damaged", name,
				    FORMAT_COUNT(side->bad_lines), plural(side->bad_lines),
				    side->bad_lines == 1 ? "is" : "are");
	if (!err && (side->cut_off || side->has_open_end))
		err = result__doubt(
			result, true,
			"%s: the file ends before its window: what was lost is not known", name);
	if (!err && side->sampled_percent > 0)
		err = result__doubt(result, true,
				    "%s: a step function was called so often that its steps were "
				    "measured in %s of the time only",
				    name, FORMAT_PERCENT(side->sampled_percent));
	if (!err && side->windows > 1)
		err = result__doubt(result, side->facts_vary, "%s: %s windows together%s", name,
				    FORMAT_COUNT(side->windows),
				    side->facts_vary ? ", which were not measured alike" : "");
	if (!err && side->kinds_left_out)
		err = result__doubt(result, true, "%s: %s steps of further functions are left out",
				    name, FORMAT_COUNT(side->kinds_left_out));
	return err;
}

static int doubt_steps(struct result *result, const struct side *side, const char *name)
{
	static const char *const words[LEFT_COUNT] = {
		[LEFT_INCOMPLETE] = "not whole: cut off by an end of the window, or by a loss",
		[LEFT_UNWOUND] = "ended by an exception, a panic or the end of their thread",
		[LEFT_PROFILED] = "slowed down by PyTorch's profiler",
		[LEFT_TOO_MANY] = "more than are compared: the file is too long",
	};
	uint64_t counts[LEFT_COUNT] = {0}, steps = 0;
	int err = 0;

	vec_for_each (kind, &side->kinds) {
		if ((*kind)->is_interval)
			continue;
		steps += (*kind)->steps;
		for (int i = 0; i < LEFT_COUNT; i++)
			counts[i] += (*kind)->left_out[i];
	}
	for (int i = 0; i < LEFT_COUNT && !err; i++) {
		/* Those beyond the limit are all from one end of the file. */
		double share = i == LEFT_TOO_MANY ? 0 : LEFT_OUT_SHARE;

		if ((double)counts[i] > share * (double)steps)
			err = result__doubt(result, i == LEFT_INCOMPLETE && counts[i] > 1,
					    "%s: %s step%s left out: %s", name,
					    FORMAT_COUNT(counts[i]),
					    counts[i] == 1 ? " is" : "s are", words[i]);
	}
	return err;
}

static bool has_function(const struct side *side, const char *name)
{
	vec_for_each (kind, &side->kinds)
		if (!(*kind)->is_interval && !strcmp((*kind)->name, name))
			return true;
	return false;
}

static int doubt_pooled(struct result *result, int which)
{
	char name[96];
	int err = 0;

	vec_for_each (kind, &result->sides[which]->kinds) {
		if (err || !(*kind)->is_pooled)
			continue;
		shorten_name(name, sizeof(name), (*kind)->name, 60);
		err = result__doubt(result, true,
				    "%s: several functions are named %s, and are compared as one",
				    side_names[which], name);
	}
	return err;
}

static int doubt_functions(struct result *result, int which)
{
	const struct side *side = result->sides[which];
	char name[96];
	int err = 0;

	vec_for_each (kind, &side->kinds) {
		shorten_name(name, sizeof(name), (*kind)->name, 60);
		if ((*kind)->is_interval)
			err = err ? err
				  : result__doubt(result, true,
						  "%s: intervals of fixed length, no steps: they "
						  "are not compared; name a function with --step",
						  side_names[which]);
		else if (!has_function(result->sides[!which], (*kind)->name))
			err = err ? err
				  : result__doubt(result, true, "only %s has steps of %s",
						  side_names[which], name);
	}
	return err;
}

static int doubt_moved(struct result *result)
{
	char a[CLASS_LABEL_MAX], b[CLASS_LABEL_MAX], name[96];
	int err = 0;

	vec_for_each (moved, &result->moved) {
		shorten_name(name, sizeof(name), moved->of[0]->kind, 60);
		err = err ? err
			  : result__doubt(result, true,
					  "nearly all steps of %s with %s are in A, and with %s "
					  "in B: they may be the same steps with slower code, or "
					  "faster, so they cannot be compared; trace with "
					  "--step-arg",
					  name, class_label(moved->of[0], a),
					  class_label(moved->of[1], b));
	}
	return err;
}

/* The argument that --class-by names is one of no function: a typo, or it was not recorded. */
static bool lacks_argument(const struct side *side)
{
	if (!side->class_by || !*side->class_by)
		return false;
	vec_for_each (kind, &side->kinds) {
		if ((*kind)->argument)
			return false;
	}
	return true;
}

/* Whether size is known, and what that means, is told once. */
static int doubt_sizes(struct result *result)
{
	const struct side *side = result->sides[lacks_argument(result->sides[0]) ? 0 : 1];
	bool by_work = false, is_cut = false;
	int err = 0;

	vec_for_each (class, &result->classes) {
		by_work |= !class->argument;
		is_cut |= class->is_cut;
	}
	if (lacks_argument(side))
		err = result__doubt(result, true,
				    "no step of %s has the argument %s (--class-by), so classes "
				    "are by work (own code)",
				    side_names[side != result->sides[0]], side->class_by);
	else if (by_work)
		err = result__doubt(
			result, false,
			"what steps had to do is not known, so classes are by work (own "
			"code): larger batches look like slower code; trace with "
			"--step-arg, such as n_tokens=...");
	if (!err && is_cut)
		err = result__doubt(result, false,
				    "steps of all sizes follow each other without a gap: of such "
				    "classes only waits can be compared, not own code");
	return err;
}

int result__find_doubts(struct result *result)
{
	int err = compare_facts(result);

	for (int i = 0; i < SIDES && !err; i++) {
		err = doubt_windows(result, result->sides[i], side_names[i]);
		err = err ? err : doubt_steps(result, result->sides[i], side_names[i]);
		err = err ? err : doubt_functions(result, i);
		err = err ? err : doubt_pooled(result, i);
	}
	err = err ? err : doubt_moved(result);
	return err ? err : doubt_sizes(result);
}

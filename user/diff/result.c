/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "diff/result.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/format.h"

/* Of a profile times are whole microseconds. */
#define PROFILE_RESOLUTION_NS 1000

/* Steps have a size by an argument if so many of each file have it. */
#define ARGUMENT_SHARE 0.99

/* Comparable: so much of the time of one. The other may have new sorts of steps. */
#define COMPARABLE 0.5

/*
 * A class has no counterpart if it has so much of its side's time, and the other one less than a
 * tenth of that, which has too few steps for a median.
 */
#define MOVED_SHARE 0.05
#define MOVED_LEFT  0.1

static const double diff_shares[QUANTILES] = {0.5, 0.95, 0.99};
const char *const diff_share_names[QUANTILES] = {"p50", "p95", "p99"};

/* A step function of both, or of one. */
struct pair {
	const struct side_kind *kinds[SIDES]; /* NULL: not in that side */
	uint8_t index[SIDES];
	enum size_by by;
};

static bool has_arguments(const struct side_kind *kind)
{
	return kind && kind->argument &&
	       (double)kind->with_argument >= ARGUMENT_SHARE * (double)kind->steps;
}

static enum size_by choose_size(const struct pair *pair)
{
	for (int i = 0; i < SIDES; i++)
		if (pair->kinds[i] && !has_arguments(pair->kinds[i]))
			return SIZE_BY_WORK;
	if (pair->kinds[0] && pair->kinds[1] &&
	    strcmp(pair->kinds[0]->argument, pair->kinds[1]->argument) != 0)
		return SIZE_BY_WORK;
	return SIZE_BY_ARGUMENT;
}

static uint64_t count_of(const struct pair *pair, int side, uint32_t bin)
{
	const struct side_kind *kind = pair->kinds[side];

	return kind && kind->sums[pair->by][bin] ? kind->sums[pair->by][bin]->steps : 0;
}

/*
 * The weight of a step of that bin. Where sizes are compared bin by bin, both sides get as much
 * weight in a bin as the other (Mantel and Haenszel): with n and m steps, n m / (n + m).
 */
static double weight_of(const struct pair *pair, const struct diff_class *class, int side,
			uint32_t bin)
{
	double own = (double)count_of(pair, side, bin), other;

	if (!class->by_bin)
		return 1;
	other = (double)count_of(pair, !side, bin);
	return own > 0 ? other / (own + other) : 0;
}

/* The sizes and sums of a class, over its bins. */
static void add_bin(const struct pair *pair, struct diff_class *class, int side, uint32_t bin)
{
	const struct size_sums *sums = pair->kinds[side]->sums[pair->by][bin];
	struct class_side *to = &class->sides[side];
	double weight = weight_of(pair, class, side, bin);

	to->steps += sums->steps;
	to->ns = add_saturating(to->ns, sums->ns);
	to->compared += weight > 0 ? sums->steps : 0;
	to->mean_ns += weight * (double)sums->ns;
	to->parts_known &= sums->known == sums->steps;
	for (int i = 0; i < STEP_PARTS; i++)
		to->part_ns[i] += weight * (double)sums->part_ns[i];
	for (int i = 0; i < CAUSE_COUNT; i++) {
		to->causes[i].steps += sums->causes[i].steps;
		to->causes[i].extra_ns =
			add_saturating(to->causes[i].extra_ns, sums->causes[i].extra_ns);
	}
}

static void fill_sums(const struct pair *pair, const struct cluster *cluster,
		      struct diff_class *class)
{
	bool is_first = true;

	for (int side = 0; side < SIDES; side++) {
		struct class_side *to = &class->sides[side];
		const struct size_sums *sums;
		double weight = 0;

		to->parts_known = pair->kinds[side] != NULL;
		to->calls_known = pair->kinds[side] && !pair->kinds[side]->without_calls;
		for (uint32_t bin = cluster->from; bin < cluster->to && pair->kinds[side]; bin++) {
			if (!count_of(pair, side, bin))
				continue;
			add_bin(pair, class, side, bin);
			weight += weight_of(pair, class, side, bin) *
				  (double)count_of(pair, side, bin);
			sums = pair->kinds[side]->sums[pair->by][bin];
			if (is_first || sums->low < class->low)
				class->low = sums->low;
			class->high = max_u64(class->high, sums->high);
			is_first = false;
		}
		to->mean_ns = weight > 0 ? to->mean_ns / weight : 0;
		for (int i = 0; i < STEP_PARTS; i++)
			to->part_ns[i] = weight > 0 ? to->part_ns[i] / weight : 0;
	}
}

static int compare_weighted(const void *left, const void *right)
{
	const struct weighted *a = left, *b = right;

	return a->ns < b->ns ? -1 : a->ns > b->ns;
}

/* Sorts the steps. */
static void fill_curve(struct weighted *steps, size_t count, uint64_t curve_ns[CURVE])
{
	double total = 0, sum = 0;
	int at = 0;

	if (count)
		qsort(steps, count, sizeof(*steps), compare_weighted);
	for (size_t i = 0; i < count; i++)
		total += steps[i].weight;
	for (size_t i = 0; i < count; i++) {
		sum += steps[i].weight;
		while (at < CURVE && steps[i].weight > 0 &&
		       sum >= total * at / (CURVE - 1) * (1 - 1e-9))
			curve_ns[at++] = steps[i].ns;
	}
}

static int fill_quantiles(const struct side *side, const struct pair *pair, int which,
			  const struct cluster *cluster, struct diff_class *class)
{
	struct weighted *steps = calloc(class->sides[which].steps + 1, sizeof(*steps));
	size_t count = 0;
	int err = 0;

	if (!steps)
		return -ENOMEM;
	vec_for_each (step, &side->steps) {
		uint32_t bin = size_bin(step->size[pair->by]);

		if (step->kind != pair->index[which] || bin < cluster->from || bin >= cluster->to ||
		    (pair->by == SIZE_BY_ARGUMENT && !step->has_argument))
			continue;
		if (count < class->sides[which].steps)
			steps[count++] = (struct weighted){
				.ns = step->ns,
				.weight = (float)weight_of(pair, class, which, bin),
			};
	}
	for (int i = 0; i < QUANTILES && !err; i++)
		err = quantile_find(steps, count, diff_shares[i],
				    &class->sides[which].quantiles[i]);
	fill_curve(steps, count, class->sides[which].curve_ns);
	free(steps);
	return err;
}

static int add_class(struct result *result, const struct pair *pair, const struct cluster *cluster)
{
	const struct side_kind *kind = pair->kinds[0] ? pair->kinds[0] : pair->kinds[1];
	struct diff_class class = {
		.kind = kind->name,
		.argument = pair->by == SIZE_BY_ARGUMENT ? kind->argument : NULL,
		.by_bin = cluster->by_bin,
		.is_cut = cluster->is_cut,
	};
	int err = 0;

	/* A class of one side has nothing to be weighted by. */
	for (int side = 0; side < SIDES; side++) {
		bool is_there = false;

		for (int i = 0; i < QUANTILES; i++)
			class.sides[side].quantiles[i].state = QUANTILE_TOO_FEW;

		for (uint32_t bin = cluster->from; bin < cluster->to; bin++)
			is_there |= count_of(pair, side, bin) > 0;
		class.by_bin &= is_there;
	}
	fill_sums(pair, cluster, &class);
	for (int side = 0; side < SIDES && !err; side++)
		if (pair->kinds[side])
			err = fill_quantiles(result->sides[side], pair, side, cluster, &class);
	return err ? err : vec_push(&result->classes, class);
}

static int add_classes(struct result *result, struct pair *pair)
{
	struct cluster clusters[CLUSTERS_MAX];
	uint64_t counts[SIDES][SIZE_BINS];
	int count, err = 0;

	pair->by = choose_size(pair);
	for (int side = 0; side < SIDES; side++)
		for (uint32_t bin = 0; bin < SIZE_BINS; bin++)
			counts[side][bin] = count_of(pair, side, bin);
	count = pair->by == SIZE_BY_ARGUMENT ? cluster_by_argument(counts[0], counts[1], clusters)
					     : cluster_by_work(counts[0], counts[1], clusters);
	for (int i = 0; i < count && !err; i++)
		err = add_class(result, pair, &clusters[i]);
	return err;
}

/* Index of the function of that name, or -1. Intervals are no steps: they are not compared. */
static int find_kind(const struct side *side, const char *name)
{
	for (size_t i = 0; i < side->kinds.count; i++)
		if (!side->kinds.items[i]->is_interval && !strcmp(side->kinds.items[i]->name, name))
			return (int)i;
	return -1;
}

static int add_kinds(struct result *result)
{
	int err = 0;

	for (int side = 0; side < SIDES; side++) {
		vec_for_each (kind, &result->sides[side]->kinds) {
			struct pair pair = {{NULL}};
			int other = find_kind(result->sides[!side], (*kind)->name);

			/* What both have was added with A. */
			if ((*kind)->is_interval || (side && other >= 0))
				continue;
			pair.kinds[side] = *kind;
			pair.index[side] = (uint8_t)(kind - result->sides[side]->kinds.items);
			if (other >= 0) {
				pair.kinds[!side] = result->sides[!side]->kinds.items[other];
				pair.index[!side] = (uint8_t)other;
			}
			err = err ? err : add_classes(result, &pair);
		}
	}
	return err;
}

int class_only_in(const struct diff_class *class)
{
	if (class->sides[0].compared && class->sides[1].compared)
		return -1;
	return class->sides[0].steps ? (class->sides[1].steps ? -1 : 0) : 1;
}

static bool is_known(const struct diff_class *class, int quantile)
{
	return class->sides[0].quantiles[quantile].state == QUANTILE_KNOWN &&
	       class->sides[1].quantiles[quantile].state == QUANTILE_KNOWN;
}

/* Worse, better, same and not told, of several. */
static enum verdict summarize(const uint32_t counts[VERDICT_WORSE + 1])
{
	if (counts[VERDICT_WORSE])
		return VERDICT_WORSE;
	if (counts[VERDICT_BETTER])
		return VERDICT_BETTER;
	return counts[VERDICT_CANNOT_TELL] || !counts[VERDICT_SAME] ? VERDICT_CANNOT_TELL
								    : VERDICT_SAME;
}

static void judge_class(const struct result *result, struct diff_class *class)
{
	uint32_t counts[VERDICT_WORSE + 1] = {0};

	for (int i = 0; i < QUANTILES; i++) {
		struct change *change = &class->changes[i];

		*change = change_find(&class->sides[0].quantiles[i], &class->sides[1].quantiles[i],
				      result->resolution_ns, result->comparisons,
				      result->options.margin);
		counts[change->verdict]++;
		class->is_regression |= change->verdict == VERDICT_WORSE &&
					change->ratio >= result->options.threshold;
	}
	class->verdict = summarize(counts);
}

static void judge(struct result *result)
{
	uint32_t counts[VERDICT_WORSE + 1] = {0};
	double ns[SIDES] = {0}, compared[SIDES] = {0};

	for (int i = 0; i < SIDES; i++)
		if (!result->sides[i]->is_capture)
			result->resolution_ns = PROFILE_RESOLUTION_NS;
	/*
	 * Also those that turn out to have too few steps: if the number depended on the data, more
	 * verdicts would be wrong.
	 */
	vec_for_each (class, &result->classes)
		if (class_only_in(class) < 0)
			result->comparisons += QUANTILES;
	vec_for_each (class, &result->classes) {
		if (result->comparisons)
			judge_class(result, class);
		counts[class->verdict]++;
		result->has_regression |= class->is_regression;
		for (int i = 0; i < SIDES; i++) {
			ns[i] += (double)class->sides[i].ns;
			compared[i] += is_known(class, 0) ? (double)class->sides[i].ns : 0;
		}
	}
	result->verdict = summarize(counts);
	for (int i = 0; i < SIDES; i++) {
		result->compared[i] = ns[i] > 0 ? compared[i] / ns[i] : 0;
		result->is_comparable |= result->compared[i] >= COMPARABLE;
	}
}

static bool has_no_counterpart(const struct result *result, const struct diff_class *class,
			       int side)
{
	double share[SIDES];

	for (int i = 0; i < SIDES; i++) {
		double all = (double)side_ns(result->sides[i]);

		share[i] = all > 0 ? (double)class->sides[i].ns / all : 0;
	}
	return !class->argument && share[side] >= MOVED_SHARE &&
	       share[!side] < MOVED_LEFT * share[side] &&
	       class->sides[!side].quantiles[0].state != QUANTILE_KNOWN;
}

static const struct diff_class *find_without_counterpart(const struct result *result,
							 const char *kind, int side)
{
	vec_for_each (class, &result->classes)
		if (class->kind == kind && has_no_counterpart(result, class, side))
			return class;
	return NULL;
}

/*
 * Steps of a function that are in A only, and others that are in B only: they may be the same ones,
 * with slower code. By work nothing tells that from other steps, so they cannot be passed over.
 */
static int find_moved(struct result *result)
{
	vec_for_each (class, &result->classes) {
		struct moved moved = {{find_without_counterpart(result, class->kind, 0),
				       find_without_counterpart(result, class->kind, 1)}};

		/* Once for each function. */
		if (class != moved.of[0] || !moved.of[1])
			continue;
		if (vec_push(&result->moved, moved))
			return -ENOMEM;
		result->is_comparable = false;
		if (result->verdict != VERDICT_WORSE)
			result->verdict = VERDICT_CANNOT_TELL;
	}
	return 0;
}

static int compare_classes(const void *left, const void *right)
{
	const struct diff_class *a = left, *b = right;
	double a_ns = (double)a->sides[0].ns + (double)a->sides[1].ns;
	double b_ns = (double)b->sides[0].ns + (double)b->sides[1].ns;

	return a_ns > b_ns ? -1 : a_ns < b_ns;
}

int result__new(struct result **result, const struct side *const sides[SIDES],
		const struct diff_options *options)
{
	struct result *made = calloc(1, sizeof(*made));
	int err = made ? 0 : -ENOMEM;

	*result = NULL;
	if (err)
		return err;
	made->options = *options;
	made->resolution_ns = 1;
	for (int i = 0; i < SIDES; i++)
		made->sides[i] = sides[i];
	err = add_kinds(made);
	if (!err) {
		vec_sort(&made->classes, compare_classes);
		judge(made);
		err = find_moved(made);
	}
	if (!err)
		err = result__find_doubts(made);
	if (err) {
		result__free(made);
		return err;
	}
	*result = made;
	return 0;
}

void result__free(struct result *result)
{
	if (!result)
		return;
	vec_for_each (doubt, &result->doubts)
		free(doubt->text);
	vec_free(&result->doubts);
	vec_free(&result->moved);
	vec_free(&result->classes);
	free(result);
}

int result__doubt(struct result *result, bool is_serious, const char *format, ...)
{
	struct doubt doubt = {.is_serious = is_serious};
	va_list args;
	int err;

	va_start(args, format);
	if (vasprintf(&doubt.text, format, args) < 0)
		doubt.text = NULL;
	va_end(args);
	err = doubt.text ? vec_push(&result->doubts, doubt) : -ENOMEM;
	if (err)
		free(doubt.text);
	return err;
}

const char *class_label(const struct diff_class *class, char text[CLASS_LABEL_MAX])
{
	char name[64];

	if (!class->argument) {
		snprintf(text, CLASS_LABEL_MAX, "%s to %s of work", FORMAT_TIME(class->low),
			 FORMAT_TIME(class->high));
		return text;
	}
	shorten_text(name, sizeof(name), class->argument, 40);
	if (class->low == class->high)
		snprintf(text, CLASS_LABEL_MAX, "%s %s", name, FORMAT_COUNT(class->low));
	else
		snprintf(text, CLASS_LABEL_MAX, "%s %s to %s", name, FORMAT_COUNT(class->low),
			 FORMAT_COUNT(class->high));
	return text;
}

const char *change_reason(const struct diff_class *class, int quantile)
{
	static const char *const reasons[SIDES][3] = {
		{"", "too few steps in A", "too few independent steps in A"},
		{"", "too few steps in B", "too few independent steps in B"},
	};

	for (int i = 0; i < SIDES; i++) {
		enum quantile_state state = class->sides[i].quantiles[quantile].state;

		if (state != QUANTILE_KNOWN)
			return reasons[i][state];
	}
	return class->changes[quantile].verdict == VERDICT_CANNOT_TELL ? "noise" : "";
}

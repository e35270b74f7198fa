/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "merge/align.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"

/* Blocks of collectives in a row, by which the place is found where two traces fit. */
#define BLOCKS	  24
#define BLOCK_MIN 8

/* Places that are tried for a block, so that a huge trace takes seconds. */
#define PLACES_MAX (1U << 20)

/* What the times of a trace may be off: a slack below that is none. */
#define TIMES_OFF_NS 2000

/* Collectives fit in one place if they do that much worse in any other one. */
#define CLEARLY 5.0

/* Less says nothing about the clocks. */
#define MATCHED_MIN 3

/* For so long a clock runs evenly, so that the bounds of that time do not contradict each other. */
#define STRETCH_NS    4e9
#define WRONG_PERCENT 2

/* The last matches that tell where the next one is. */
#define RING_SIZE 32

bool collective_is(const char *cat, const char *name, uint32_t *kind)
{
	/* Each word as its letters without what stands between them. */
	static const char *const words[] = {"allreduce", "allgather", "reducescatter", "alltoall",
					    "barrier"};
	static const char *const prefixes[] = {"gloo:", "mpi:", "ucc:"};
	char letters[128];
	size_t count = 0;
	bool is_one = !strcmp(cat, "step");

	if (!strcmp(cat, "kernel"))
		is_one = !strncmp(name, "nccl", 4) || !strncmp(name, "rccl", 4);
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		is_one |= !strncmp(name, prefixes[i], strlen(prefixes[i]));
	if (!is_one)
		return false;
	for (; *name && count + 1 < sizeof(letters); name++) {
		if (isalpha((unsigned char)*name))
			letters[count++] = (char)tolower((unsigned char)*name);
	}
	letters[count] = '\0';
	for (uint32_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strstr(letters, words[i]))
			continue;
		*kind = i + 1;
		return true;
	}
	return false;
}

int64_t clock_line_apply(const struct clock_line *line, int64_t ns)
{
	return ns + line->offset_ns + (int64_t)llround(line->drift * (double)(ns - line->from_ns));
}

/* The bounds of the offset by one collective of both. */
static double low_of(const struct collective *a, const struct collective *b)
{
	return (double)(a->begin_ns - b->end_ns);
}

static double high_of(const struct collective *a, const struct collective *b)
{
	return (double)(a->end_ns - b->begin_ns);
}

/* An offset that some collectives allow. */
struct range {
	double low, high;
};

/* By how much the bounds have to be widened so that an offset is within all of them. */
static double slack_of(const struct range *range)
{
	return fmax(0, (range->low - range->high) / 2);
}

/* Of a range whose slack is above most, no more than that is known. */
static struct range range_of(const collective_vec *a, const collective_vec *b, size_t i, size_t j,
			     size_t count, double most)
{
	struct range range = {-INFINITY, INFINITY};

	for (size_t k = 0; k < count && slack_of(&range) <= most; k++) {
		const struct collective *left = &a->items[i + k], *right = &b->items[j + k];

		if (!collectives_match(left, right))
			return (struct range){INFINITY, -INFINITY};
		range.low = fmax(range.low, low_of(left, right));
		range.high = fmin(range.high, high_of(left, right));
	}
	return range;
}

/* Where a block of one trace fits in the other. */
struct place {
	size_t a, b, count;
	double slack; /* INFINITY: nowhere */
	double next;  /* of the best other place */
	double offset;
};

static void try_place(struct place *place, const collective_vec *a, const collective_vec *b,
		      size_t j)
{
	struct range range = range_of(a, b, place->a, j, place->count, place->next);
	double slack = slack_of(&range);

	if (slack >= place->slack) {
		place->next = fmin(place->next, slack);
		return;
	}
	place->next = place->slack;
	place->slack = slack;
	place->b = j;
	place->offset = (range.low + range.high) / 2;
}

/* The block of a from at, in b. Its neighbours are other places. */
static struct place find_place(const collective_vec *a, const collective_vec *b, size_t at,
			       size_t count)
{
	struct place place = {.a = at, .count = count, .slack = INFINITY, .next = INFINITY};
	size_t places = b->count >= count ? b->count - count + 1 : 0;

	for (size_t j = 0; j < places && j < PLACES_MAX; j++)
		try_place(&place, a, b, j);
	return place;
}

/* Of all places that fit about as well as the best one, that next to the guess. */
static void find_near(struct place *place, const collective_vec *a, const collective_vec *b,
		      double guess)
{
	size_t places = b->count >= place->count ? b->count - place->count + 1 : 0;
	double limit = CLEARLY * fmax(place->slack, TIMES_OFF_NS), nearest = INFINITY;

	for (size_t j = 0; j < places && j < PLACES_MAX; j++) {
		struct range range = range_of(a, b, place->a, j, place->count, limit);
		double offset = (range.low + range.high) / 2;

		if (slack_of(&range) > limit || fabs(offset - guess) >= nearest)
			continue;
		nearest = fabs(offset - guess);
		place->offset = offset;
		place->b = j;
	}
}

/* Better is what contradicts itself less, and then what does so more in any other place. */
static bool is_better(const struct place *place, const struct place *than)
{
	double slack = fmax(place->slack, TIMES_OFF_NS), other = fmax(than->slack, TIMES_OFF_NS);

	return slack < other || (slack == other && place->next > than->next);
}

/* The block of a size that fits best. */
static struct place find_best(const collective_vec *a, const collective_vec *b, size_t count)
{
	struct place best = {.slack = INFINITY};

	for (size_t block = 0; block < BLOCKS; block++) {
		struct place place =
			find_place(a, b, (a->count - count) * block / (BLOCKS - 1), count);

		if (is_better(&place, &best))
			best = place;
	}
	return best;
}

/*
 * Where both fit clearly; else, of several places, that next to the guess. Small blocks are for
 * traces in which records were lost: one that is missing spoils a block. most: by how much a block
 * in the right place may contradict itself.
 */
static bool choose_place(const collective_vec *a, const collective_vec *b, const double *guess,
			 double most, struct place *best, bool *is_ambiguous)
{
	static const size_t sizes[] = {48, 24, 12};
	size_t least = min_u64(a->count, b->count);

	if (least < MATCHED_MIN)
		return false;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		*best = find_best(a, b, min_u64(sizes[i], least));
		if (best->slack <= most)
			break;
	}
	if (best->slack > most)
		return false;
	*is_ambiguous =
		best->count < BLOCK_MIN || best->next < CLEARLY * fmax(best->slack, TIMES_OFF_NS);
	if (*is_ambiguous && guess)
		find_near(best, a, b, *guess);
	return !*is_ambiguous || guess;
}

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare_doubles);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* A collective in both traces. Differences are times of a less times of b. */
struct match {
	double at; /* time of b since from_ns */
	double low, high;
	double ends;
};

typedef VEC(struct match) match_vec;

/* Follows the collectives of both from one on, as the clocks drift apart. */
struct walk {
	const collective_vec *a, *b;
	double offset;
	double tolerance;
	struct range ring[RING_SIZE];
	size_t count;		   /* of matches */
	size_t passed_a, passed_b; /* without a counterpart */
	int64_t last_ns;
};

/*
 * The usual time between two collectives. Those before and after are about as far away, while the
 * clocks do not drift a quarter of that from one to the next: that is the tolerance.
 */
static double usual_gap(const collective_vec *in)
{
	double *gaps = calloc(in->count, sizeof(*gaps)), gap;

	for (size_t i = 0; gaps && i + 1 < in->count; i++)
		gaps[i] = fmax(0, (double)(in->items[i + 1].begin_ns - in->items[i].end_ns));
	gap = gaps && in->count > 1 ? median(gaps, in->count - 1) : 0;
	free(gaps);
	return gap;
}

static bool fits(const struct walk *walk, const struct collective *left,
		 const struct collective *right)
{
	double away = (double)llabs(right->end_ns - walk->last_ns);
	double tolerance = walk->tolerance + ALIGN_DRIFT_MAX * away;

	return collectives_match(left, right) && low_of(left, right) <= walk->offset + tolerance &&
	       high_of(left, right) >= walk->offset - tolerance;
}

/* The offset stays where it is as long as the last matches allow it. */
static void follow(struct walk *walk, const struct match *match)
{
	struct range range = {-INFINITY, INFINITY};

	walk->ring[walk->count++ % RING_SIZE] = (struct range){match->low, match->high};
	for (size_t i = 0; i < walk->count && i < RING_SIZE; i++) {
		range.low = fmax(range.low, walk->ring[i].low);
		range.high = fmin(range.high, walk->ring[i].high);
	}
	if (range.low > range.high)
		walk->offset = (range.low + range.high) / 2;
	else
		walk->offset = fmax(range.low, fmin(range.high, walk->offset));
}

/*
 * From the pair (i, j) in one direction. One that has no counterpart is passed: it is the one that
 * comes first.
 */
static int walk_on(struct walk *walk, size_t i, size_t j, bool forward, int64_t from_ns,
		   match_vec *matches)
{
	size_t step = forward ? 1 : (size_t)-1;

	while (i < walk->a->count && j < walk->b->count) {
		const struct collective *left = &walk->a->items[i], *right = &walk->b->items[j];
		struct match match = {(double)(right->end_ns - from_ns), low_of(left, right),
				      high_of(left, right), (double)(left->end_ns - right->end_ns)};
		bool is_left_first = (double)left->end_ns < (double)right->end_ns + walk->offset;

		if (fits(walk, left, right)) {
			if (vec_push(matches, match))
				return -ENOMEM;
			follow(walk, &match);
			walk->last_ns = right->end_ns;
			i += step;
			j += step;
		} else if (is_left_first == forward) {
			walk->passed_a++;
			i += step;
		} else {
			walk->passed_b++;
			j += step;
		}
	}
	return 0;
}

static int compare_matches(const void *left, const void *right)
{
	const struct match *a = left, *b = right;

	return (a->at > b->at) - (a->at < b->at);
}

static int find_matches(const collective_vec *a, const collective_vec *b, const struct place *place,
			double tolerance, int64_t from_ns, match_vec *matches, uint64_t *compared)
{
	struct walk walk = {.a = a,
			    .b = b,
			    .offset = place->offset,
			    .tolerance = tolerance,
			    .last_ns = b->items[place->b].end_ns};
	struct walk back = walk;
	int err = walk_on(&walk, place->a, place->b, true, from_ns, matches);

	if (!err && place->a && place->b)
		err = walk_on(&back, place->a - 1, place->b - 1, false, from_ns, matches);
	*compared = matches->count +
		    max_u64(walk.passed_a + back.passed_a, walk.passed_b + back.passed_b);
	if (matches->count)
		qsort(matches->items, matches->count, sizeof(*matches->items), compare_matches);
	return err;
}

/*
 * By the ends: the median slope between the first and the second half of the matches, 0 if it is no
 * more than chance would make it; then the median of what is left.
 */
static int fit(const match_vec *matches, double *offset, double *slope)
{
	size_t half = matches->count / 2, count = 0;
	double *values = calloc(matches->count + 1, sizeof(*values)), chance;

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i + half < matches->count && half; i++) {
		const struct match *first = &matches->items[i], *second = first + half;

		if (second->at > first->at)
			values[count++] = (second->ends - first->ends) / (second->at - first->at);
	}
	*slope = count ? median(values, count) : 0;
	for (size_t i = 0; i < count; i++)
		values[i] = fabs(values[i] - *slope);
	chance = count ? 4 * median(values, count) / sqrt((double)count) : 0;
	if (fabs(*slope) < chance)
		*slope = 0;
	*slope = fmax(-ALIGN_DRIFT_MAX, fmin(ALIGN_DRIFT_MAX, *slope));
	for (size_t i = 0; i < matches->count; i++)
		values[i] = matches->items[i].ends - *slope * matches->items[i].at;
	*offset = median(values, matches->count);
	free(values);
	return 0;
}

/*
 * Bounds of a line x + y * at, with y within the largest drift: for a given y each match bounds x.
 * Both bounds are as straight between few corners, so the best y is found by trisection.
 */
struct bounds {
	const match_vec *matches;
	double offset, slope; /* of the estimate; bounds are relative to it */
};

static void bound_at(const struct bounds *bounds, double y, double *low, double *high)
{
	*low = -INFINITY;
	*high = INFINITY;
	vec_for_each (match, bounds->matches) {
		double line = bounds->offset + (bounds->slope + y) * match->at;

		*low = fmax(*low, match->low - line);
		*high = fmin(*high, match->high - line);
	}
}

static double room_at(const struct bounds *bounds, double y)
{
	double low, high;

	bound_at(bounds, y, &low, &high);
	return high - low;
}

/* Where the room is largest: it is concave in y. */
static double widest(const struct bounds *bounds, double from, double to)
{
	for (int i = 0; i < 60; i++) {
		double first = from + (to - from) / 3, second = to - (to - from) / 3;

		if (room_at(bounds, first) < room_at(bounds, second))
			from = first;
		else
			to = second;
	}
	return (from + to) / 2;
}

/* From where there is room, the last y towards to at which there still is. */
static double last_room(const struct bounds *bounds, double inside, double to, double slack)
{
	if (room_at(bounds, to) + 2 * slack >= 0)
		return to;
	for (int i = 0; i < 60; i++) {
		double middle = (inside + to) / 2;

		if (room_at(bounds, middle) + 2 * slack >= 0)
			inside = middle;
		else
			to = middle;
	}
	return inside;
}

/*
 * The largest distance of a line within the bounds from the estimate, at time at. It is concave in
 * y, too.
 */
static double distance_at(const struct bounds *bounds, double y, double at, double slack,
			  bool above)
{
	double low, high;

	bound_at(bounds, y, &low, &high);
	return above ? high + slack + y * at : -(low - slack + y * at);
}

static double farthest(const struct bounds *bounds, double from, double to, double at, double slack,
		       bool above)
{
	for (int i = 0; i < 60; i++) {
		double first = from + (to - from) / 3, second = to - (to - from) / 3;

		if (distance_at(bounds, first, at, slack, above) <
		    distance_at(bounds, second, at, slack, above))
			from = first;
		else
			to = second;
	}
	return distance_at(bounds, (from + to) / 2, at, slack, above);
}

/*
 * The line by the ends if it is within the bounds; else the one in the middle of the largest room:
 * ends come late on a rank that has no CPU.
 */
static void choose_line(struct bounds *bounds)
{
	double y =
		widest(bounds, -ALIGN_DRIFT_MAX - bounds->slope, ALIGN_DRIFT_MAX - bounds->slope);
	double low, high;

	bound_at(bounds, 0, &low, &high);
	if (low <= 0 && high >= 0)
		return;
	/* The drift of the ends may be right all the same. */
	if (low > high)
		bound_at(bounds, y, &low, &high);
	else
		y = 0;
	bounds->slope += y;
	bounds->offset += (low + high) / 2;
}

/* How far off a time from first to last may be. */
static uint64_t error_between(const struct bounds *bounds, double low_y, double high_y,
			      double slack, double first, double last)
{
	double error = 0;

	for (int i = 0; i < 4; i++)
		error = fmax(error,
			     farthest(bounds, low_y, high_y, i & 1 ? first : last, slack, i & 2));
	return to_u64_saturating(ceil(error));
}

/* Beyond the collectives that match, the drift makes the error larger. */
static void state_error(const struct bounds *bounds, const struct trace_span *span,
			struct alignment *result)
{
	const match_vec *matches = bounds->matches;
	double low_y = -ALIGN_DRIFT_MAX - bounds->slope, high_y = ALIGN_DRIFT_MAX - bounds->slope;
	double inside = widest(bounds, low_y, high_y);
	double room = room_at(bounds, inside), slack = room < 0 ? -room + 1 : 0;
	double first = matches->items[0].at, last = matches->items[matches->count - 1].at;

	low_y = last_room(bounds, inside, low_y, slack);
	high_y = last_room(bounds, inside, high_y, slack);
	result->matched_error_ns = error_between(bounds, low_y, high_y, slack, first, last);
	first = fmin(first, (double)(span->first_ns - result->line.from_ns));
	last = fmax(last, (double)(span->last_ns - result->line.from_ns));
	result->error_ns = error_between(bounds, low_y, high_y, slack, first, last);
	result->slack_ns = to_u64_saturating(ceil(slack / 2));
	result->drift_error = fmax(fabs(low_y), fabs(high_y));
}

/* Of the bounds of a stretch, without the few of collectives that were matched wrongly. */
static bool is_contradiction(double *lows, double *highs, size_t count)
{
	size_t wrong = count * WRONG_PERCENT / 100;

	qsort(lows, count, sizeof(*lows), compare_doubles);
	qsort(highs, count, sizeof(*highs), compare_doubles);
	return lows[count - 1 - wrong] - highs[wrong] > 4 * TIMES_OFF_NS;
}

/* Whether bounds contradict each other in most stretches: a clock that was set is in one of them.
 */
static int find_contradictions(const struct bounds *bounds, bool *are_most)
{
	const match_vec *matches = bounds->matches;
	double *lows = calloc(2 * matches->count, sizeof(*lows)), *highs;
	size_t stretches = 0, bad = 0;

	if (!lows)
		return -ENOMEM;
	highs = lows + matches->count;
	for (size_t from = 0, i = 0; from < matches->count; from = i) {
		double end = matches->items[from].at + STRETCH_NS;

		for (; i < matches->count && matches->items[i].at <= end; i++) {
			const struct match *match = &matches->items[i];

			lows[i] = match->low - bounds->slope * match->at;
			highs[i] = match->high - bounds->slope * match->at;
		}
		stretches++;
		bad += is_contradiction(lows + from, highs + from, i - from);
	}
	*are_most = 2 * bad > stretches;
	free(lows);
	return 0;
}

/* Whether the matches are the same collectives, and not others that run in the same rhythm. */
static enum align_why judge_matches(const struct alignment *found)
{
	if (found->matched < MATCHED_MIN)
		return ALIGN_WHY_FEW;
	if (found->matched * 100 < found->compared * ALIGN_MATCHED_PERCENT)
		return ALIGN_WHY_SHARE;
	/* In a short trace any drift fits without contradictions, so one at the limit is no sign.
	 */
	if (fabs(found->line.drift) >= ALIGN_DRIFT_MAX * (1 - 1e-6) &&
	    (found->drift_error < ALIGN_DRIFT_MAX || found->slack_ns > TIMES_OFF_NS))
		return ALIGN_WHY_DRIFT;
	return ALIGN_WHY_NONE;
}

static int align_at(const collective_vec *a, const collective_vec *b, const struct trace_span *span,
		    const struct place *place, double tolerance, struct alignment *result)
{
	match_vec matches = {0};
	struct bounds bounds = {.matches = &matches};
	int err;

	/* In the middle the drift matters least. */
	result->line.from_ns = b->items[b->count / 2].end_ns;
	err = find_matches(a, b, place, tolerance, result->line.from_ns, &matches,
			   &result->compared);
	result->matched = matches.count;
	if (!err && matches.count >= MATCHED_MIN)
		err = fit(&matches, &bounds.offset, &bounds.slope);
	if (!err && matches.count >= MATCHED_MIN) {
		choose_line(&bounds);
		result->line.offset_ns = llround(bounds.offset);
		result->line.drift = bounds.slope;
		state_error(&bounds, span, result);
		err = find_contradictions(&bounds, &result->is_contradictory);
	}
	vec_free(&matches);
	return err;
}

static bool align_common(const collective_vec *a, const collective_vec *b,
			 const struct trace_span *span, bool has_guess, int64_t guess_ns,
			 struct alignment *result)
{
	double guess = (double)guess_ns;
	double tolerance = fmax(2 * TIMES_OFF_NS, fmin(usual_gap(a), usual_gap(b)) / 4);
	struct place place = {0};

	if (a->count < MATCHED_MIN || b->count < MATCHED_MIN)
		return false;
	if (!choose_place(a, b, has_guess ? &guess : NULL, tolerance, &place,
			  &result->is_ambiguous)) {
		result->why = result->is_ambiguous ? ALIGN_WHY_PLACES : ALIGN_WHY_FEW;
		return false;
	}
	result->why = align_at(a, b, span, &place, tolerance, result) ? ALIGN_WHY_FEW
								      : judge_matches(result);
	result->by = result->why == ALIGN_WHY_NONE ? ALIGN_COLLECTIVES : ALIGN_NOTHING;
	return result->by == ALIGN_COLLECTIVES;
}

typedef VEC(uint32_t) group_vec;

static int compare_groups(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

/* The groups of collectives, sorted; some are there more than once. */
static int list_groups(const collective_vec *in, group_vec *groups)
{
	vec_for_each (collective, in) {
		if (collective->number && vec_push(groups, collective->number))
			return -ENOMEM;
	}
	vec_sort(groups, compare_groups);
	return 0;
}

/* Those whose group the other trace has, too, or that is not known. */
static int keep_common(const collective_vec *from, const group_vec *groups, collective_vec *kept)
{
	vec_for_each (collective, from) {
		size_t at = vec_lower_bound(groups, *item, collective->number);

		if (collective->number &&
		    (at == groups->count || groups->items[at] != collective->number))
			continue;
		if (vec_push(kept, *collective))
			return -ENOMEM;
	}
	return 0;
}

bool align_collectives(const collective_vec *a, const collective_vec *b,
		       const struct trace_span *span, bool has_guess, int64_t guess_ns,
		       struct alignment *result)
{
	group_vec groups_a = {0}, groups_b = {0};
	collective_vec kept_a = {0}, kept_b = {0};
	bool is_found = false;
	int err;

	*result = (struct alignment){.by = ALIGN_NOTHING, .why = ALIGN_WHY_FEW};
	err = list_groups(a, &groups_a);
	if (!err)
		err = list_groups(b, &groups_b);
	/* Groups that only one trace tells of say nothing. */
	if (!err && (!groups_a.count || !groups_b.count)) {
		is_found = align_common(a, b, span, has_guess, guess_ns, result);
		goto out;
	}
	if (!err)
		err = keep_common(a, &groups_b, &kept_a);
	if (!err)
		err = keep_common(b, &groups_a, &kept_b);
	if (!err)
		is_found = align_common(&kept_a, &kept_b, span, has_guess, guess_ns, result);
	if (!err && min_u64(kept_a.count, kept_b.count) < MATCHED_MIN &&
	    min_u64(a->count, b->count) >= MATCHED_MIN)
		result->why = ALIGN_WHY_GROUPS;
out:
	vec_free(&groups_a);
	vec_free(&groups_b);
	vec_free(&kept_a);
	vec_free(&kept_b);
	return is_found;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "diff/cluster.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define OCTAVE 16 /* bins */

/* Between two modes there are no more than so many of the smaller one. */
#define VALLEY 0.2
/* A file has a mode if so many of its steps are in it. */
#define PRESENT 0.005
/* Modes beyond that, the least, are joined to their neighbours. */
#define MODES_MAX (CLUSTERS_MAX / 2)

/* The steps of both files over the bins; each file counts the same, however many steps it has. */
struct density {
	double a[SIZE_BINS]; /* shares */
	double b[SIZE_BINS];
	double both[SIZE_BINS]; /* smoothed */
};

struct mode {
	uint32_t from, to;
	double place; /* mean bin */
	double peak;
	double a, b;   /* shares of the files */
	double valley; /* before it */
};

static void fill(double share[SIZE_BINS], const uint64_t count[SIZE_BINS])
{
	double total = 0;

	for (int i = 0; i < SIZE_BINS; i++)
		total += (double)count[i];
	for (int i = 0; i < SIZE_BINS; i++)
		share[i] = total > 0 ? (double)count[i] / total : 0;
}

/* By a triangle of five bins, half as wide as a third of an octave. */
static void smooth(struct density *density)
{
	static const double weights[] = {1.0 / 9, 2.0 / 9, 3.0 / 9, 2.0 / 9, 1.0 / 9};

	for (int i = 0; i < SIZE_BINS; i++) {
		density->both[i] = 0;
		for (int j = -2; j <= 2; j++)
			if (i + j >= 0 && i + j < SIZE_BINS)
				density->both[i] +=
					weights[j + 2] * (density->a[i + j] + density->b[i + j]);
	}
}

static void finish_mode(const struct density *density, struct mode *mode)
{
	double sum = 0, places = 0;

	mode->peak = mode->a = mode->b = 0;
	for (uint32_t i = mode->from; i < mode->to; i++) {
		double steps = density->a[i] + density->b[i];

		mode->peak = fmax(mode->peak, density->both[i]);
		mode->a += density->a[i];
		mode->b += density->b[i];
		sum += steps;
		places += steps * i;
	}
	mode->place = sum > 0 ? places / sum : mode->from;
}

/*
 * Cuts at each lowest place between two rises. A longer row of empty bins is halved. Returns how
 * many there are.
 */
static int find_modes(const struct density *density, struct mode modes[SIZE_BINS])
{
	const double *d = density->both;
	uint32_t low = 0, low_end = 0;
	bool is_falling = false;
	int count = 0;

	modes[0] = (struct mode){.from = 0};
	for (uint32_t i = 1; i < SIZE_BINS; i++) {
		if (d[i] < d[i - 1]) {
			is_falling = true;
			low = low_end = i;
		} else if (is_falling && d[i] == d[low]) {
			low_end = i;
		} else if (is_falling && d[i] > d[i - 1]) {
			uint32_t cut = low + (low_end - low) / 2;

			modes[count++].to = cut;
			modes[count] = (struct mode){.from = cut, .valley = d[low]};
			is_falling = false;
		}
	}
	modes[count++].to = SIZE_BINS;
	for (int i = 0; i < count; i++)
		finish_mode(density, &modes[i]);
	return count;
}

static bool are_apart(const struct mode *left, const struct mode *right)
{
	double least = fmin(fmin(left->a, left->b), fmin(right->a, right->b));

	if (right->valley > VALLEY * fmin(left->peak, right->peak))
		return false;
	return right->place - left->place >= OCTAVE || least >= PRESENT;
}

/* The pair to be joined: of those that are not apart the nearest; -1: there is none. */
static int find_pair(const struct mode *modes, int count)
{
	int best = -1;

	for (int i = 1; i < count; i++)
		if (!are_apart(&modes[i - 1], &modes[i]) &&
		    (best < 0 || modes[i].place - modes[i - 1].place <
					 modes[best].place - modes[best - 1].place))
			best = i;
	if (best >= 0 || count <= MODES_MAX)
		return best;
	for (int i = 1; i < count; i++)
		if (best < 0 || modes[i].a + modes[i].b < modes[best].a + modes[best].b)
			best = i;
	return best;
}

static int join_modes(const struct density *density, struct mode *modes, int count)
{
	int pair;

	while ((pair = find_pair(modes, count)) > 0) {
		modes[pair - 1].to = modes[pair].to;
		finish_mode(density, &modes[pair - 1]);
		memmove(&modes[pair], &modes[pair + 1],
			(size_t)(count - pair - 1) * sizeof(*modes));
		count--;
	}
	return count;
}

/* Bins between which nine of ten steps of the mode are. */
static uint32_t width_of(const struct density *density, const struct mode *mode)
{
	double total = mode->a + mode->b, sum = 0;
	uint32_t low = mode->from, high = mode->from;

	for (uint32_t i = mode->from; i < mode->to; i++) {
		sum += density->a[i] + density->b[i];
		if (sum < 0.05 * total)
			low = i;
		if (sum < 0.95 * total)
			high = i;
	}
	return high - low;
}

/* Bounds of octaves from the bin on. Bins below an octave's number of bins are the sizes. */
static uint32_t octave_end(uint32_t bin)
{
	uint32_t end = 1;

	if (bin >= OCTAVE)
		return (bin / OCTAVE + 1) * OCTAVE;
	while (end <= bin)
		end *= 2;
	return end;
}

static bool is_empty(const struct density *density, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		if (density->a[i] > 0 || density->b[i] > 0)
			return false;
	return true;
}

/* The octaves of a range that have steps; the last ones together if there are too many. */
static int cut_octaves(const struct density *density, uint32_t from, uint32_t to, bool is_cut,
		       struct cluster *clusters, int room)
{
	int count = 0;

	while (from < to) {
		uint32_t end = octave_end(from);

		end = end < to ? end : to;
		if (!is_empty(density, from, end) && count < room)
			clusters[count++] = (struct cluster){from, end, true, is_cut};
		else if (count == room)
			clusters[count - 1].to = to;
		from = end;
	}
	return count;
}

int cluster_by_argument(const uint64_t a[SIZE_BINS], const uint64_t b[SIZE_BINS],
			struct cluster clusters[CLUSTERS_MAX])
{
	struct density density;

	fill(density.a, a);
	fill(density.b, b);
	return cut_octaves(&density, 0, SIZE_BINS, false, clusters, CLUSTERS_MAX);
}

int cluster_by_work(const uint64_t a[SIZE_BINS], const uint64_t b[SIZE_BINS],
		    struct cluster clusters[CLUSTERS_MAX])
{
	struct density density;
	struct mode modes[SIZE_BINS];
	int count, used = 0;

	fill(density.a, a);
	fill(density.b, b);
	smooth(&density);
	count = join_modes(&density, modes, find_modes(&density, modes));
	for (int i = 0; i < count && used < CLUSTERS_MAX; i++) {
		/* Each mode that follows needs room for one. */
		int room = CLUSTERS_MAX - used - (count - i - 1);

		if (is_empty(&density, modes[i].from, modes[i].to))
			continue;
		if (width_of(&density, &modes[i]) > WIDE_OCTAVES * OCTAVE)
			used += cut_octaves(&density, modes[i].from, modes[i].to, true,
					    &clusters[used], room);
		else
			clusters[used++] =
				(struct cluster){modes[i].from, modes[i].to, false, false};
	}
	return used;
}

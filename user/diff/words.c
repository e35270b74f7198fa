/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What all forms of the result say in the same words. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "diff/write.h"

const char *diff_part_words(enum step_part part, bool calls_known)
{
	static const char *const words[STEP_PARTS] = {
		[STEP_OWN] = "own code",
		[STEP_CPU_WAIT] = "cpu wait",
		[STEP_CALLS + FBT_MMAP] = "mmap",
		[STEP_CALLS + FBT_FUTEX] = "futex",
		[STEP_CALLS + FBT_IOCTL] = "ioctl",
		[STEP_CALLS + FBT_READ] = "read",
		[STEP_CALLS + FBT_WRITE] = "write",
		[STEP_CALLS + FBT_OTHER] = "other",
		[STEP_FAULTS] = "faults",
		[STEP_DISK_WAIT] = "disk wait",
		[STEP_STOPPED] = "stopped",
		[STEP_OFF_CPU] = "off cpu",
		[STEP_AWAIT] = "await",
	};

	if (!step_part_name(part, calls_known))
		return NULL;
	if (!calls_known && part == STEP_OWN)
		return "on a CPU";
	return !calls_known && part == STEP_OFF_CPU ? "asleep" : words[part];
}

static uint32_t count_changes(const struct result *result, enum verdict verdict)
{
	uint32_t count = 0;

	vec_for_each (class, &result->classes)
		for (int i = 0; i < QUANTILES; i++)
			count += class->changes[i].verdict == verdict && class_only_in(class) < 0;
	return count;
}

static uint32_t count_classes(const struct result *result, enum verdict verdict)
{
	uint32_t count = 0;

	vec_for_each (class, &result->classes)
		count += class_only_in(class) < 0 &&
			 (verdict == VERDICT_CANNOT_TELL || class->verdict == verdict);
	return count;
}

/* Shares of the time of A and B that is in steps which only one of them has, in percent. */
static void lone_percent(const struct result *result, double percent[SIDES])
{
	uint64_t ns[SIDES] = {0};

	vec_for_each (class, &result->classes)
		for (int i = 0; i < SIDES; i++)
			ns[i] += class_only_in(class) == i ? class->sides[i].ns : 0;
	for (int i = 0; i < SIDES; i++)
		percent[i] = percent_of((double)ns[i], (double)side_ns(result->sides[i]));
}

/* What both have is the same, but that is not all. */
static void say_lone(const struct result *result, char text[160])
{
	double percent[SIDES];

	lone_percent(result, percent);
	snprintf(text, 160,
		 "cannot tell: what both have is the same, but %s of the time of A and %s of B is "
		 "in steps that only one of them has",
		 FORMAT_PERCENT(percent[0]), FORMAT_PERCENT(percent[1]));
}

static const char *headline_begin(const struct result *result, char text[160])
{
	uint32_t all = count_classes(result, VERDICT_CANNOT_TELL);
	uint32_t some = count_classes(result, result->verdict);

	switch (result->verdict) {
	case VERDICT_WORSE:
		snprintf(text, 160, "worse: %u of %u class%s of steps", some, all,
			 all == 1 ? "" : "es");
		break;
	case VERDICT_BETTER:
		snprintf(text, 160, "better: %u of %u class%s of steps", some, all,
			 all == 1 ? "" : "es");
		break;
	case VERDICT_SAME:
		snprintf(text, 160, "same: all %u class%s of steps", all, all == 1 ? "" : "es");
		break;
	default:
		if (result->is_comparable && all &&
		    count_changes(result, VERDICT_SAME) == all * QUANTILES) {
			say_lone(result, text);
			break;
		}
		snprintf(text, 160, "%s",
			 result->is_comparable ? "cannot tell: no class of steps is worse or better"
					       : "could not compare");
	}
	return text;
}

char *result_headline(const struct result *result)
{
	uint32_t same = count_changes(result, VERDICT_SAME);
	uint32_t open = count_changes(result, VERDICT_CANNOT_TELL);
	char begin[160], *text = NULL;
	int size;

	headline_begin(result, begin);
	if (!count_classes(result, VERDICT_CANNOT_TELL))
		size = asprintf(&text, "%s: A and B have no steps of the same kind and work",
				begin);
	else
		size = asprintf(&text,
				"%s; of %u quantiles %u %s the same within %s, %u cannot be told",
				begin, count_classes(result, VERDICT_CANNOT_TELL) * QUANTILES, same,
				same == 1 ? "is" : "are",
				FORMAT_PERCENT(100 * result->options.margin), open);
	return size < 0 ? NULL : text;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "model/syscalls.h"

uint64_t step_total_ns(const struct step *step)
{
	return step->record.thread_ns;
}

uint64_t step_wall_ns(const struct step *step)
{
	return sub_saturating(step->record.end_ns, step->record.start_ns);
}

/* The sum of an expression over all categories. value is the expression, and uses i. */
#define sum_categories(i, value)                                                                   \
	({                                                                                         \
		uint64_t category_sum = 0;                                                         \
		for (int i = 0; i < FBT_CATEGORY_COUNT; i++)                                       \
			category_sum = add_saturating(category_sum, value);                        \
		category_sum;                                                                      \
	})

uint64_t step_syscall_ns(const struct step *step)
{
	return sum_categories(i, step->record.sums[i].ns);
}

uint64_t step_compute_ns(const struct step *step)
{
	return sub_saturating(step_total_ns(step), step_syscall_ns(step));
}

uint64_t step_calls(const struct step *step)
{
	return sum_categories(i, step->record.sums[i].calls);
}

uint64_t step_errors(const struct step *step)
{
	return sum_categories(i, step->record.sums[i].errors);
}

const char *step_end_name(enum fbt_step_end end)
{
	static const char *const names[] = {
		[FBT_END_RETURN] = "return",
		[FBT_END_UNWOUND] = "unwound",
		[FBT_END_TRUNCATED] = "truncated",
		[FBT_END_EXITED] = "exited",
	};

	return end <= FBT_END_EXITED ? names[end] : "unknown";
}

void step_breakdown(const struct step *step, struct breakdown *breakdown)
{
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		breakdown->category_us[i] = step->record.sums[i].ns / NS_PER_US;
	breakdown->total_us = step_total_ns(step) / NS_PER_US;
}

uint64_t breakdown_syscall_us(const struct breakdown *breakdown)
{
	return sum_categories(i, breakdown->category_us[i]);
}

uint64_t breakdown_compute_us(const struct breakdown *breakdown)
{
	return sub_saturating(breakdown->total_us, breakdown_syscall_us(breakdown));
}

double breakdown_overhead_percent(const struct breakdown *breakdown)
{
	if (!breakdown->total_us)
		return 0.0;
	return (double)breakdown_syscall_us(breakdown) / (double)breakdown->total_us * 100.0;
}

double breakdown_overhead_tenths(const struct breakdown *breakdown)
{
	char text[48];

	snprintf(text, sizeof(text), "%.1f", breakdown_overhead_percent(breakdown));
	return strtod(text, NULL);
}

const char *breakdown_dominant(const struct breakdown *breakdown)
{
	uint64_t most = 0;
	const char *name = "none";

	/* >= because Rust's max_by_key returns the last of equal maxima. */
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		if (breakdown->category_us[i] && breakdown->category_us[i] >= most) {
			most = breakdown->category_us[i];
			name = category_name((enum fbt_category)i);
		}
	}
	return name;
}

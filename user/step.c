/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "step.h"
#include "syscalls.h"

#define NS_PER_US 1000

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

uint64_t step_total_ns(const struct step *step)
{
	return step->record.thread_ns;
}

uint64_t step_wall_ns(const struct step *step)
{
	const struct fbt_step *record = &step->record;

	return record->end_ns > record->start_ns ? record->end_ns - record->start_ns : 0;
}

uint64_t step_syscall_ns(const struct step *step)
{
	uint64_t sum = 0;

	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		sum = add_saturating(sum, step->record.sums[i].ns);
	return sum;
}

uint64_t step_compute_ns(const struct step *step)
{
	uint64_t total = step_total_ns(step);
	uint64_t syscall = step_syscall_ns(step);

	return total > syscall ? total - syscall : 0;
}

uint64_t step_calls(const struct step *step)
{
	uint64_t sum = 0;

	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		sum = add_saturating(sum, step->record.sums[i].calls);
	return sum;
}

uint64_t step_errors(const struct step *step)
{
	uint64_t sum = 0;

	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		sum = add_saturating(sum, step->record.sums[i].errors);
	return sum;
}

const char *step_end_name(enum fbt_step_end end)
{
	switch (end) {
	case FBT_END_RETURN:
		return "return";
	case FBT_END_UNWOUND:
		return "unwound";
	case FBT_END_TRUNCATED:
		return "truncated";
	case FBT_END_EXITED:
		return "exited";
	}
	return "unknown";
}

void step_breakdown(const struct step *step, struct breakdown *breakdown)
{
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		breakdown->category_us[i] = step->record.sums[i].ns / NS_PER_US;
	breakdown->total_us = step_total_ns(step) / NS_PER_US;
}

/* The categories' names are the same on all architectures, and x86-64 has every one of them. */
static enum fbt_category category_of_name(const char *name)
{
	for (uint32_t nr = 0; nr < FBT_NR_COUNT; nr++) {
		const char *other = syscall_name(FBT_ARCH_X86_64, nr);

		if (other && !strcmp(name, other))
			return syscall_category(FBT_ARCH_X86_64, nr);
	}
	return FBT_OTHER;
}

void breakdown_add_syscall(struct breakdown *breakdown, const char *name, uint64_t duration_us)
{
	uint64_t *us = &breakdown->category_us[category_of_name(name)];

	*us = add_saturating(*us, duration_us);
}

uint64_t breakdown_syscall_us(const struct breakdown *breakdown)
{
	uint64_t sum = 0;

	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		sum = add_saturating(sum, breakdown->category_us[i]);
	return sum;
}

uint64_t breakdown_compute_us(const struct breakdown *breakdown)
{
	uint64_t syscall = breakdown_syscall_us(breakdown);

	return breakdown->total_us > syscall ? breakdown->total_us - syscall : 0;
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

	/* >= as Rust's max_by_key, which keeps the last of equal maxima. */
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		if (breakdown->category_us[i] && breakdown->category_us[i] >= most) {
			most = breakdown->category_us[i];
			name = category_name((enum fbt_category)i);
		}
	}
	return name;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "targets/text_check.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "steps/find.h"

#define WATCH_NS (2 * NS_PER_S)

/*
 * A function with less than this part of the time of the longest one is a rare or a small part of
 * the work.
 */
#define PLAUSIBLE_PART 20

bool text_uses_are_doubtful(const struct text_use *uses, size_t count)
{
	uint64_t most_ns = 0;
	size_t called = 0, likely = 0;

	for (size_t i = 0; i < count; i++)
		if (uses[i].total_ns > most_ns)
			most_ns = uses[i].total_ns;
	for (size_t i = 0; i < count; i++) {
		called += uses[i].steps > 0;
		likely += uses[i].steps && uses[i].total_ns / uses[i].steps >= STEP_NS_MIN &&
			  uses[i].total_ns >= most_ns / PLAUSIBLE_PART;
	}
	return called && (called > 1 || !likely);
}

static void warn(const struct text_check *check, uint64_t time_ns)
{
	char list[1024] = "";
	size_t used = 0;

	for (uint32_t kind = 1; kind < FBT_KIND_COUNT && used < sizeof(list); kind++) {
		const struct text_use *use = &check->uses[kind];
		const struct step_function *function;

		if (!use->steps)
			continue;
		function = steps_found__function(check->found, kind);
		used += (size_t)snprintf(list + used, sizeof(list) - used,
					 "%s%s+0x%llx (%.1f calls/s, mean %.3f ms)",
					 used ? ", " : "", function->path,
					 (unsigned long long)function->address,
					 (double)use->steps * 1e9 / (double)time_ns,
					 (double)use->total_ns / (double)use->steps / 1e6);
	}
	log_warn("the step is known by a text only, and what has that text is not called as one "
		 "step is: "
		 "name the right one with --step: %s",
		 list);
}

void text_check_take(struct text_check *check, const struct fbt_step *step)
{
	if (check->done || !step->kind || step->kind > steps_found__count(check->found) ||
	    !steps_found__function(check->found, step->kind)->unverified)
		return;
	if (!check->first_ns)
		check->first_ns = step->start_ns;
	check->uses[step->kind].steps++;
	check->uses[step->kind].total_ns += step->end_ns - step->start_ns;
	if (step->end_ns < check->first_ns + WATCH_NS)
		return;
	check->done = true;
	if (text_uses_are_doubtful(check->uses, FBT_KIND_COUNT))
		warn(check, step->end_ns - check->first_ns);
}

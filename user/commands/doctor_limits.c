/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "commands/doctor_limits.h"

#include "base/format.h"

/* A limit that is reached more often makes steps slow. */
#define THROTTLED_PERCENT 1.0

static void judge_cpu(const struct cgroup_limits *limits, struct findings *checks)
{
	double cpus = (double)limits->quota_us / (double)limits->period_us;
	double percent = 0;

	if (limits->periods)
		percent = (double)limits->throttled / (double)limits->periods * 100.0;
	findings_add(checks, percent < THROTTLED_PERCENT ? FINDING_OK : FINDING_WARN, "CPU limit",
		     "%.2f CPUs (cgroup); reached in %.1f %% of %s periods since it was made", cpus,
		     percent, FORMAT_COUNT(limits->periods));
	if (percent >= THROTTLED_PERCENT)
		findings_advise(checks, "raise or remove the limit, or use no more threads than it "
					"has CPUs: threads wait while it is reached");
}

/* Old files in the cache are thrown out at the limit too, so this need not be bad. */
static void judge_memory(const struct cgroup_limits *limits, struct findings *checks)
{
	findings_add(checks, FINDING_OK, "memory limit", "%s (cgroup); reached %s time%s",
		     FORMAT_BYTES(limits->memory_bytes), FORMAT_COUNT(limits->memory_hits),
		     limits->memory_hits == 1 ? "" : "s");
}

void doctor_limits_judge(const struct cgroup_limits *limits, struct findings *checks)
{
	if (limits->period_us)
		judge_cpu(limits, checks);
	if (limits->memory_bytes != UINT64_MAX)
		judge_memory(limits, checks);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "commands/doctor_calls.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/format.h"
#include "kernel/traced.h"

/* Some steps of most engines; they make their calls in bursts. */
#define COUNT_US 200000

static uint64_t calls_so_far(struct traced_set *set, const struct traced *traced)
{
	struct process_sums *sums = malloc(sizeof(*sums));
	uint64_t calls = 0;

	if (!sums)
		return 0;
	traced_set__sum(set, traced, clock_ns(CLOCK_MONOTONIC), sums);
	for (int nr = 0; nr < FBT_NR_COUNT; nr++)
		calls += sums->rows[nr].calls;
	free(sums);
	return calls;
}

/* The kernel side is attached first: it gives slots to threads that are created meanwhile. */
static void count(struct doctor_calls *calls, uint32_t tgid, struct loader *loader)
{
	struct traced_set *set = traced_set__new(loader__shared(loader), NULL);
	struct traced *traced = set ? traced_set__add(set, tgid) : NULL;
	uint64_t start_ns, before;

	if (!traced || loader__attach_syscalls(loader) || loader__attach_threads(loader) ||
	    loader__add_target(loader, tgid))
		goto out;
	start_ns = clock_ns(CLOCK_MONOTONIC);
	if (traced_set__take_threads(set, tgid, start_ns) <= 0)
		goto out;
	/* Not 0 if the same process was counted before: its threads have kept their slots. */
	before = calls_so_far(set, traced);
	usleep(COUNT_US);
	calls->calls = calls_so_far(set, traced) - before;
	calls->count_ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
	calls->counted = true;
out:
	loader__detach(loader);
	loader__remove_target(loader, tgid);
	traced_set__free(set);
}

void doctor_calls_read(struct doctor_calls *calls, uint32_t tgid, bool has_steps,
		       struct doctor_trial *trial)
{
	struct doctor_words ignored;

	*calls = (struct doctor_calls){.has_steps = has_steps, .call_ps = trial->cost.call_ps};
	if (!trial->loader || !loader__traces_calls(trial->loader))
		return;
	doctor_listen(&ignored);
	count(calls, tgid, trial->loader);
	doctor_listen_end();
}

void doctor_calls_judge(const struct doctor_calls *calls, struct findings *checks)
{
	double per_s = (double)calls->calls * (double)NS_PER_S / (double)calls->count_ns;
	double cost_percent = per_s * (double)calls->call_ps / 1e12 * 100;
	bool many = per_s > DOCTOR_CALLS_MANY;

	if (!calls->counted)
		return;
	findings_add(checks, many ? FINDING_WARN : FINDING_OK, "system calls",
		     "%s a second, in %s; tracing them takes %s of a CPU",
		     FORMAT_COUNT((uint64_t)per_s), FORMAT_TIME(calls->count_ns),
		     FORMAT_PERCENT(cost_percent));
	if (many && calls->has_steps)
		findings_advise(
			checks,
			"use --detail probes: it times steps and leaves system calls alone");
	else if (many)
		findings_advise(checks,
				"name a step function and use --detail probes: it times steps and "
				"leaves system calls alone");
}

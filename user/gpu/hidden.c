/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu/hidden.h"

#include "base/arith.h"
#include "base/clock.h"

/* The most that a device takes to begin, with CUPTI: longer, and it was busy. */
#define WAIT_NS 50000
/* No work runs for longer: what is launched later did not wait for work without records. */
#define LONGEST_NS (2 * NS_PER_S)

void hidden_work__begin(struct hidden_work *hidden, uint64_t time_ns)
{
	*hidden = (struct hidden_work){.begin_ns = time_ns};
}

void hidden_work__note(struct hidden_work *hidden, const struct fbt_gpu_work *work)
{
	uint64_t first_ns;

	if (work->device >= HIDDEN_DEVICES || !work->end_ns)
		return;
	first_ns = hidden->devices[work->device].start_ns;
	if (first_ns && first_ns <= work->start_ns)
		return;
	hidden->devices[work->device].start_ns = work->start_ns;
	hidden->devices[work->device].correlation = work->correlation;
	hidden->devices[work->device].is_judged = false;
	hidden->devices[work->device].waited = false;
}

void hidden_work__judge(struct hidden_work *hidden, const struct gpu_join *join)
{
	for (size_t i = 0; i < HIDDEN_DEVICES; i++) {
		uint64_t start_ns = hidden->devices[i].start_ns;
		const struct join_record *call = NULL;

		if (start_ns && !hidden->devices[i].is_judged)
			call = gpu_join__find_call(join, hidden->devices[i].correlation, start_ns);
		if (!call)
			continue;
		hidden->devices[i].is_judged = true;
		hidden->devices[i].waited =
			start_ns > add_saturating(call->api.end_ns, WAIT_NS) &&
			call->api.start_ns < add_saturating(hidden->begin_ns, LONGEST_NS);
	}
}

uint64_t hidden_work__until_ns(const struct hidden_work *hidden)
{
	uint64_t until_ns = 0;

	for (size_t i = 0; i < HIDDEN_DEVICES; i++)
		if (hidden->devices[i].waited)
			until_ns = max_u64(until_ns, hidden->devices[i].start_ns);
	return until_ns;
}

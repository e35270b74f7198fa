/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/between.h"

#include "base/arith.h"

/*
 * Entering a call, leaving it and being traced take time that no tracepoint sees: a loop of cheap
 * calls would look like work. So much of what lies between two calls is theirs, or what tracing
 * adds to a few of them on this machine. Of a longer time as well: where the machine is slow, a
 * part of the calls takes longer than that, and half of a storm would be work.
 */
#define BETWEEN_CALLS_NS 1000
#define BETWEEN_CALLS	 4

void between_begin(struct between *between, const struct window *window, const struct step *step)
{
	*between = (struct between){
		.most_ns = max_u64(BETWEEN_CALLS_NS,
				   to_u64_saturating(BETWEEN_CALLS *
						     (long double)window->record.call_ps / 1000)),
	};
	if (!step->spins.waits)
		return;
	spin_search_begin(&between->search, window, step);
	between->has_spin = spin_search_next(&between->search, &between->spin);
}

void between_next(struct between *between, const struct fbt_call *call)
{
	bool is_run = call->header.flags & FBT_CALL_RUN, is_in;
	size_t at = between->next++;

	while (between->has_spin && at >= between->spin.end)
		between->has_spin = spin_search_next(&between->search, &between->spin);
	is_in = between->has_spin && at >= between->spin.first;
	between->is_first = is_in && at == between->spin.first;
	between->is_inside = is_in && !between->is_first;
	between->goes_on = is_in && (at + 1 < between->spin.end || is_run);
}

uint64_t between_ns(struct between *between, const struct step *step, const struct fbt_call *call)
{
	uint64_t gap_ns = between->last_ns ? sub_saturating(call->start_ns, between->last_ns) : 0;
	uint64_t inside_ns = sub_saturating(call->duration_ns, call_ns(call));

	between->last_ns = add_saturating(call->start_ns, call->duration_ns);
	/* What lies between the calls of a row, and in its records, is that of spin_code_ns. */
	if (!step->record.kind || between->is_inside)
		return 0;
	if (between->is_first)
		inside_ns = 0;
	return add_saturating(inside_ns, min_u64(gap_ns, between->most_ns));
}

enum cause_kind between_delay_part(const struct between *between, const struct call_walk *walk)
{
	return between->goes_on ? walk->cause : CAUSE_RUN_QUEUE;
}

uint64_t between_sum_ns(const struct window *window, const struct step *step, bool claims,
			enum cause_kind cause)
{
	struct between between;
	struct call_walk walk;
	uint64_t sum_ns = 0;

	between_begin(&between, window, step);
	call_walk_begin(&walk, window, step, claims);
	while (call_walk_next(&walk)) {
		uint64_t ns;

		between_next(&between, walk.call);
		ns = between_ns(&between, step, walk.call);
		sum_ns = add_saturating(sum_ns, walk.cause == cause ? ns : 0);
	}
	return sum_ns;
}

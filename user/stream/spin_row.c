/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/spin_row.h"

#include "base/arith.h"
#include "base/clock.h"
#include "model/spins.h"

/* Between two calls of a row, or half as long as they are: as in model/spins.c, but on average. */
#define BETWEEN_NS 10000
/* The usual length comes nearer to that of each step by so much: it is about the median. */
#define USUAL_PART  8
#define USUAL_LEAST NS_PER_MS
/* Others may have the CPU for long where a thread yields. */
#define YIELD_MAX_NS (100 * NS_PER_MS)
#define FACTOR	     2

static uint64_t count_calls(const volatile struct fbt_slot *slot)
{
	uint64_t calls = 0;

	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		calls += slot->sums[i].calls;
	return calls;
}

static void begin_step(struct spin_row *row, uint64_t step_ns)
{
	uint64_t usual_ns = row->usual_ns, longest_ns = row->longest_ns;
	uint64_t by_ns = max_u64(usual_ns / USUAL_PART, USUAL_LEAST);

	if (row->step_ns)
		row->usual_ns = longest_ns > usual_ns
					? min_u64(longest_ns, usual_ns + by_ns)
					: max_u64(longest_ns, sub_saturating(usual_ns, by_ns));
	row->step_ns = step_ns;
	row->longest_ns = 0;
	row->start_ns = 0;
}

static void begin_row(struct spin_row *row, uint64_t calls, uint64_t busy_ns, uint64_t now_ns)
{
	row->start_ns = row->turn_ns = now_ns;
	row->calls = calls;
	row->busy_ns = busy_ns;
}

/* All calls since the last turn: their mean stands for each. */
static bool goes_on(const struct spin_row *row, uint64_t calls, uint64_t busy_ns, uint64_t now_ns,
		    uint64_t most_ns)
{
	uint64_t made = calls - row->calls, in_ns = sub_saturating(busy_ns, row->busy_ns);
	uint64_t out_ns = sub_saturating(now_ns - row->turn_ns, in_ns);

	return in_ns / (made + 1) <= most_ns &&
	       (out_ns / made <= BETWEEN_NS || out_ns <= in_ns / 2);
}

void spin_row_turn(struct spin_row *row, const volatile struct fbt_slot *slot, enum fbt_arch arch,
		   uint64_t now_ns)
{
	uint64_t step_ns = slot->step_start_ns, start_ns = slot->start_ns;
	uint64_t most_ns = spin_yields(arch, slot->nr) ? YIELD_MAX_NS : SPIN_CALL_MAX_NS;
	uint64_t calls, busy_ns;

	if (!step_ns && !row->step_ns)
		return;
	calls = count_calls(slot);
	busy_ns = fbt_busy_ns(slot->busy, now_ns);
	if (step_ns != row->step_ns)
		begin_step(row, step_ns);
	/* A wait for the lock of an interpreter is looked at as such. */
	if (!step_ns || now_ns < step_ns || now_ns <= row->turn_ns || slot->call_gil ||
	    !spin_may_have(arch, slot->nr)) {
		row->start_ns = 0;
		return;
	}
	if (row->start_ns && calls == row->calls && start_ns && start_ns < now_ns &&
	    now_ns - start_ns <= most_ns)
		return;
	if (!row->start_ns || calls <= row->calls ||
	    !goes_on(row, calls, busy_ns, now_ns, most_ns)) {
		begin_row(row, calls, busy_ns, now_ns);
		return;
	}
	row->turn_ns = now_ns;
	row->calls = calls;
	row->busy_ns = busy_ns;
	row->longest_ns = max_u64(row->longest_ns, now_ns - row->start_ns);
}

bool spin_row_is_long(const struct spin_row *row, uint64_t least_ns, uint64_t now_ns)
{
	uint64_t ns;

	if (!row->start_ns || now_ns < row->start_ns)
		return false;
	ns = now_ns - row->start_ns;
	return ns >= least_ns && ns >= FACTOR * row->usual_ns;
}

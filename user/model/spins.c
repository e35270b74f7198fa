/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/spins.h"

#include <errno.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "model/syscalls.h"

/* See SPIN_BETWEEN_MAX_NS. */
#define BETWEEN_NS 10000
#define ROW_PART   8

/* A thread may yield to many others, and a futex may time out as late as it likes. */
#define LONG_MAX_NS NS_PER_S

#define FUTEX_OPERATION	  0x7f
#define FUTEX_WAIT	  0
#define FUTEX_WAIT_BITSET 9

enum way { WAY_NONE, WAY_YIELD, WAY_NOTHING, WAY_FUTEX };

/* By number, as a name would have to be compared for each call of each step. */
static enum way way_of(enum fbt_arch arch, uint32_t nr)
{
	if (arch == FBT_ARCH_X86_64) {
		switch (nr) {
		case 24: /* sched_yield */
			return WAY_YIELD;
		case 7:	  /* poll */
		case 23:  /* select */
		case 35:  /* nanosleep */
		case 230: /* clock_nanosleep */
		case 232: /* epoll_wait */
		case 270: /* pselect6 */
		case 271: /* ppoll */
		case 281: /* epoll_pwait */
		case 441: /* epoll_pwait2 */
			return WAY_NOTHING;
		case 202:
			return WAY_FUTEX;
		}
	} else if (arch == FBT_ARCH_ARM64) {
		switch (nr) {
		case 124: /* sched_yield */
			return WAY_YIELD;
		case 22:  /* epoll_pwait */
		case 72:  /* pselect6 */
		case 73:  /* ppoll */
		case 101: /* nanosleep */
		case 115: /* clock_nanosleep */
		case 441: /* epoll_pwait2 */
			return WAY_NOTHING;
		case 98:
			return WAY_FUTEX;
		}
	}
	return WAY_NONE;
}

bool spin_may_have(enum fbt_arch arch, uint32_t nr)
{
	return way_of(arch, nr) != WAY_NONE;
}

bool spin_yields(enum fbt_arch arch, uint32_t nr)
{
	return way_of(arch, nr) == WAY_YIELD;
}

static bool has_timed_out(const struct spin_search *search, const struct fbt_call *call)
{
	uint64_t operation = call->args[1] & FUTEX_OPERATION;
	bool is_gil = search->gil_end && call->args[0] >= search->gil_start &&
		      call->args[0] < search->gil_end;

	return call->ret == -ETIMEDOUT && call->header.flags & FBT_CALL_ARGS && !is_gil &&
	       (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET);
}

/* The call came to nothing, and soon. */
static enum way way_of_call(const struct spin_search *search, const struct fbt_call *call)
{
	enum way way = way_of(search->arch, call->nr);
	/* Without its wait for a CPU at the end. */
	uint64_t ns = sub_saturating(call_longest_ns(call), call->delay_ns);

	if (call->header.flags & FBT_CALL_UNFINISHED)
		return WAY_NONE;

	if (ns > (way == WAY_NOTHING ? SPIN_CALL_MAX_NS : LONG_MAX_NS))
		return WAY_NONE;
	if (way == WAY_FUTEX)
		return has_timed_out(search, call) ? way : WAY_NONE;
	return !call->ret ? way : WAY_NONE;
}

static uint64_t end_of(const struct fbt_call *call)
{
	return call->start_ns + call->duration_ns;
}

static uint64_t most_code_ns(const struct fbt_call *before)
{
	return clamp_u64(call_longest_ns(before) / 2, BETWEEN_NS, SPIN_BETWEEN_MAX_NS);
}

/* An interrupt may take longer than the code between two calls: a long row has gone on before. */
static uint64_t most_between_ns(const struct spin *spin, const struct fbt_call *before)
{
	return max_u64(min_u64(spin->ns / ROW_PART, SPIN_BETWEEN_MAX_NS), most_code_ns(before));
}

/*
 * Whether a call continues the row. What lies between the two may be calls whose records were lost:
 * then its time counts as far as the sums of the step have such calls.
 */
static bool joins(struct spin_search *search, struct spin *spin, const struct fbt_call *before,
		  const struct fbt_call *call, enum way way)
{
	uint64_t between_ns = sub_saturating(call->start_ns, end_of(before));
	uint64_t most_ns = most_between_ns(spin, before), part_ns;
	uint64_t *unseen_ns = &search->unseen_ns[way == WAY_FUTEX ? FBT_FUTEX : FBT_OTHER];

	if (way == WAY_FUTEX && call->args[0] != before->args[0])
		return false;
	if (between_ns <= most_code_ns(before)) {
		spin->ns += between_ns;
		return true;
	}
	/* It had no CPU for most of that; or, where the step had one all the time, an interrupt. */
	if (between_ns <= add_saturating(most_ns, search->delay_ns)) {
		part_ns = take_u64(between_ns, &search->delay_ns);
		spin->delay_ns += part_ns;
		spin->ns += between_ns;
		return true;
	}
	if (!search->step->record.lost_calls || call->nr != before->nr || !*unseen_ns)
		return false;
	part_ns = take_u64(between_ns, unseen_ns);
	spin->unseen_ns += part_ns;
	spin->ns += part_ns;
	spin->partial = true;
	return true;
}

/* Time by number, of the first few. */
struct shares {
	uint32_t nr[4];
	uint64_t ns[4];
};

static void add_share(struct shares *shares, uint32_t nr, uint64_t ns)
{
	size_t i = 0;

	while (i + 1 < sizeof(shares->nr) / sizeof(shares->nr[0]) && shares->ns[i] &&
	       shares->nr[i] != nr)
		i++;
	if (shares->ns[i] && shares->nr[i] != nr)
		return;
	shares->nr[i] = nr;
	shares->ns[i] = add_saturating(shares->ns[i], ns ? ns : 1);
}

static uint32_t largest_share(const struct shares *shares)
{
	size_t largest = 0;

	for (size_t i = 1; i < sizeof(shares->nr) / sizeof(shares->nr[0]); i++) {
		if (shares->ns[i] > shares->ns[largest])
			largest = i;
	}
	return shares->nr[largest];
}

static void add_call(struct spin *spin, struct shares *shares, const struct fbt_call *call)
{
	spin->ns = add_saturating(spin->ns, call->duration_ns);
	spin->calls += call_count(call);
	spin->calls_ns = add_saturating(spin->calls_ns, call_ns(call));
	spin->end_ns = end_of(call);
	add_share(shares, call->nr, call_ns(call));
}

/* The row that begins with this call. */
static void take_row(struct spin_search *search, size_t first, enum way way, struct spin *spin)
{
	const call_vec *calls = &search->step->calls;
	struct shares shares = {{0}, {0}};
	size_t i = first;

	*spin = (struct spin){.first = first, .start_ns = calls->items[first].start_ns};
	add_call(spin, &shares, &calls->items[i++]);
	for (; i < calls->count; i++) {
		const struct fbt_call *call = &calls->items[i];
		enum way next = way_of_call(search, call);

		/* A timed-out futex has an address; the others wait for anything. */
		if (!next || (next == WAY_FUTEX) != (way == WAY_FUTEX) ||
		    !joins(search, spin, call - 1, call, next))
			break;
		add_call(spin, &shares, call);
	}
	spin->end = i;
	spin->nr = largest_share(&shares);
}

/*
 * Time outside of calls in which the thread wanted a CPU and had none. What the host of a virtual
 * machine took is in no wait for a CPU: the step has it as time off the CPU.
 */
static uint64_t without_cpu_ns(const struct step *step)
{
	struct step_parts parts;

	if (step->record.header.flags & FBT_STEP_SCHED_UNKNOWN)
		return 0;
	step_split(step, &parts);
	return add_saturating(step->record.run_delay_ns, parts.known ? parts.ns[STEP_OFF_CPU] : 0);
}

void spin_search_begin(struct spin_search *search, const struct window *window,
		       const struct step *step)
{
	const struct process *process = window__process(window, step->record.tgid);
	uint32_t nr = UINT32_MAX;
	enum fbt_category category = FBT_OTHER;

	*search = (struct spin_search){.step = step, .arch = (enum fbt_arch)window->record.arch};
	if (!step->record.kind) {
		search->next = step->calls.count;
		return;
	}
	if (process && process->python.tgid) {
		search->gil_start = process->python.gil_start;
		search->gil_end = process->python.gil_end;
	}
	search->delay_ns = without_cpu_ns(step);
	if (!step->record.lost_calls)
		return;
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		search->unseen_ns[i] = step->record.sums[i].ns;
	vec_for_each (call, &step->calls) {
		/* A category is found by comparing names: not for each of thousands of calls. */
		if (call->nr != nr)
			category = syscall_category(search->arch, call->nr);
		nr = call->nr;
		search->unseen_ns[category] =
			sub_saturating(search->unseen_ns[category], call_ns(call));
	}
}

bool spin_search_next(struct spin_search *search, struct spin *spin)
{
	const call_vec *calls = &search->step->calls;

	while (search->next < calls->count) {
		enum way way = way_of_call(search, &calls->items[search->next]);

		if (!way) {
			search->next++;
			continue;
		}
		take_row(search, search->next, way, spin);
		search->next = spin->end;
		if (spin->calls >= SPIN_MIN_CALLS && spin->ns >= SPIN_MIN_NS)
			return true;
	}
	return false;
}

uint64_t spin_code_ns(const struct spin *spin)
{
	uint64_t known_ns = add_saturating(spin->calls_ns, spin->unseen_ns);

	return sub_saturating(spin->ns, add_saturating(known_ns, spin->delay_ns));
}

void spins_find(const struct window *window, struct step *step)
{
	struct step_spins *spins = &step->spins;
	struct spin_search search;
	struct spin spin;

	*spins = (struct step_spins){0};
	if (!step_calls_known(step) || step->calls.count == 0)
		return;
	spin_search_begin(&search, window, step);
	while (spin_search_next(&search, &spin)) {
		spins->waits++;
		spins->ns = add_saturating(spins->ns, spin.ns);
		spins->calls += spin.calls;
		spins->partial |= spin.partial;
		if (spin.ns > spins->longest.ns)
			spins->longest = spin;
	}
}

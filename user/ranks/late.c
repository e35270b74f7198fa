/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "ranks/late.h"

#include "base/arith.h"
#include "base/clock.h"
#include "base/format.h"

/* The tool looks for stops that often: one may have lasted as long after it was seen. */
#define STOP_LOOK_NS (20 * NS_PER_MS)

/* Parts in which a rank may wait for another one, so that they do not show that it is late. */
static bool may_be_wait(const struct tick *tick, int part)
{
	switch (part) {
	case STEP_OWN:
	case STEP_CALLS + FBT_FUTEX:
	case STEP_CALLS + FBT_IOCTL:
	case STEP_CALLS + FBT_READ:
	case STEP_CALLS + FBT_OTHER:
	case STEP_AWAIT:
	case TICK_BETWEEN:
		return true;
	case STEP_OFF_CPU:
		return !tick->calls_known;
	default:
		return false;
	}
}

/* Time in calls that may be waits for another rank, and between steps. */
static uint64_t waited_ns(const struct tick *tick)
{
	uint64_t ns = 0;

	for (int i = 0; i < TICK_PARTS; i++) {
		if (i != STEP_OWN && may_be_wait(tick, i))
			ns = add_saturating(ns, tick->parts_ns[i]);
	}
	return ns;
}

/* The least of a value over all ranks but one. */
static uint64_t least(const struct tick *ranks, size_t count, size_t but,
		      uint64_t (*get)(const struct tick *tick, int part), int part)
{
	uint64_t ns = UINT64_MAX;

	for (size_t i = 0; i < count; i++) {
		if (i != but)
			ns = min_u64(ns, get(&ranks[i], part));
	}
	return ns;
}

static uint64_t part_ns(const struct tick *tick, int part)
{
	return tick->parts_ns[part];
}

static uint64_t cpu_wait_of(const struct tick *tick, int unused)
{
	(void)unused;
	return add_saturating(tick->parts_ns[STEP_CPU_WAIT], tick->parts_ns[TICK_CPU_LIMIT]);
}

/*
 * How much more of a part a rank has than each other one. Ranks share a limit's counter, so of two
 * that waited equally long for a CPU it may explain one wait only: they are compared by both parts
 * together.
 */
static uint64_t excess_ns(const struct tick *ranks, size_t count, size_t rank, int part)
{
	const struct tick *tick = &ranks[rank];
	uint64_t waited_more_ns, limit_ns;

	if (part != STEP_CPU_WAIT && part != TICK_CPU_LIMIT)
		return sub_saturating(tick->parts_ns[part],
				      least(ranks, count, rank, part_ns, part));
	waited_more_ns =
		sub_saturating(cpu_wait_of(tick, 0), least(ranks, count, rank, cpu_wait_of, 0));
	limit_ns = min_u64(waited_more_ns, tick->parts_ns[TICK_CPU_LIMIT]);
	return part == TICK_CPU_LIMIT ? limit_ns : waited_more_ns - limit_ns;
}

/* UINT64_MAX: not known. */
static uint64_t gap_part_ns(const struct tick *tick, int part)
{
	if (!tick->gap_known)
		return UINT64_MAX;
	switch (part) {
	case STEP_CPU_WAIT:
		return tick->gap.delay_ns;
	case STEP_STOPPED:
		return tick->gap.stopped_ns;
	default:
		return tick->gap.off_ns;
	}
}

/* The same as excess_ns, of the gap before. A gap that is not known shows nothing of others. */
static uint64_t gap_excess_ns(const struct tick *ranks, size_t count, size_t rank, int part)
{
	uint64_t others_ns = least(ranks, count, rank, gap_part_ns, part);

	return sub_saturating(gap_part_ns(&ranks[rank], part),
			      others_ns == UINT64_MAX ? 0 : others_ns);
}

static uint64_t begin_of(const struct tick *tick, int unused)
{
	(void)unused;
	return tick->begin_ns;
}

static uint64_t end_of(const struct tick *tick, int unused)
{
	(void)unused;
	return tick->end_ns;
}

static uint64_t wait_of(const struct tick *tick, int unused)
{
	(void)unused;
	return waited_ns(tick);
}

/* What is known of why a rank is late so far. */
struct reason {
	enum tick_part cause;
	uint64_t cause_ns;
	uint64_t ns; /* of all causes */
};

static void add_reason(struct reason *reason, enum tick_part cause, uint64_t ns)
{
	reason->ns = add_saturating(reason->ns, ns);
	if (ns <= reason->cause_ns)
		return;
	reason->cause = cause;
	reason->cause_ns = ns;
}

/* What held a rank for longer than the others. Without a peer that is known, nothing did. */
static struct reason find_hold(const struct tick *ranks, size_t count, size_t rank)
{
	struct reason reason = {.cause = TICK_PARTS};

	for (int i = 0; i < TICK_PARTS && ranks[rank].parts_known; i++) {
		if (!may_be_wait(&ranks[rank], i))
			add_reason(&reason, (enum tick_part)i, excess_ns(ranks, count, rank, i));
	}
	return reason;
}

/* Own code of a rank for which all others waited in calls. */
static struct reason find_work(const struct tick *ranks, size_t count, size_t rank)
{
	struct reason reason = {.cause = TICK_PARTS};
	uint64_t more_ns = sub_saturating(ranks[rank].parts_ns[STEP_OWN],
					  least(ranks, count, rank, part_ns, STEP_OWN));
	uint64_t waited =
		sub_saturating(least(ranks, count, rank, wait_of, 0), waited_ns(&ranks[rank]));

	if (ranks[rank].parts_known)
		add_reason(&reason, (enum tick_part)STEP_OWN, min_u64(more_ns, waited));
	return reason;
}

static struct reason larger(struct reason a, struct reason b)
{
	return b.cause_ns > a.cause_ns ? b : a;
}

/* The part of which a rank that ends late has most more than the others. */
static struct reason find_growth(const struct tick *ranks, size_t count, size_t rank)
{
	struct reason reason = {.cause = TICK_PARTS};

	for (int i = 0; i < TICK_PARTS && ranks[rank].parts_known; i++)
		add_reason(&reason, (enum tick_part)i, excess_ns(ranks, count, rank, i));
	return reason;
}

/* Whether a stop in the gap was over before the first rank began: then it made nobody wait. */
static bool was_stop_over(const struct tick *tick, uint64_t first_ns)
{
	return tick->gap.stop.header.type == FBT_EVENT_STOP &&
	       add_saturating(tick->gap.stop.time_ns, STOP_LOOK_NS) < first_ns;
}

/*
 * What the rank had more of than the others in the gap before, which may be much longer than it is
 * late. What is left was on a CPU, or in calls.
 */
static struct reason find_gap(const struct tick *ranks, size_t count, size_t rank)
{
	static const int parts[] = {STEP_CPU_WAIT, STEP_STOPPED, STEP_OFF_CPU};
	const struct tick *tick = &ranks[rank];
	uint64_t first_ns = min_u64(tick->begin_ns, least(ranks, count, rank, begin_of, 0));
	struct reason reason = {.cause = TICK_PARTS};
	uint64_t left_ns = tick->gap_ns;

	if (!tick->gap_known)
		return reason;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		uint64_t ns = gap_excess_ns(ranks, count, rank, parts[i]);

		if (parts[i] == STEP_STOPPED && was_stop_over(tick, first_ns))
			continue;
		add_reason(&reason, (enum tick_part)parts[i], take_u64(ns, &left_ns));
	}
	return reason;
}

static void set_cause(struct late *late, const struct reason *reason, const struct fbt_stop *stop,
		      const struct fbt_stop_sender *sender)
{
	late->cause = reason->cause;
	late->cause_ns = min_u64(reason->cause_ns, late->ns[late->where]);
	if (late->cause != (enum tick_part)STEP_STOPPED)
		return;
	late->stop = *stop;
	late->stop_sender = *sender;
}

/* A gap whose known causes are less than half of it was spent on a CPU, or in calls. */
static void find_begin_cause(const struct tick *ranks, size_t count, size_t rank, struct late *late)
{
	struct reason reason = find_gap(ranks, count, rank);
	const struct tick *tick = &ranks[rank];

	if (tick->gap_known && reason.ns < late->ns[LATE_BEGINS] / 2) {
		reason.cause = TICK_BETWEEN;
		reason.cause_ns = late->ns[LATE_BEGINS];
	}
	set_cause(late, &reason, &tick->gap.stop, &tick->gap.sender);
}

/*
 * For how long the rank may have waited for one that began later. What held it meanwhile made
 * nobody wait.
 */
static uint64_t find_idle_ns(const struct tick *ranks, size_t count, const struct tick *tick)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < count; i++)
		ns = max_u64(ns, sub_saturating(ranks[i].begin_ns, tick->begin_ns));
	return ns;
}

static void find_one(const struct tick *ranks, size_t count, size_t rank, struct late *late)
{
	const struct tick *tick = &ranks[rank];
	uint64_t offset_ns = sub_saturating(tick->begin_ns, least(ranks, count, rank, begin_of, 0));
	uint64_t end_ns = sub_saturating(tick->end_ns, least(ranks, count, rank, end_of, 0));
	struct reason held = larger(find_hold(ranks, count, rank), find_work(ranks, count, rank));
	uint64_t *ns = late->ns;

	ns[LATE_BEGINS] = tick->gap_known ? min_u64(offset_ns, tick->gap_ns) : offset_ns;
	late->carried_ns = offset_ns - ns[LATE_BEGINS];
	ns[LATE_ENDS] = sub_saturating(end_ns, offset_ns);
	/* What made it end late did not make the others wait. */
	ns[LATE_WITHIN] = sub_saturating(
		held.ns, add_saturating(ns[LATE_ENDS], find_idle_ns(ranks, count, tick)));
	late->total_ns =
		add_saturating(ns[LATE_BEGINS], add_saturating(ns[LATE_WITHIN], ns[LATE_ENDS]));
	for (int i = 0; i < LATE_WHERE_COUNT; i++) {
		if (ns[i] > ns[late->where])
			late->where = (enum late_where)i;
	}
	if (late->where == LATE_ENDS && held.ns < ns[LATE_ENDS] / 2)
		held = find_growth(ranks, count, rank);
	if (late->where == LATE_BEGINS)
		find_begin_cause(ranks, count, rank, late);
	else
		set_cause(late, &held, &tick->stop, &tick->stop_sender);
}

void late_find(const struct tick *ranks, size_t count, struct late *lates)
{
	for (size_t i = 0; i < count; i++) {
		lates[i] = (struct late){.cause = TICK_PARTS};
		if (count > 1)
			find_one(ranks, count, i, &lates[i]);
	}
}

size_t late_choose(const struct late *lates, size_t count, uint64_t iteration_ns)
{
	size_t latest = 0;

	for (size_t i = 1; i < count; i++) {
		if (lates[i].total_ns > lates[latest].total_ns)
			latest = i;
	}
	if (!count || lates[latest].total_ns < LATE_MIN_NS ||
	    percent_of((double)lates[latest].total_ns, (double)iteration_ns) < LATE_PERCENT)
		return count;
	return latest;
}

const char *late_where_name(enum late_where where)
{
	static const char *const names[LATE_WHERE_COUNT] = {
		[LATE_BEGINS] = "begins", [LATE_WITHIN] = "within", [LATE_ENDS] = "ends"};

	return names[where % LATE_WHERE_COUNT];
}

const char *late_cause_name(enum tick_part cause, bool calls_known)
{
	const char *name;

	switch (cause) {
	case TICK_GC:
		return "gc";
	case TICK_GIL:
		return "gil";
	case TICK_CPU_LIMIT:
		return "cpu_limit";
	case TICK_BETWEEN:
		return "between";
	case TICK_PARTS:
		return "unknown";
	default:
		name = step_part_name((enum step_part)cause, calls_known);
		return name ? name : "unknown";
	}
}

const char *late_cause_words(enum tick_part cause, bool calls_known)
{
	static const char *const calls[FBT_CATEGORY_COUNT] = {
		[FBT_MMAP] = "in mmap calls",	[FBT_FUTEX] = "in futex calls",
		[FBT_IOCTL] = "in ioctl calls", [FBT_READ] = "in read calls",
		[FBT_WRITE] = "in write calls", [FBT_OTHER] = "in other calls",
	};

	int part = (int)cause;

	switch (part) {
	case TICK_GC:
		return "collecting garbage";
	case TICK_GIL:
		return "waiting for the GIL";
	case TICK_CPU_LIMIT:
		return "waiting for a CPU at its limit";
	case TICK_BETWEEN:
		return "busy or waiting between steps";
	case STEP_OWN:
		return calls_known ? "in its own code" : "on a CPU";
	case STEP_CPU_WAIT:
		return "waiting for a CPU";
	case STEP_FAULTS:
		return "in page faults";
	case STEP_DISK_WAIT:
		return "waiting for a disk";
	case STEP_STOPPED:
		return "stopped";
	case STEP_OFF_CPU:
		return calls_known ? "off the CPU" : "asleep";
	case TICK_PARTS:
		return "not known";
	default:
		return part >= STEP_CALLS && part < STEP_FAULTS ? calls[part - STEP_CALLS]
								: "in await";
	}
}

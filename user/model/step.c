/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/clock.h"
#include "model/syscalls.h"

void step_clear(struct step *step)
{
	vec_free(&step->calls);
	vec_free(&step->wakes);
	vec_free(&step->stacks);
	vec_free(&step->peers);
	vec_free(&step->looks);
	vec_free(&step->wokens);
	vec_free(&step->takens);
}

void step_hand_over(struct step *step)
{
	step->calls = (call_vec){0};
	step->wakes = (wake_vec){0};
	step->stacks = (stack_vec){0};
	step->peers = (peer_vec){0};
	step->looks = (look_vec){0};
	step->wokens = (woken_vec){0};
	step->takens = (taken_vec){0};
}

static uint64_t part_of(uint64_t ns, double part)
{
	return (uint64_t)((double)ns * part);
}

void taken_cut(struct fbt_taken *taken, uint64_t waited_ns)
{
	double part;

	if (waited_ns >= taken->waited_ns)
		return;
	part = (double)waited_ns / (double)taken->waited_ns;
	taken->waited_ns = waited_ns;
	taken->idle_ns = part_of(taken->idle_ns, part);
	taken->own_ns = part_of(taken->own_ns, part);
	taken->other_ns = part_of(taken->other_ns, part);
	for (uint32_t i = 0; i < FBT_TAKERS && i < taken->count; i++)
		taken->takers[i].ns = part_of(taken->takers[i].ns, part);
}

bool step_end_is_late(const struct step *step)
{
	return step->record.end == FBT_END_UNWOUND && !step->record.polls;
}

bool step_calls_known(const struct step *step)
{
	return !(step->record.header.flags & FBT_STEP_CALLS_UNKNOWN);
}

bool step_is_profiled(const struct step *step)
{
	return step->record.header.flags & FBT_STEP_PROFILED;
}

bool step_faults_known(const struct step *step)
{
	return step->record.header.flags & FBT_STEP_FAULTS_TIMED;
}

uint64_t step_faults_ns(const struct step *step)
{
	const struct fbt_step_faults *faults = &step->record.faults;

	return step_faults_known(step) ? add_saturating(faults->cpu_ns, faults->asleep_ns) : 0;
}

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

/* Time off the CPU below this is not taken for a possible stop. */
#define STOP_MIN_NS 100000

/* Time on a CPU in calls: what they took, without waiting for a CPU and without sleeping. */
static uint64_t cpu_in_calls_ns(const struct fbt_step *record)
{
	uint64_t ns = 0;

	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		ns = add_saturating(ns,
				    sub_saturating(record->sums[i].ns, record->call_delay_ns[i]));
	return sub_saturating(ns, record->asleep_ns);
}

/*
 * Less than 0 counts as 0: what the host of a virtual machine took before the step may count in it,
 * as the kernel notices that at the next tick or switch.
 */
static uint64_t cpu_ns(const struct fbt_step *record)
{
	return not_negative(record->cpu_ns);
}

/* Time on a CPU outside of calls, without page faults that were timed. */
static uint64_t own_cpu_ns(const struct step *step)
{
	uint64_t ns = sub_saturating(cpu_ns(&step->record), cpu_in_calls_ns(&step->record));

	return step_faults_known(step) ? sub_saturating(ns, step->record.faults.cpu_ns) : ns;
}

/* Upper bound on the time of the stops that were seen. */
static uint64_t stopped_ns(const struct step *step)
{
	if (step->stop.header.type != FBT_EVENT_STOP || step->stop.tid != step->record.tid)
		return 0;
	return step->stop.stopped_ns;
}

void step_split(const struct step *step, struct step_parts *parts)
{
	const struct fbt_step *record = &step->record;
	uint64_t left_ns = step_total_ns(step), delay_ns = record->run_delay_ns, *ns = parts->ns;
	bool wait_known = !(record->header.flags & FBT_STEP_SCHED_UNKNOWN);

	*parts = (struct step_parts){0};
	parts->known = wait_known && record->header.flags & FBT_STEP_CPU_KNOWN;
	ns[STEP_AWAIT] = take_u64(record->await_ns, &left_ns);
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++) {
		uint64_t waited_ns = min_u64(record->call_delay_ns[i], record->sums[i].ns);

		if (!wait_known)
			waited_ns = 0;
		ns[STEP_CALLS + i] = take_u64(record->sums[i].ns - waited_ns, &left_ns);
		delay_ns = add_saturating(delay_ns, waited_ns);
	}
	if (wait_known)
		ns[STEP_CPU_WAIT] = take_u64(delay_ns, &left_ns);
	if (!parts->known) {
		ns[STEP_STOPPED] = take_u64(stopped_ns(step), &left_ns);
		ns[STEP_OWN] = left_ns;
		return;
	}
	if (step_calls_known(step)) {
		parts->faults_known = step_faults_known(step);
		ns[STEP_OWN] = take_u64(own_cpu_ns(step), &left_ns);
		ns[STEP_STOPPED] = take_u64(stopped_ns(step), &left_ns);
		ns[STEP_FAULTS] = take_u64(step_faults_ns(step), &left_ns);
		ns[STEP_DISK_WAIT] = take_u64(record->fault_wait_ns, &left_ns);
	} else {
		ns[STEP_OWN] = take_u64(cpu_ns(record), &left_ns);
		ns[STEP_STOPPED] = take_u64(stopped_ns(step), &left_ns);
	}
	ns[STEP_OFF_CPU] = left_ns;
	parts->stops_known = ns[STEP_STOPPED] || left_ns < STOP_MIN_NS;
}

uint64_t step_disk_wait_ns(const struct step *step, const struct step_parts *parts)
{
	if (step_calls_known(step))
		return parts->ns[STEP_DISK_WAIT];
	return step_faults_known(step)
		       ? min_u64(step->record.fault_wait_ns, parts->ns[STEP_OFF_CPU])
		       : 0;
}

void step_join_gap(struct step *step, struct fbt_gap *next)
{
	const struct fbt_step *record = &step->record;
	bool is_own = next->tgid == record->tgid && next->tid == record->tid &&
		      next->start_ns == record->start_ns &&
		      !(record->header.flags & FBT_STEP_NO_GAP);
	uint64_t left_ns = record->gap_ns;

	if (is_own) {
		step->gap.known = true;
		step->gap.cpu_ns = take_u64(not_negative(next->cpu_ns), &left_ns);
		step->gap.delay_ns = take_u64(next->delay_ns, &left_ns);
		if (step_calls_known(step))
			step->gap.off_ns = sub_saturating(left_ns, record->gap_syscall_ns);
	}
	*next = (struct fbt_gap){0};
}

const char *step_part_name(enum step_part part, bool calls_known)
{
	static const char *const without_calls[STEP_PARTS] = {
		[STEP_OWN] = "on_cpu",	   [STEP_CPU_WAIT] = "cpu_wait", [STEP_STOPPED] = "stopped",
		[STEP_OFF_CPU] = "asleep", [STEP_AWAIT] = "await",
	};
	static const char *const names[STEP_PARTS] = {
		[STEP_OWN] = "own",
		[STEP_CPU_WAIT] = "cpu_wait",
		[STEP_CALLS + FBT_MMAP] = "mmap_net",
		[STEP_CALLS + FBT_FUTEX] = "futex_net",
		[STEP_CALLS + FBT_IOCTL] = "ioctl_net",
		[STEP_CALLS + FBT_READ] = "read_net",
		[STEP_CALLS + FBT_WRITE] = "write_net",
		[STEP_CALLS + FBT_OTHER] = "other_net",
		[STEP_FAULTS] = "faults",
		[STEP_DISK_WAIT] = "disk_wait",
		[STEP_STOPPED] = "stopped",
		[STEP_OFF_CPU] = "off_cpu",
		[STEP_AWAIT] = "await",
	};

	return calls_known ? names[part] : without_calls[part];
}

uint64_t call_count(const struct fbt_call *call)
{
	return call->header.flags & FBT_CALL_RUN ? call->run.calls : 1;
}

uint64_t call_ns(const struct fbt_call *call)
{
	return call->header.flags & FBT_CALL_RUN ? call->run.calls_ns : call->duration_ns;
}

uint64_t call_longest_ns(const struct fbt_call *call)
{
	return call->header.flags & FBT_CALL_RUN ? call->run.longest_ns : call->duration_ns;
}

uint64_t step_recorded_calls(const struct step *step)
{
	uint64_t count = 0;

	vec_for_each (call, &step->calls)
		count += call_count(call);
	return count;
}

uint64_t step_calls(const struct step *step)
{
	return sum_categories(i, step->record.sums[i].calls);
}

uint64_t step_errors(const struct step *step)
{
	return sum_categories(i, step->record.sums[i].errors);
}

uint64_t step_team_blocked_ns(const struct fbt_step *record)
{
	return sub_saturating(record->team_ns,
			      add_saturating(record->team_cpu_ns, record->team_delay_ns));
}

const char *step_end_name(enum fbt_step_end end)
{
	static const char *const names[] = {
		[FBT_END_RETURN] = "return",	   [FBT_END_UNWOUND] = "unwound",
		[FBT_END_TRUNCATED] = "truncated", [FBT_END_EXITED] = "exited",
		[FBT_END_RAISED] = "raised",
	};

	return end <= FBT_END_RAISED ? names[end] : "unknown";
}

uint64_t step_throttled_ns(const struct fbt_step_limits *limits)
{
	uint64_t periods = (uint64_t)limits->throttled_periods + 1, most_ns;

	if (!limits->period_ns || __builtin_mul_overflow(periods, limits->period_ns, &most_ns))
		return limits->throttled_ns;
	return min_u64(limits->throttled_ns, most_ns);
}

uint64_t step_steal_ns(const struct step *step, const struct step_parts *parts)
{
	if (!step_calls_known(step))
		return 0;
	return min_u64((uint64_t)step->record.steal_us * NS_PER_US, parts->ns[STEP_OFF_CPU]);
}

const char *stop_reason_name(enum fbt_stop_reason reason)
{
	static const char *const names[FBT_STOP_REASON_COUNT] = {
		[FBT_STOP_SIGNAL] = "signal",
		[FBT_STOP_TRACER] = "tracer",
		[FBT_STOP_FREEZER] = "freezer",
	};

	return reason < FBT_STOP_REASON_COUNT ? names[reason] : "unknown";
}

void step_breakdown(const struct step *step, struct breakdown *breakdown)
{
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		breakdown->category_us[i] = step->record.sums[i].ns / NS_PER_US;
	breakdown->total_us = step_total_ns(step) / NS_PER_US;
	breakdown->unknown = !step_calls_known(step);
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

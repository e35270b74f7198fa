/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "shim_clock.h"

#include <stdlib.h>
#include <time.h>

#define TRIES 5
/* Slack for a call that was in progress at arming, and so began before it. */
#define RECORD_SLACK_NS 1000000000ull
/* The same, where it is only asked on which clock a record is: calls may wait for long. */
#define CALL_SLACK_NS 60000000000ull
/* How long CUPTI's clock is watched to see its rate. */
#define RATE_NS 50000ull

static uint64_t read_clock(clockid_t id)
{
	struct timespec now = {0};

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t shim_clock__now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t shim_clock__realtime(void)
{
	return read_clock(CLOCK_REALTIME);
}

/*
 * From 12.6 Update 2 to 13.0, kernels have no times if a timestamp callback is registered (fixed in
 * 13.1). 12.6 and its updates share a version number.
 */
enum fbt_gpu_clock_method shim_clock__method_for(uint32_t version)
{
	return version >= CUPTI_VERSION_12_6 && version < CUPTI_VERSION_13_1
		       ? FBT_GPU_CLOCK_REALTIME
		       : FBT_GPU_CLOCK_CALLBACK;
}

void shim_clock__begin(struct shim_clock *clock, const struct cupti_calls *calls, uint32_t version)
{
	clock->method = shim_clock__method_for(version);
	clock->settled = false;
	clock->foreign = false;
	clock->began_ns = shim_clock__realtime();
	clock->began_mono_ns = shim_clock__now();
	clock->record_ns = 0;
	clock->has_offset = false;
	clock->error_ns = 0;
	clock->steps = 0;
	if (clock->method != FBT_GPU_CLOCK_CALLBACK || clock->registered)
		return;
	/* Registering a second time corrupts the times of some kernels. */
	if (calls->register_timestamp && !calls->register_timestamp(shim_clock__now))
		clock->registered = true;
	else
		clock->method = FBT_GPU_CLOCK_REALTIME;
}

/* Reads CUPTI's clock between two readings of ours. false: CUPTI failed. */
static bool sandwich(uint32_t method, const struct cupti_calls *calls, struct fbt_gpu_clock *sample)
{
	uint64_t before = shim_clock__now();
	uint64_t time = 0;
	uint64_t after;

	if (method == FBT_GPU_CLOCK_REALTIME)
		time = shim_clock__realtime();
	else if (calls->get_timestamp(&time))
		return false;
	after = shim_clock__now();
	sample->mono_ns = before + (after - before) / 2;
	sample->gpu_ns = time;
	sample->error_ns = (after - before + 1) / 2;
	return true;
}

bool shim_clock__sample(const struct shim_clock *clock, const struct cupti_calls *calls,
			struct fbt_gpu_clock *sample)
{
	bool found = false;

	*sample = (struct fbt_gpu_clock){.method = clock->method};
	if (clock->method == FBT_GPU_CLOCK_CALLBACK) {
		sample->mono_ns = shim_clock__now();
		sample->gpu_ns = sample->mono_ns;
		return true;
	}
	if (clock->method == FBT_GPU_CLOCK_CUPTI && !calls)
		return false;
	for (int i = 0; i < TRIES; i++) {
		struct fbt_gpu_clock one = *sample;

		if (sandwich(clock->method, calls, &one) &&
		    (!found || one.error_ns < sample->error_ns)) {
			*sample = one;
			found = true;
		}
	}
	return found;
}

static void change_method(struct shim_clock *clock, enum fbt_gpu_clock_method method)
{
	clock->method = method;
	clock->has_offset = false;
}

/*
 * Whether a record may have been made since arming, by a clock that now reads now_ns. slack_ns: how
 * long before arming its call may have begun.
 */
static bool goes_with(const struct shim_clock *clock, uint64_t now_ns, uint64_t slack_ns)
{
	uint64_t armed_for_ns = shim_clock__now() - clock->began_mono_ns;

	return clock->record_ns <= now_ns + SHIM_CLOCK_APART_NS &&
	       clock->record_ns + armed_for_ns + slack_ns >= now_ns;
}

/* Checks whether another tool in the process has replaced our callback. */
static void check_callback(struct shim_clock *clock)
{
	if (!clock->record_ns || goes_with(clock, shim_clock__now(), CALL_SLACK_NS))
		return;
	clock->foreign = !goes_with(clock, shim_clock__realtime(), CALL_SLACK_NS);
	change_method(clock, FBT_GPU_CLOCK_REALTIME);
}

/* Whether CUPTI's clock counts nanoseconds. Ticks of a CPU are far more. */
static bool has_rate(const struct cupti_calls *calls)
{
	uint64_t first = 0, last = 0, began_ns, earliest_ns, latest_ns, passed;

	began_ns = shim_clock__now();
	if (calls->get_timestamp(&first))
		return false;
	earliest_ns = shim_clock__now();
	do
		latest_ns = shim_clock__now();
	while (latest_ns - earliest_ns < RATE_NS);
	if (calls->get_timestamp(&last) || last < first)
		return false;
	passed = last - first;
	return passed * 4 >= (latest_ns - earliest_ns) * 3 &&
	       passed * 4 <= (shim_clock__now() - began_ns) * 5;
}

static void check_realtime(struct shim_clock *clock, const struct cupti_calls *calls)
{
	uint64_t before = shim_clock__realtime();
	uint64_t time = 0;
	uint64_t after;

	if (calls->get_timestamp(&time))
		return;
	/* CUPTI's clock is read between two readings of ours: a preemption does not matter. */
	after = shim_clock__realtime();
	if ((time + SHIM_CLOCK_APART_NS < before || time > after + SHIM_CLOCK_APART_NS) &&
	    clock->record_ns && goes_with(clock, time, RECORD_SLACK_NS) && has_rate(calls))
		change_method(clock, FBT_GPU_CLOCK_CUPTI);
	else if (clock->record_ns && !clock->settled && !goes_with(clock, after, CALL_SLACK_NS))
		clock->foreign = true; /* Later CLOCK_REALTIME may have been set. */
}

void shim_clock__check(struct shim_clock *clock, const struct cupti_calls *calls)
{
	if (clock->method == FBT_GPU_CLOCK_CALLBACK)
		check_callback(clock);
	if (clock->method == FBT_GPU_CLOCK_REALTIME && !clock->foreign)
		check_realtime(clock, calls);
	if (clock->foreign)
		clock->registered = false;
	clock->settled = clock->record_ns != 0;
}

bool shim_clock__adopt(struct shim_clock *clock, uint32_t method, const struct shim_clock *checked)
{
	if (clock->method != method && clock->method != checked->method)
		return false;
	if (clock->method != checked->method)
		change_method(clock, checked->method);
	clock->record_ns = checked->record_ns;
	clock->settled = checked->settled;
	clock->foreign = checked->foreign;
	clock->registered = checked->registered;
	return true;
}

bool shim_clock__is_before_arming(const struct shim_clock *clock, uint64_t record_ns)
{
	uint64_t began_ns =
		clock->method == FBT_GPU_CLOCK_CALLBACK ? clock->began_mono_ns : clock->began_ns;

	return clock->method != FBT_GPU_CLOCK_CUPTI && record_ns &&
	       record_ns + SHIM_CLOCK_APART_NS < began_ns;
}

void shim_clock__account(struct shim_clock *clock, const struct fbt_gpu_clock *sample)
{
	int64_t offset = (int64_t)(sample->gpu_ns - sample->mono_ns);

	if (sample->method != clock->method)
		return;
	if (sample->error_ns > clock->error_ns)
		clock->error_ns = sample->error_ns;
	if (clock->has_offset && llabs(offset - clock->offset_ns) > (int64_t)SHIM_CLOCK_APART_NS)
		clock->steps++;
	clock->offset_ns = offset;
	clock->has_offset = true;
}

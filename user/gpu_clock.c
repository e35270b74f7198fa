/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_clock.h"

/* The clocks of two CPUs differ by less than this. */
#define FUTURE_NS 1000000000ull
/* A sample that is known no better says nothing. */
#define ERROR_NS_MAX 1000000000ull
/* The kernel slews a clock by 500 ppm at most; so much of a long gap between samples is drift. */
#define DRIFT_PER_NS 1000

typedef __int128 wide;

static const struct fbt_gpu_clock *sample_at(const struct gpu_clock *clock, uint32_t index)
{
	return &clock->samples[(clock->first + index) % GPU_CLOCK_SAMPLES];
}

static wide offset_of(const struct fbt_gpu_clock *sample)
{
	return (wide)sample->gpu_ns - sample->mono_ns;
}

static uint64_t to_time(wide ns)
{
	if (ns < 1)
		return 1;
	return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

static bool is_possible(const struct gpu_clock *clock, const struct fbt_gpu_clock *sample,
			uint64_t now_ns)
{
	if (sample->method == FBT_GPU_CLOCK_UNKNOWN || sample->method >= FBT_GPU_CLOCK_METHOD_COUNT)
		return false;
	if (!sample->mono_ns || !sample->gpu_ns || sample->error_ns > ERROR_NS_MAX)
		return false;
	return (wide)sample->mono_ns - clock->timens_ns <= (wide)now_ns + FUTURE_NS;
}

static void raise_error(struct gpu_clock *clock, uint64_t error_ns)
{
	if (error_ns > clock->error_ns)
		clock->error_ns = error_ns;
}

/* What lies between the samples could be of before or after a step: by so much it may be wrong. */
static void note_step(struct gpu_clock *clock, const struct fbt_gpu_clock *before,
		      const struct fbt_gpu_clock *after)
{
	uint64_t gap_ns = after->mono_ns - before->mono_ns;
	wide change = offset_of(after) - offset_of(before);

	if (change < 0)
		change = -change;
	if (change <= GPU_CLOCK_STEP_NS + gap_ns / DRIFT_PER_NS)
		return;
	clock->steps++;
	raise_error(clock, change < gap_ns ? (uint64_t)change : gap_ns);
}

static void forget_samples(struct gpu_clock *clock)
{
	clock->first = 0;
	clock->count = 0;
}

bool gpu_clock_add(struct gpu_clock *clock, const struct fbt_gpu_clock *sample, uint64_t now_ns)
{
	const struct fbt_gpu_clock *latest;

	if (!is_possible(clock, sample, now_ns))
		return false;
	if (clock->count && sample->method != clock->method)
		forget_samples(clock);
	if (clock->count) {
		latest = sample_at(clock, clock->count - 1);
		if (sample->mono_ns < latest->mono_ns)
			return false;
		note_step(clock, latest, sample);
		/* It was set back: what was a time before means another one now. */
		if (sample->gpu_ns < latest->gpu_ns)
			forget_samples(clock);
	}
	if (clock->count == GPU_CLOCK_SAMPLES) {
		clock->first = (clock->first + 1) % GPU_CLOCK_SAMPLES;
		clock->count--;
	}
	clock->samples[(clock->first + clock->count++) % GPU_CLOCK_SAMPLES] = *sample;
	clock->method = sample->method;
	raise_error(clock, sample->error_ns);
	return true;
}

/*
 * Between two samples. If the clock stepped there, the offset is that of one of them: of the one
 * that puts the time between both; where both do, of the nearer one. Else it drifts from one to the
 * other, which is the straight line through both.
 */
static wide convert_between(const struct fbt_gpu_clock *before, const struct fbt_gpu_clock *after,
			    uint64_t time_ns)
{
	uint64_t gap_ns = after->mono_ns - before->mono_ns;
	wide change = offset_of(after) - offset_of(before);
	wide early = (wide)time_ns - offset_of(before), late = (wide)time_ns - offset_of(after);

	if (after->gpu_ns == before->gpu_ns)
		return before->mono_ns;
	if ((change < 0 ? -change : change) <= GPU_CLOCK_STEP_NS + gap_ns / DRIFT_PER_NS)
		return before->mono_ns +
		       (wide)(time_ns - before->gpu_ns) * gap_ns / (after->gpu_ns - before->gpu_ns);
	if (early > after->mono_ns)
		return late < before->mono_ns ? before->mono_ns : late;
	if (late < before->mono_ns)
		return early;
	return time_ns - before->gpu_ns <= after->gpu_ns - time_ns ? early : late;
}

/* The last sample at or before the time; count if it is before all of them. */
static uint32_t find_before(const struct gpu_clock *clock, uint64_t time_ns)
{
	for (uint32_t i = clock->count; i > 0; i--) {
		if (sample_at(clock, i - 1)->gpu_ns <= time_ns)
			return i - 1;
	}
	return clock->count;
}

uint64_t gpu_clock_convert(const struct gpu_clock *clock, uint64_t time_ns)
{
	wide mono = time_ns;
	uint32_t index;

	if (!time_ns)
		return 0;
	if (clock->count && clock->method != FBT_GPU_CLOCK_CALLBACK) {
		index = find_before(clock, time_ns);
		if (index == clock->count)
			mono = time_ns - offset_of(sample_at(clock, 0));
		else if (index + 1 == clock->count)
			mono = time_ns - offset_of(sample_at(clock, index));
		else
			mono = convert_between(sample_at(clock, index), sample_at(clock, index + 1),
					       time_ns);
	}
	return to_time(mono - clock->timens_ns);
}

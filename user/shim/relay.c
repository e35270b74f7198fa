/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "shim/relay.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

/* Bound on the skew between GPU and host clocks, and between CPUs. */
#define FUTURE_NS NS_PER_S
/* A sample with a larger error is useless. */
#define ERROR_NS_MAX NS_PER_S
/*
 * Drift that is allowed between samples: 1 ns per DRIFT_PER_NS. The kernel slews a clock by at most
 * 500 ppm.
 */
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

/*
 * Counts a clock step between two samples. A time between them may be before or after the step,
 * which bounds the error.
 */
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
		/* The clock was set back, so old samples do not fit new times. */
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
 * Converts a time between two samples, by linear interpolation. If the clock stepped between them,
 * uses the offset of the sample that puts the time between both. If both offsets do, uses that of
 * the nearer sample.
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

/* The index of the last sample at or before the time; clock->count: all are later. */
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

#define ASSERT_TGID(type)                                                                          \
	_Static_assert(offsetof(struct type, tgid) == offsetof(struct fbt_gpu_work, tgid),         \
		       #type " has its process where the others have it")
ASSERT_TGID(fbt_gpu_name);
ASSERT_TGID(fbt_gpu_device);
ASSERT_TGID(fbt_gpu_api);
ASSERT_TGID(fbt_gpu_sync);
ASSERT_TGID(fbt_gpu_overhead);
ASSERT_TGID(fbt_gpu_flush);

/*
 * false: the times lie in the future. A record without a start was not measured, so its end is
 * ignored.
 */
static bool convert_times(const struct gpu_relay *relay, __u64 *start_ns, __u64 *end_ns,
			  uint64_t now_ns)
{
	*start_ns = gpu_clock_convert(&relay->clock, *start_ns);
	*end_ns = *start_ns ? gpu_clock_convert(&relay->clock, *end_ns) : 0;
	/* A clock step may put the end before the start. */
	if (*end_ns < *start_ns)
		*end_ns = *start_ns;
	return *end_ns <= now_ns + FUTURE_NS;
}

uint64_t gpu_relay_mono(const struct gpu_relay *relay, uint64_t mono_ns, uint64_t now_ns)
{
	const struct gpu_clock monotonic = {.timens_ns = relay->clock.timens_ns};
	uint64_t ours_ns = gpu_clock_convert(&monotonic, mono_ns);

	return ours_ns < now_ns ? ours_ns : now_ns;
}

void gpu_relay_begin(struct gpu_relay *relay)
{
	relay->flush = (struct fbt_gpu_flush){0};
	relay->impossible = 0;
	relay->clock.error_ns = 0;
	relay->clock.steps = 0;
}

static void complete_flush(struct gpu_relay *relay, struct fbt_gpu_flush *flush, uint64_t skipped)
{
	flush->clock_error_ns = relay->clock.error_ns;
	flush->clock_steps = relay->clock.steps;
	if (__builtin_add_overflow(flush->unknown, skipped + relay->impossible, &flush->unknown))
		flush->unknown = UINT64_MAX;
}

static void send_flush(struct gpu_relay *relay, struct fbt_gpu_flush *flush, uint64_t skipped,
		       uint64_t now_ns)
{
	bool ends;

	flush->tgid = relay->tgid;
	flush->last = flush->last != 0;
	flush->time_ns = gpu_relay_mono(relay, flush->time_ns, now_ns);
	flush->sent_ns = gpu_relay_mono(relay, flush->sent_ns, now_ns);
	ends = flush->last && !relay->flush.last;
	flush->last |= relay->flush.last;
	relay->flush = *flush;
	if (!ends && relay->flush_ns && now_ns - relay->flush_ns < GPU_RELAY_FLUSH_NS)
		return;
	relay->flush_ns = now_ns;
	complete_flush(relay, flush, skipped);
	record_send(relay->output, flush, sizeof(*flush), FBT_EVENT_GPU_FLUSH);
}

static bool convert_api(struct gpu_relay *relay, struct fbt_gpu_api *api, uint64_t now_ns)
{
	api->header.flags &= FBT_GPU_API_DRIVER | FBT_GPU_API_BLOCKING;
	api->tid = ns_tids__find(relay->tids, api->tid, now_ns);
	return convert_times(relay, &api->start_ns, &api->end_ns, now_ns);
}

static bool convert_overhead(struct gpu_relay *relay, struct fbt_gpu_overhead *overhead,
			     uint64_t now_ns)
{
	overhead->tid = ns_tids__find(relay->tids, overhead->tid, now_ns);
	return convert_times(relay, &overhead->start_ns, &overhead->end_ns, now_ns);
}

static bool convert(struct gpu_relay *relay, struct fbt_header *record, uint64_t now_ns)
{
	struct fbt_gpu_work *work = (struct fbt_gpu_work *)record;
	struct fbt_gpu_sync *sync = (struct fbt_gpu_sync *)record;

	work->tgid = relay->tgid;
	if (record->type != FBT_EVENT_GPU_API)
		record->flags = 0;
	switch (record->type) {
	case FBT_EVENT_GPU_WORK:
		return convert_times(relay, &work->start_ns, &work->end_ns, now_ns);
	case FBT_EVENT_GPU_SYNC:
		return convert_times(relay, &sync->start_ns, &sync->end_ns, now_ns);
	case FBT_EVENT_GPU_API:
		return convert_api(relay, (struct fbt_gpu_api *)record, now_ns);
	case FBT_EVENT_GPU_OVERHEAD:
		return convert_overhead(relay, (struct fbt_gpu_overhead *)record, now_ns);
	default:
		return true;
	}
}

void gpu_relay_record(struct gpu_relay *relay, struct fbt_header *record, uint64_t skipped,
		      uint64_t now_ns)
{
	switch (record->type) {
	case FBT_EVENT_GPU_CLOCK:
		gpu_clock_add(&relay->clock, (const struct fbt_gpu_clock *)record, now_ns);
		return;
	case FBT_EVENT_GPU_FLUSH:
		send_flush(relay, (struct fbt_gpu_flush *)record, skipped, now_ns);
		return;
	}
	if (convert(relay, record, now_ns))
		relay->output->emit(relay->output->ctx, record, record->size);
	else
		relay->impossible++;
}

void gpu_relay_end(struct gpu_relay *relay, uint64_t skipped, uint64_t now_ns)
{
	struct fbt_gpu_flush last = relay->flush;

	if (last.last)
		return;
	last.tgid = relay->tgid;
	last.last = 1;
	/* time_ns stays, because later records were lost with the shim's buffers. */
	last.sent_ns = now_ns;
	relay->flush.last = 1;
	complete_flush(relay, &last, skipped);
	record_send(relay->output, &last, sizeof(last), FBT_EVENT_GPU_FLUSH);
}

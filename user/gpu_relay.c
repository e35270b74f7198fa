/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_relay.h"

#include <stdbool.h>
#include <stddef.h>

/* What the clocks of a GPU and its host may be apart for a while. */
#define FUTURE_NS 1000000000ull

#define ASSERT_TGID(type)                                                                          \
	_Static_assert(offsetof(struct type, tgid) == offsetof(struct fbt_gpu_work, tgid),         \
		       #type " has its process where the others have it")
ASSERT_TGID(fbt_gpu_name);
ASSERT_TGID(fbt_gpu_device);
ASSERT_TGID(fbt_gpu_api);
ASSERT_TGID(fbt_gpu_sync);
ASSERT_TGID(fbt_gpu_overhead);
ASSERT_TGID(fbt_gpu_flush);

/* false: not of this time. What has no start was not measured, whatever its end says. */
static bool convert_times(const struct gpu_relay *relay, __u64 *start_ns, __u64 *end_ns,
			  uint64_t now_ns)
{
	*start_ns = gpu_clock_convert(&relay->clock, *start_ns);
	*end_ns = *start_ns ? gpu_clock_convert(&relay->clock, *end_ns) : 0;
	/* The end of a stepping clock's time may be put before its start. */
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
	api->tid = gpu_tids__find(relay->tids, api->tid, now_ns);
	return convert_times(relay, &api->start_ns, &api->end_ns, now_ns);
}

static bool convert_overhead(struct gpu_relay *relay, struct fbt_gpu_overhead *overhead,
			     uint64_t now_ns)
{
	overhead->tid = gpu_tids__find(relay->tids, overhead->tid, now_ns);
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
	/* time_ns stays: what was done since is in buffers that are gone. */
	last.sent_ns = now_ns;
	relay->flush.last = 1;
	complete_flush(relay, &last, skipped);
	record_send(relay->output, &last, sizeof(last), FBT_EVENT_GPU_FLUSH);
}

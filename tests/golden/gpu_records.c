/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "records.h"

#include <string.h>
#include "fbt_gpu.h"

static uint64_t take_instant(struct events *events, const char *key)
{
	return events->window_ns + line_take_time(&events->line, key, 0);
}

/* start with end or dur; unmeasured=1: both are 0. */
static void take_span(struct events *events, __u64 *start_ns, __u64 *end_ns)
{
	uint64_t start = line_take_time(&events->line, "start", 0);
	uint64_t duration = line_take_time(&events->line, "dur", 0);
	uint64_t end = line_take_time(&events->line, "end", start + duration);

	*start_ns = *end_ns = 0;
	if (line_take_number(&events->line, "unmeasured", 0))
		return;
	*start_ns = events->window_ns + start;
	*end_ns = events->window_ns + end;
}

static uint32_t take_u32(struct events *events, const char *key, uint32_t fallback)
{
	return (uint32_t)line_take_number(&events->line, key, fallback);
}

static void take_string(struct events *events, const char *key, const char *fallback)
{
	const char *text = line_take_text(&events->line, key, fallback);

	record_add_string(events, text, strlen(text));
}

static void write_state(struct events *events)
{
	static const char *const statuses[] = {
		"absent",    "armed",	  "ended",    "exited",	      "stalled",  "no_cupti",
		"old_cupti", "no_driver", "busy",     "failed",	      "bad_ring", "other_shim",
		"taken",     "off",	  "not_cuda", "not_injected", NULL,
	};
	static const char *const methods[] = {"unknown", "callback", "realtime", "cupti", NULL};
	struct fbt_gpu_state *state = record_begin(events, FBT_EVENT_GPU_STATE, sizeof(*state));

	state->tgid = record_take_tgid(events);
	state->status = line_take_name(&events->line, "status", statuses);
	state->time_ns = take_instant(events, "time");
	state->cupti_version = take_u32(events, "cupti", 0);
	state->driver_version = take_u32(events, "driver", 0);
	state->shim_version = take_u32(events, "shim", FBT_GPU_VERSION);
	state->clock_method = line_take_name(&events->line, "clock", methods);
	state->arm_ns = line_take_time(&events->line, "arm", 0);
	take_string(events, "detail", "");
	take_string(events, "library", "");
}

static void write_name(struct events *events)
{
	static const char *const kinds[] = {"kernel", "api", NULL};
	struct fbt_gpu_name *name = record_begin(events, FBT_EVENT_GPU_NAME, sizeof(*name));

	name->tgid = record_take_tgid(events);
	name->id = take_u32(events, "id", 1);
	name->kind = line_take_name(&events->line, "kind", kinds);
	take_string(events, "name", "");
}

static void write_device(struct events *events)
{
	struct fbt_gpu_device *device = record_begin(events, FBT_EVENT_GPU_DEVICE, sizeof(*device));

	device->tgid = record_take_tgid(events);
	device->id = take_u32(events, "id", 0);
	memset(device->uuid, (int)take_u32(events, "uuid", 0), sizeof(device->uuid));
	device->memory_bytes = line_take_number(&events->line, "memory", 0);
	device->compute_major = take_u32(events, "major", 0);
	device->compute_minor = take_u32(events, "minor", 0);
	device->sms = take_u32(events, "sms", 0);
	device->warp_size = take_u32(events, "warp", 0);
	device->max_threads_per_block = take_u32(events, "block_threads", 0);
	device->max_threads_per_sm = take_u32(events, "sm_threads", 0);
	device->registers_per_block = take_u32(events, "block_registers", 0);
	device->registers_per_sm = take_u32(events, "sm_registers", 0);
	device->shared_per_block = take_u32(events, "block_shared", 0);
	device->shared_per_block_optin = take_u32(events, "block_shared_optin", 0);
	device->shared_per_sm = take_u32(events, "sm_shared", 0);
	device->max_blocks_per_sm = take_u32(events, "sm_blocks", 0);
	take_string(events, "name", "");
}

static struct fbt_gpu_work *begin_work(struct events *events, uint32_t kind)
{
	struct fbt_gpu_work *work = record_begin(events, FBT_EVENT_GPU_WORK, sizeof(*work));

	work->tgid = record_take_tgid(events);
	work->kind = kind;
	take_span(events, &work->start_ns, &work->end_ns);
	work->device = take_u32(events, "device", 0);
	work->context = take_u32(events, "context", 1);
	work->stream = take_u32(events, "stream", 7);
	work->correlation = take_u32(events, "correlation", 0);
	work->graph = take_u32(events, "graph", 0);
	work->graph_node = line_take_number(&events->line, "node", 0);
	return work;
}

/* X[,Y[,Z]]; what is left out is 1. */
static void take_three(struct events *events, const char *key, uint32_t numbers[3])
{
	const char *text = line_take_text(&events->line, key, "1");
	char *end;

	for (int i = 0; i < 3; i++) {
		numbers[i] = 1;
		if (!*text)
			continue;
		numbers[i] = (uint32_t)line_parse_number(&events->line, text, &end);
		text = end + (*end == ',');
	}
	if (*text)
		line_stop(&events->line, "%s: want X,Y,Z", key);
}

static void write_kernel(struct events *events)
{
	struct fbt_gpu_work *work = begin_work(events, FBT_GPU_KERNEL);

	work->name = take_u32(events, "name", 0);
	take_three(events, "grid", work->kernel.grid);
	take_three(events, "block", work->kernel.block);
	work->kernel.static_shared = take_u32(events, "static_shared", 0);
	work->kernel.dynamic_shared = take_u32(events, "dynamic_shared", 0);
	work->kernel.registers = take_u32(events, "registers", 0);
}

static const char *const memories[] = {
	"unknown", "pageable",	    "pinned",	      "device", "array",
	"managed", "device_static", "managed_static", NULL,
};

static void write_memcpy(struct events *events)
{
	static const char *const kinds[] = {"unknown", "h2d", "d2h", "h2a", "a2h", "a2a",
					    "a2d",     "d2a", "d2d", "h2h", "p2p", NULL};
	struct fbt_gpu_work *work = begin_work(events, FBT_GPU_MEMCPY);

	work->copy.bytes = line_take_number(&events->line, "bytes", 0);
	work->copy.kind = line_take_name(&events->line, "kind", kinds);
	work->copy.source_device = take_u32(events, "source_device", work->device);
	work->copy.target_device = take_u32(events, "target_device", work->device);
	work->copy.source_memory = (uint8_t)line_take_name(&events->line, "source", memories);
	work->copy.target_memory = (uint8_t)line_take_name(&events->line, "target", memories);
}

static void write_memset(struct events *events)
{
	struct fbt_gpu_work *work = begin_work(events, FBT_GPU_MEMSET);

	work->copy.bytes = line_take_number(&events->line, "bytes", 0);
	work->copy.value = take_u32(events, "value", 0);
	work->copy.target_memory = (uint8_t)line_take_name(&events->line, "target", memories);
}

static void write_api(struct events *events)
{
	static const char *const classes[] = {"other",	"launch", "graph", "memcpy",
					      "memset", "sync",	  NULL};
	struct fbt_gpu_api *api = record_begin(events, FBT_EVENT_GPU_API, sizeof(*api));

	api->tgid = record_take_tgid(events);
	api->tid = take_u32(events, "tid", api->tgid);
	take_span(events, &api->start_ns, &api->end_ns);
	api->correlation = take_u32(events, "correlation", 0);
	api->cbid = take_u32(events, "cbid", 0);
	api->name = take_u32(events, "name", 0);
	api->api_class = line_take_name(&events->line, "class", classes);
	api->result = take_u32(events, "result", 0);
	if (line_take_number(&events->line, "driver", 0))
		api->header.flags |= FBT_GPU_API_DRIVER;
	if (line_take_number(&events->line, "blocking", 0))
		api->header.flags |= FBT_GPU_API_BLOCKING;
}

static void write_sync(struct events *events)
{
	static const char *const kinds[] = {"unknown", "event",	  "stream_wait_event",
					    "stream",  "context", NULL};
	struct fbt_gpu_sync *sync = record_begin(events, FBT_EVENT_GPU_SYNC, sizeof(*sync));

	sync->tgid = record_take_tgid(events);
	sync->kind = line_take_name(&events->line, "kind", kinds);
	take_span(events, &sync->start_ns, &sync->end_ns);
	sync->correlation = take_u32(events, "correlation", 0);
	sync->context = take_u32(events, "context", 1);
	sync->stream = take_u32(events, "stream", FBT_GPU_NO_STREAM);
	sync->event = take_u32(events, "event", 0);
}

static void write_overhead(struct events *events)
{
	static const char *const names[] = {
		"unknown",	"buffer_flush", "instrumentation", "resource", "",
		"lazy_loading", "full",		"buffer_request",  NULL,
	};
	struct fbt_gpu_overhead *overhead =
		record_begin(events, FBT_EVENT_GPU_OVERHEAD, sizeof(*overhead));

	overhead->tgid = record_take_tgid(events);
	overhead->tid = take_u32(events, "tid", overhead->tgid);
	take_span(events, &overhead->start_ns, &overhead->end_ns);
	overhead->kind = line_take_name(&events->line, "kind", names) << 16;
	overhead->correlation = take_u32(events, "correlation", 0);
}

static void write_flush(struct events *events)
{
	struct fbt_gpu_flush *flush = record_begin(events, FBT_EVENT_GPU_FLUSH, sizeof(*flush));

	flush->tgid = record_take_tgid(events);
	flush->last = take_u32(events, "last", 0);
	flush->time_ns = take_instant(events, "time");
	flush->sent_ns = take_instant(events, "sent");
	if (flush->sent_ns < flush->time_ns)
		flush->sent_ns = flush->time_ns;
	flush->records = line_take_number(&events->line, "records", 0);
	flush->cupti_dropped = line_take_number(&events->line, "dropped", 0);
	flush->ring_lost = line_take_number(&events->line, "ring_lost", 0);
	flush->no_buffer = line_take_number(&events->line, "no_buffer", 0);
	flush->unknown = line_take_number(&events->line, "unknown", 0);
	flush->shim_ns = line_take_time(&events->line, "shim", 0);
	flush->clock_error_ns = line_take_time(&events->line, "clock_error", 0);
	flush->clock_steps = line_take_number(&events->line, "clock_steps", 0);
}

static const struct {
	const char *type;
	record_writer write;
} writers[] = {
	{"gpu_state", write_state}, {"gpu_name", write_name}, {"gpu_device", write_device},
	{"kernel", write_kernel},   {"memcpy", write_memcpy}, {"memset", write_memset},
	{"gpu_api", write_api},	    {"gpu_sync", write_sync}, {"gpu_overhead", write_overhead},
	{"gpu_flush", write_flush},
};

record_writer gpu_record_writer(const char *type)
{
	for (size_t i = 0; i < sizeof(writers) / sizeof(writers[0]); i++) {
		if (!strcmp(writers[i].type, type))
			return writers[i].write;
	}
	return NULL;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* How the double of libcupti turns libcuda's events into records and calls of the client. */
#ifndef FBT_TESTS_FAKE_CUPTI_TRACE_H
#define FBT_TESTS_FAKE_CUPTI_TRACE_H

#include "fake_cupti_buffers.h"
#include "fake_cupti_names.h"

/* Kinds of overhead. */
#define OVERHEAD_FLUSH	 (1u << 16)
#define OVERHEAD_FULL	 (6u << 16)
#define OVERHEAD_REQUEST (7u << 16)
/*
 * Memory that comes with such a record and that the client must free. It is large, so that a leak
 * shows.
 */
#define OVERHEAD_BYTES 8192

/* The data that cuptiSubscribe's callback gets. */
struct callback_data {
	uint32_t site; /* 0: entry, 1: exit */
	const char *function;
	const void *parameters;
	void *result;
	const char *symbol;
	void *context;
	uint32_t context_id;
	uint64_t *data;
	uint32_t correlation;
};

static uint64_t trace_now(void)
{
	uint64_t (*timestamp)(void) = __atomic_load_n(&cupti.timestamp, __ATOMIC_ACQUIRE);
	uint64_t before = mono_ns(), now;

	if (!timestamp)
		return before;
	now = timestamp();
	if (now < before || now > mono_ns())
		die("the client's clock is not CLOCK_MONOTONIC");
	return now;
}

static void trace_hold(bool held)
{
	struct lane *lane;

	if (!held && !self.held)
		return;
	lock_state();
	lane = get_lane();
	self.held += held ? 1 : -1;
	if (held || lane->held)
		lane->held += held ? 1 : -1;
	unlock_state();
}

static uint32_t client_thread(void)
{
	return cupti.system_tids ? get_tid() : (uint32_t)pthread_self();
}

static void call_back(const struct fake_call *call, uint32_t site)
{
	const char *inside = self.inside;
	uint64_t data = 0;
	struct callback_data event = {.site = site,
				      .function = find_callback_name(call->domain, call->cbid),
				      .context_id = 1,
				      .data = &data,
				      .correlation = call->correlation};

	if (!cupti.callback || !cupti.callbacks[call->domain][call->cbid])
		return;
	self.inside = "a callback of the API";
	cupti.callback(cupti.userdata, call->domain, call->cbid, &event);
	self.inside = inside;
}

static void put_overhead(uint32_t overhead, uint32_t correlation, uint64_t start_ns,
			 uint64_t end_ns)
{
	struct overhead_record record = {.kind = KIND_OVERHEAD,
					 .overhead = overhead,
					 .object = 2, /* a thread */
					 .process = cupti.pid,
					 .thread = client_thread(),
					 .start = to_client_clock(start_ns),
					 .end = to_client_clock(end_ns),
					 .correlation = correlation};
	struct slot slot = {.bytes = (uint16_t)record_bytes(KIND_OVERHEAD)};

	if (!cupti.kinds[KIND_OVERHEAD])
		return;
	if (slot.bytes >= 56) {
		record.data = allocate(NULL, OVERHEAD_BYTES);
		memset(record.data, POISON, OVERHEAD_BYTES);
	}
	if (!put_record(&record, &slot) && slot.bytes >= 56)
		free(record.data);
}

/* Puts a record, and the record of a new buffer if one was needed. */
static bool put(const void *record, struct slot *slot)
{
	struct lane *lane = get_lane();
	struct buffer *before = lane->buffer;
	uint64_t start_ns = trace_now();
	bool done = put_record(record, slot);

	if (lane->buffer && lane->buffer != before)
		put_overhead(OVERHEAD_REQUEST, 0, start_ns, trace_now());
	return done;
}

static void trace_begin(struct fake_call *call, uint32_t outer)
{
	lock_state();
	call->recorded = cupti.apis[call->domain][call->cbid] &&
			 cupti.kinds[call->domain == FAKE_DRIVER ? KIND_DRIVER : KIND_RUNTIME];
	if (outer)
		call->correlation = outer;
	else if (cupti.correlating)
		call->correlation = ++cupti.correlation;
	unlock_state();
	call_back(call, 0);
}

static void trace_end(struct fake_call *call)
{
	struct api_record record = {.kind = call->domain == FAKE_RUNTIME ? KIND_RUNTIME
									 : KIND_DRIVER,
				    .cbid = call->cbid,
				    .start = to_client_clock(call->start_ns),
				    .end = to_client_clock(call->end_ns),
				    .process = cupti.pid,
				    .thread = client_thread(),
				    .correlation = call->correlation};
	struct slot slot = {.bytes = sizeof(record), .stamped_ns = call->end_ns};

	call_back(call, 1);
	if (!call->recorded)
		return;
	lock_state();
	call->recorded = put(&record, &slot);
	unlock_state();
}

static void fill_kernel(void *bytes, const struct fake_work *work)
{
	struct kernel_record *record = bytes;

	record->kind = KIND_KERNEL;
	record->registers = 32;
	record->completed = 0;
	record->device = work->device;
	record->context = work->device + 1;
	record->stream = work->stream;
	for (int i = 0; i < 3; i++) {
		record->grid[i] = 1 + i;
		record->block[i] = 128 >> i;
	}
	record->static_shared = 1024;
	record->dynamic_shared = 2048;
	record->correlation = work->correlation;
	record->name = work->name;
	record->graph_node = work->graph_node;
	record->graph = work->graph;
}

static void fill_copy(void *bytes, const struct fake_work *work)
{
	struct copy_record *record = bytes;

	record->kind = KIND_MEMCPY;
	record->copy_kind = (uint8_t)work->copy_kind;
	record->source = (uint8_t)work->source_memory;
	record->target = (uint8_t)work->target_memory;
	record->bytes = work->bytes;
	record->device = work->device;
	record->context = work->device + 1;
	record->stream = work->stream;
	record->correlation = work->correlation;
	record->graph_node = work->graph_node;
	record->graph = work->graph;
}

static void fill_peer(void *bytes, const struct fake_work *work)
{
	struct peer_record *record = bytes;

	record->kind = KIND_PEER_COPY;
	record->copy_kind = 10;
	record->source = record->target = 3;
	record->bytes = work->bytes;
	record->device = record->source_device = work->device;
	record->context = record->source_context = work->device + 1;
	record->target_device = work->peer;
	record->target_context = work->peer + 1;
	record->stream = work->stream;
	record->correlation = work->correlation;
	record->graph_node = work->graph_node;
	record->graph = work->graph;
}

static void fill_set(void *bytes, const struct fake_work *work)
{
	struct set_record *record = bytes;

	record->kind = KIND_MEMSET;
	record->value = 0;
	record->bytes = work->bytes;
	record->device = work->device;
	record->context = work->device + 1;
	record->stream = work->stream;
	record->correlation = work->correlation;
	record->memory = 3;
	record->graph_node = work->graph_node;
	record->graph = work->graph;
}

static bool is_nth(uint64_t every)
{
	return every && cupti.works % every == 0;
}

static bool is_pool_full(void)
{
	return cupti.config.device_kernels &&
	       ++cupti.pooled > cupti.config.device_kernels * cupti.pool_limit;
}

/* The lock is held. */
static uint32_t put_work(struct fake_work *work, uint32_t kind)
{
	static void (*const fill[])(void *, const struct fake_work *) = {
		[KIND_KERNEL] = fill_kernel,
		[KIND_MEMCPY] = fill_copy,
		[KIND_PEER_COPY] = fill_peer,
		[KIND_MEMSET] = fill_set,
	};
	struct slot slot = {.bytes = (uint16_t)record_bytes(kind),
			    .fate = FAKE_TRACED,
			    .start_ns = work->start_ns,
			    .end_ns = work->end_ns};
	uint8_t record[RECORD_BYTES] __attribute__((aligned(8)));
	struct fake_work shown = *work;

	cupti.works++;
	if (is_nth(cupti.config.drop_every)) {
		cupti.dropped++;
		return FAKE_DROPPED;
	}
	if (kind == KIND_KERNEL && (is_nth(cupti.config.zero_every) || is_pool_full()))
		slot.fate = FAKE_ZERO;
	memset(record, POISON, sizeof(record));
	memset(record + START_OFFSET, 0, 16);
	if (work->graph && cupti.subscriptions > 1)
		shown.correlation += (uint32_t)cupti.config.graph_shift;
	fill[kind](record, &shown);
	if (!put(record, &slot)) {
		cupti.dropped++;
		return FAKE_DROPPED;
	}
	return kind == KIND_KERNEL && has_zero_bug() ? FAKE_ZERO : slot.fate;
}

static void trace_work(struct fake_work *work)
{
	uint32_t kind = work->kind == FAKE_KERNEL   ? KIND_KERNEL
			: work->kind == FAKE_MEMSET ? KIND_MEMSET
			: work->copy_kind == 10	    ? KIND_PEER_COPY
						    : KIND_MEMCPY;
	bool wanted;

	lock_state();
	/* Copies between devices are enabled together with the other copies. */
	wanted = cupti.kinds[kind == KIND_PEER_COPY ? KIND_MEMCPY : kind];
	if (wanted)
		work->fate = put_work(work, kind);
	unlock_state();
}

static void trace_sync(const struct fake_call *call, uint32_t type, uint32_t stream)
{
	uint8_t bytes[RECORD_BYTES] __attribute__((aligned(8)));
	struct sync_record *record = (struct sync_record *)bytes;
	struct slot slot = {.bytes = (uint16_t)record_bytes(KIND_SYNC)};

	memset(bytes, POISON, sizeof(bytes));
	*record = (struct sync_record){.kind = KIND_SYNC,
				       .type = type,
				       .start = to_client_clock(call->start_ns),
				       .end = to_client_clock(call->end_ns),
				       .correlation = call->correlation,
				       .context = 1,
				       .stream = stream};
	lock_state();
	if (cupti.kinds[KIND_SYNC])
		put(record, &slot);
	unlock_state();
}

static void trace_full(const struct fake_call *call, uint64_t start_ns, uint64_t end_ns)
{
	lock_state();
	put_overhead(OVERHEAD_FULL, call->correlation, start_ns, end_ns);
	unlock_state();
}

static const struct fake_tracer tracer = {.now = trace_now,
					  .hold = trace_hold,
					  .begin = trace_begin,
					  .end = trace_end,
					  .work = trace_work,
					  .sync = trace_sync,
					  .full = trace_full};

#endif

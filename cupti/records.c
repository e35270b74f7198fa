/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "records.h"

#include <string.h>

/* Number of bytes of a record that we read. A shorter record is of an unknown version. */
#define PREFIX(type, last) (offsetof(struct type, last) + sizeof(((const struct type *)NULL)->last))

static uint32_t prefix_of(uint32_t kind)
{
	switch (kind) {
	case CUPTI_KIND_CONCURRENT_KERNEL:
		return PREFIX(cupti_kernel, graph);
	case CUPTI_KIND_MEMCPY:
		return PREFIX(cupti_memcpy, graph);
	case CUPTI_KIND_MEMCPY2:
		return PREFIX(cupti_memcpy2, graph);
	case CUPTI_KIND_MEMSET:
		return PREFIX(cupti_memset, graph);
	case CUPTI_KIND_DRIVER:
	case CUPTI_KIND_RUNTIME:
		return PREFIX(cupti_api, result);
	case CUPTI_KIND_SYNCHRONIZATION:
		return PREFIX(cupti_synchronization, event);
	case CUPTI_KIND_OVERHEAD:
		return PREFIX(cupti_overhead, end);
	default:
		return 0;
	}
}

/*
 * A record that was flushed by force has no end yet, and counts as not measured, like one without
 * times.
 */
static void set_times(__u64 *start_to, __u64 *end_to, uint64_t start, uint64_t end)
{
	bool measured = start && end >= start;

	*start_to = measured ? start : 0;
	*end_to = measured ? end : 0;
}

static void put(struct record_writer *writer, void *frame, size_t size, enum fbt_event_type type)
{
	struct fbt_header *header = frame;

	header->type = (uint16_t)type;
	header->size = (uint32_t)size;
	if (shim_ring__put(writer->ring, header, SHIM_FRAME_RECORD))
		writer->counts.records++;
	else
		writer->counts.lost++;
}

/* The id of a name, 0 for no name. Sends the name before its first use. */
static uint32_t tell_name(struct record_writer *writer, const char *text,
			  enum fbt_gpu_name_kind kind)
{
	struct fbt_gpu_name name = {.kind = kind};

	name.id = name_table__intern(writer->names, text);
	if (!name.id || name_table__is_sent(writer->names, name.id))
		return name.id;
	text = name_table__text(writer->names, name.id);
	if (!shim_ring__put_strings(writer->ring, &name, sizeof(name), FBT_EVENT_GPU_NAME,
				    SHIM_FRAME_RECORD, &text, 1))
		return 0;
	name_table__set_sent(writer->names, name.id);
	return name.id;
}

/* The fields that all records of work have, at different offsets. */
#define WORK_FIELDS(from)                                                                          \
	.device = (from)->device, .context = (from)->context, .stream = (from)->stream,            \
	.correlation = (from)->correlation, .graph_node = (from)->graph_node,                      \
	.graph = (from)->graph

static void put_work(struct record_writer *writer, struct fbt_gpu_work *work, uint64_t start,
		     uint64_t end)
{
	set_times(&work->start_ns, &work->end_ns, start, end);
	put(writer, work, sizeof(*work), FBT_EVENT_GPU_WORK);
}

static void put_kernel(struct record_writer *writer, const struct cupti_kernel *from)
{
	struct fbt_gpu_work work = {
		.kind = FBT_GPU_KERNEL,
		WORK_FIELDS(from),
		.name = tell_name(writer, from->name, FBT_GPU_NAME_KERNEL),
		.kernel = {.static_shared = (uint32_t)from->static_shared,
			   .dynamic_shared = (uint32_t)from->dynamic_shared,
			   .registers = from->registers},
	};

	for (int i = 0; i < 3; i++) {
		work.kernel.grid[i] = (uint32_t)from->grid[i];
		work.kernel.block[i] = (uint32_t)from->block[i];
	}
	put_work(writer, &work, from->start, from->end);
	writer->counts.kernels++;
	writer->counts.untimed += !work.start_ns;
}

static uint8_t memory_kind(uint32_t kind)
{
	return kind <= FBT_GPU_MEMORY_MANAGED_STATIC ? (uint8_t)kind : FBT_GPU_MEMORY_UNKNOWN;
}

static void put_memcpy(struct record_writer *writer, const struct cupti_memcpy *from)
{
	struct fbt_gpu_work work = {
		.kind = FBT_GPU_MEMCPY,
		WORK_FIELDS(from),
		.copy = {.bytes = from->bytes,
			 .kind = from->copy_kind < FBT_GPU_COPY_KIND_COUNT ? from->copy_kind
									   : FBT_GPU_COPY_UNKNOWN,
			 .source_device = from->device,
			 .target_device = from->device,
			 .source_memory = memory_kind(from->source_memory),
			 .target_memory = memory_kind(from->target_memory)},
	};

	put_work(writer, &work, from->start, from->end);
}

static void put_memcpy2(struct record_writer *writer, const struct cupti_memcpy2 *from)
{
	struct fbt_gpu_work work = {
		.kind = FBT_GPU_MEMCPY,
		WORK_FIELDS(from),
		.copy = {.bytes = from->bytes,
			 .kind = FBT_GPU_COPY_P2P,
			 .source_device = from->source_device,
			 .target_device = from->target_device,
			 .source_memory = memory_kind(from->source_memory),
			 .target_memory = memory_kind(from->target_memory)},
	};

	put_work(writer, &work, from->start, from->end);
}

static void put_memset(struct record_writer *writer, const struct cupti_memset *from)
{
	struct fbt_gpu_work work = {
		.kind = FBT_GPU_MEMSET,
		WORK_FIELDS(from),
		.copy = {.bytes = from->bytes,
			 .value = from->value,
			 .source_device = from->device,
			 .target_device = from->device,
			 .target_memory = memory_kind(from->memory)},
	};

	put_work(writer, &work, from->start, from->end);
}

static void put_api(struct record_writer *writer, const struct cupti_api *from)
{
	const struct api_call *call = api_table__find(writer->apis, from->kind, from->cbid);
	struct fbt_gpu_api api = {
		.tid = from->thread,
		.correlation = from->correlation,
		.cbid = from->cbid,
		.result = from->result,
	};

	/* Some versions record all calls or none: skip those that we did not ask for. */
	if (!call) {
		writer->counts.canaries +=
			from->kind == CUPTI_KIND_DRIVER && from->cbid == writer->apis->canary;
		return;
	}
	api.header.flags = call->flags;
	api.api_class = call->class;
	api.name = tell_name(writer, call->name, FBT_GPU_NAME_API);
	set_times(&api.start_ns, &api.end_ns, from->start, from->end);
	put(writer, &api, sizeof(api), FBT_EVENT_GPU_API);
}

static void put_sync(struct record_writer *writer, const struct cupti_synchronization *from)
{
	struct fbt_gpu_sync sync = {
		.kind = from->type < FBT_GPU_SYNC_KIND_COUNT ? from->type : FBT_GPU_SYNC_UNKNOWN,
		.correlation = from->correlation,
		.context = from->context,
		.stream = from->stream,
		.event = from->event,
	};

	set_times(&sync.start_ns, &sync.end_ns, from->start, from->end);
	put(writer, &sync, sizeof(sync), FBT_EVENT_GPU_SYNC);
}

static void put_overhead(struct record_writer *writer, const struct cupti_overhead *from)
{
	bool has_correlation =
		writer->strides[CUPTI_KIND_OVERHEAD] >= PREFIX(cupti_overhead, correlation);
	bool has_thread = writer->overhead_threads && from->object_kind == CUPTI_OBJECT_THREAD;
	struct fbt_gpu_overhead overhead = {
		.tid = has_thread ? from->object[1] : 0,
		.kind = from->overhead_kind,
		.correlation = has_correlation ? from->correlation : 0,
	};

	set_times(&overhead.start_ns, &overhead.end_ns, from->start, from->end);
	put(writer, &overhead, sizeof(overhead), FBT_EVENT_GPU_OVERHEAD);
}

static uint32_t kind_of(const void *record)
{
	uint32_t kind;

	memcpy(&kind, record, sizeof(kind));
	return kind;
}

void record_writer__put(struct record_writer *writer, const void *record)
{
	uint32_t kind = kind_of(record);
	uint32_t prefix = prefix_of(kind);

	/* Stride 0: the library does not tell, so the known layout is assumed. */
	if (!prefix || (writer->strides[kind] && writer->strides[kind] < prefix)) {
		writer->counts.unknown++;
		return;
	}
	switch (kind) {
	case CUPTI_KIND_CONCURRENT_KERNEL:
		put_kernel(writer, record);
		break;
	case CUPTI_KIND_MEMCPY:
		put_memcpy(writer, record);
		break;
	case CUPTI_KIND_MEMCPY2:
		put_memcpy2(writer, record);
		break;
	case CUPTI_KIND_MEMSET:
		put_memset(writer, record);
		break;
	case CUPTI_KIND_SYNCHRONIZATION:
		put_sync(writer, record);
		break;
	case CUPTI_KIND_OVERHEAD:
		put_overhead(writer, record);
		break;
	default:
		put_api(writer, record);
	}
}

uint64_t record_host_time(const void *record)
{
	uint32_t kind = kind_of(record);

	if (kind != CUPTI_KIND_DRIVER && kind != CUPTI_KIND_RUNTIME)
		return 0;
	return ((const struct cupti_api *)record)->start;
}

void *record_owned_data(const void *record, uint32_t stride)
{
	const struct cupti_overhead *overhead = record;

	if (kind_of(record) != CUPTI_KIND_OVERHEAD || stride < PREFIX(cupti_overhead, data))
		return NULL;
	/* Only this kind owns memory; the field is undefined in others. */
	return overhead->overhead_kind == FBT_GPU_OVERHEAD_COMMAND_BUFFER_FULL ? overhead->data
									       : NULL;
}

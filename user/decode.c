/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "decode.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "fbt_gpu.h"

/* What is fixed about a type. */
struct layout {
	uint32_t bytes;	  /* of its struct */
	uint32_t strings; /* that must follow it */
	uint32_t tgid;	  /* where the process it is of stands; 0: it is of none */
};

static const struct layout layouts[] = {
	[FBT_EVENT_WINDOW] = {sizeof(struct fbt_window), 4, 0},
	[FBT_EVENT_TARGET] = {sizeof(struct fbt_target), 3, offsetof(struct fbt_target, tgid)},
	[FBT_EVENT_THREAD] = {sizeof(struct fbt_thread_name), 0,
			      offsetof(struct fbt_thread_name, tgid)},
	[FBT_EVENT_KIND] = {sizeof(struct fbt_kind), 2, 0},
	[FBT_EVENT_STEP] = {sizeof(struct fbt_step), 0, offsetof(struct fbt_step, tgid)},
	[FBT_EVENT_CALL] = {sizeof(struct fbt_call), 0, offsetof(struct fbt_call, tgid)},
	[FBT_EVENT_TABLE] = {sizeof(struct fbt_table), 0, offsetof(struct fbt_table, tgid)},
	[FBT_EVENT_LOST] = {sizeof(struct fbt_lost), 0, 0},
	[FBT_EVENT_COST] = {sizeof(struct fbt_cost), 0, 0},
	[FBT_EVENT_TARGET_EXIT] = {sizeof(struct fbt_target_exit), 0,
				   offsetof(struct fbt_target_exit, tgid)},
	[FBT_EVENT_WINDOW_END] = {sizeof(struct fbt_window_end), 0, 0},
	[FBT_EVENT_FILE] = {sizeof(struct fbt_file), 1, offsetof(struct fbt_file, tgid)},
	[FBT_EVENT_MANUAL] = {sizeof(struct fbt_manual), 0, 0},
	[FBT_EVENT_GPU_STATE] = {sizeof(struct fbt_gpu_state), 2,
				 offsetof(struct fbt_gpu_state, tgid)},
	[FBT_EVENT_GPU_NAME] = {sizeof(struct fbt_gpu_name), 1,
				offsetof(struct fbt_gpu_name, tgid)},
	[FBT_EVENT_GPU_DEVICE] = {sizeof(struct fbt_gpu_device), 1,
				  offsetof(struct fbt_gpu_device, tgid)},
	[FBT_EVENT_GPU_WORK] = {sizeof(struct fbt_gpu_work), 0,
				offsetof(struct fbt_gpu_work, tgid)},
	[FBT_EVENT_GPU_API] = {sizeof(struct fbt_gpu_api), 0, offsetof(struct fbt_gpu_api, tgid)},
	[FBT_EVENT_GPU_SYNC] = {sizeof(struct fbt_gpu_sync), 0,
				offsetof(struct fbt_gpu_sync, tgid)},
	[FBT_EVENT_GPU_OVERHEAD] = {sizeof(struct fbt_gpu_overhead), 0,
				    offsetof(struct fbt_gpu_overhead, tgid)},
	[FBT_EVENT_GPU_FLUSH] = {sizeof(struct fbt_gpu_flush), 0,
				 offsetof(struct fbt_gpu_flush, tgid)},
	[FBT_EVENT_GPU_CLOCK] = {sizeof(struct fbt_gpu_clock), 0,
				 offsetof(struct fbt_gpu_clock, tgid)},
	[FBT_EVENT_SAMPLING] = {sizeof(struct fbt_sampling), 0, 0},
};

static const struct layout *find_layout(uint32_t type)
{
	if (type >= sizeof(layouts) / sizeof(layouts[0]) || !layouts[type].bytes)
		return NULL;
	return &layouts[type];
}

static bool is_window_sound(const struct fbt_window *window)
{
	if (window->detail > FBT_DETAIL_ALL)
		return false;
	return window->arch == FBT_ARCH_X86_64 || window->arch == FBT_ARCH_ARM64;
}

static bool is_kind_sound(const struct fbt_kind *kind)
{
	return kind->kind < FBT_KIND_COUNT && kind->source <= FBT_SOURCE_INTERVAL &&
	       kind->arg_count <= FBT_ARG_COUNT;
}

static bool is_step_sound(const struct fbt_step *step)
{
	return step->kind < FBT_KIND_COUNT && step->end <= FBT_END_EXITED &&
	       step->end_ns >= step->start_ns && step->arg_mask < 1u << FBT_ARG_COUNT;
}

/* The time of return is computed in several places: it must exist. */
static bool is_call_sound(const struct fbt_call *call)
{
	return call->start_ns + call->duration_ns >= call->start_ns;
}

/* Intervals have no probes. */
static bool is_sampling_sound(const struct fbt_sampling *sampling)
{
	return sampling->kind && sampling->kind < FBT_KIND_COUNT;
}

static bool is_thread_sound(const struct fbt_thread_name *thread)
{
	return memchr(thread->comm, '\0', sizeof(thread->comm)) != NULL;
}

static bool is_gpu_state_sound(const struct fbt_gpu_state *state)
{
	return state->status < FBT_GPU_STATUS_COUNT &&
	       state->clock_method < FBT_GPU_CLOCK_METHOD_COUNT;
}

static bool is_gpu_name_sound(const struct fbt_gpu_name *name)
{
	return name->id && name->id <= FBT_GPU_NAMES_MAX && name->kind < FBT_GPU_NAME_KIND_COUNT;
}

/* Without an end it was not measured: then it has no start either. */
static bool is_gpu_work_sound(const struct fbt_gpu_work *work)
{
	return work->kind < FBT_GPU_WORK_KIND_COUNT && work->end_ns >= work->start_ns &&
	       (work->kind == FBT_GPU_KERNEL || work->copy.kind < FBT_GPU_COPY_KIND_COUNT);
}

static bool is_gpu_api_sound(const struct fbt_gpu_api *api)
{
	return api->api_class < FBT_GPU_API_CLASS_COUNT && api->end_ns >= api->start_ns;
}

static bool is_gpu_sync_sound(const struct fbt_gpu_sync *sync)
{
	return sync->kind < FBT_GPU_SYNC_KIND_COUNT && sync->end_ns >= sync->start_ns;
}

static bool are_gpu_fields_sound(const struct fbt_header *event)
{
	const struct fbt_gpu_overhead *overhead = (const struct fbt_gpu_overhead *)event;

	switch (event->type) {
	case FBT_EVENT_GPU_STATE:
		return is_gpu_state_sound((const struct fbt_gpu_state *)event);
	case FBT_EVENT_GPU_NAME:
		return is_gpu_name_sound((const struct fbt_gpu_name *)event);
	case FBT_EVENT_GPU_WORK:
		return is_gpu_work_sound((const struct fbt_gpu_work *)event);
	case FBT_EVENT_GPU_API:
		return is_gpu_api_sound((const struct fbt_gpu_api *)event);
	case FBT_EVENT_GPU_SYNC:
		return is_gpu_sync_sound((const struct fbt_gpu_sync *)event);
	case FBT_EVENT_GPU_OVERHEAD:
		return overhead->end_ns >= overhead->start_ns;
	case FBT_EVENT_GPU_CLOCK:
		return ((const struct fbt_gpu_clock *)event)->method < FBT_GPU_CLOCK_METHOD_COUNT;
	default:
		return true;
	}
}

static bool are_fields_sound(const struct fbt_header *event)
{
	switch (event->type) {
	case FBT_EVENT_WINDOW:
		return is_window_sound((const struct fbt_window *)event);
	case FBT_EVENT_KIND:
		return is_kind_sound((const struct fbt_kind *)event);
	case FBT_EVENT_STEP:
		return is_step_sound((const struct fbt_step *)event);
	case FBT_EVENT_CALL:
		return is_call_sound((const struct fbt_call *)event);
	case FBT_EVENT_THREAD:
		return is_thread_sound((const struct fbt_thread_name *)event);
	case FBT_EVENT_TABLE:
		return ((const struct fbt_table *)event)->nr < FBT_NR_COUNT;
	case FBT_EVENT_FILE:
		return ((const struct fbt_file *)event)->id != 0;
	case FBT_EVENT_SAMPLING:
		return is_sampling_sound((const struct fbt_sampling *)event);
	default:
		return are_gpu_fields_sound(event);
	}
}

/* Only of a record whose fields are sound: the number may depend on one of them. */
static uint32_t count_strings(const struct fbt_header *event, const struct layout *layout)
{
	if (event->type == FBT_EVENT_KIND)
		return layout->strings + ((const struct fbt_kind *)event)->arg_count;
	return layout->strings;
}

/* Exactly count strings, then zero bytes up to the next multiple of 8 and nothing more. */
static bool are_strings_sound(const struct fbt_header *event, const struct layout *layout)
{
	const char *position = (const char *)event + layout->bytes;
	const char *end = (const char *)event + event->size;
	uint32_t count = count_strings(event, layout);
	const char *nul;

	for (uint32_t i = 0; i < count; i++) {
		nul = memchr(position, '\0', end - position);
		if (!nul)
			return false;
		position = nul + 1;
	}
	if (end - position >= 8)
		return false;
	for (; position < end; position++) {
		if (*position)
			return false;
	}
	return true;
}

long decode_event(const void *data, size_t size, const struct fbt_header **event)
{
	const struct fbt_header *header = data;
	const struct layout *layout = NULL;

	*event = NULL;
	if (size < sizeof(*header))
		return -EAGAIN;
	if (header->size < sizeof(*header) || header->size % 8 || header->size > DECODE_RECORD_MAX)
		return -EBADMSG;
	if (header->size > size)
		return -EAGAIN;

	*event = header;
	layout = find_layout(header->type);
	if (!layout)
		return -EOPNOTSUPP;
	if (header->size < layout->bytes || !are_fields_sound(header) ||
	    !are_strings_sound(header, layout))
		return -EBADMSG;
	return header->size;
}

uint32_t decode_tgid(const struct fbt_header *event)
{
	const struct layout *layout = find_layout(event->type);

	if (!layout || !layout->tgid)
		return 0;
	return *(const uint32_t *)((const char *)event + layout->tgid);
}

const char *decode_string(const struct fbt_header *event, unsigned int index)
{
	const struct layout *layout = find_layout(event->type);
	const char *string;

	if (!layout || index >= count_strings(event, layout))
		return NULL;
	string = (const char *)event + layout->bytes;
	while (index--)
		string += strlen(string) + 1;
	return string;
}

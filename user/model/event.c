/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/event.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/version.h"
#include "base/ways.h"
#include "fbt_gpu.h"

/* Longer strings are cut off. */
#define STRING_MAX 4096

/* What all records of a type have in common. */
struct layout {
	uint32_t bytes;	  /* size of its struct */
	uint32_t strings; /* minimum number of strings after the struct */
	uint32_t tgid;	  /* offset of its tgid; 0: the record is about no process */
};

#define LAYOUT(name, strings)                                                                      \
	{                                                                                          \
		sizeof(struct name), strings, 0                                                    \
	}
#define PROCESS_LAYOUT(name, strings)                                                              \
	{                                                                                          \
		sizeof(struct name), strings, offsetof(struct name, tgid)                          \
	}

static const struct layout layouts[] = {
	[FBT_EVENT_WINDOW] = LAYOUT(fbt_window, 4),
	[FBT_EVENT_OPTIONS] = LAYOUT(fbt_options, 0),
	[FBT_EVENT_TARGET] = PROCESS_LAYOUT(fbt_target, 3),
	[FBT_EVENT_THREAD] = PROCESS_LAYOUT(fbt_thread_name, 0),
	[FBT_EVENT_KIND] = LAYOUT(fbt_kind, 2),
	[FBT_EVENT_STEP] = PROCESS_LAYOUT(fbt_step, 0),
	[FBT_EVENT_CALL] = PROCESS_LAYOUT(fbt_call, 0),
	[FBT_EVENT_TABLE] = PROCESS_LAYOUT(fbt_table, 0),
	[FBT_EVENT_LOST] = LAYOUT(fbt_lost, 0),
	[FBT_EVENT_UNSEEN] = LAYOUT(fbt_unseen, 0),
	[FBT_EVENT_COST] = LAYOUT(fbt_cost, 0),
	[FBT_EVENT_TARGET_EXIT] = PROCESS_LAYOUT(fbt_target_exit, 0),
	[FBT_EVENT_WINDOW_END] = LAYOUT(fbt_window_end, 0),
	[FBT_EVENT_FILE] = PROCESS_LAYOUT(fbt_file, 1),
	[FBT_EVENT_MANUAL] = LAYOUT(fbt_manual, 0),
	[FBT_EVENT_CLOCK] = LAYOUT(fbt_clock, 0),
	[FBT_EVENT_GPU_STATE] = PROCESS_LAYOUT(fbt_gpu_state, 2),
	[FBT_EVENT_GPU_NAME] = PROCESS_LAYOUT(fbt_gpu_name, 1),
	[FBT_EVENT_GPU_DEVICE] = PROCESS_LAYOUT(fbt_gpu_device, 1),
	[FBT_EVENT_GPU_WORK] = PROCESS_LAYOUT(fbt_gpu_work, 0),
	[FBT_EVENT_GPU_API] = PROCESS_LAYOUT(fbt_gpu_api, 0),
	[FBT_EVENT_GPU_SYNC] = PROCESS_LAYOUT(fbt_gpu_sync, 0),
	[FBT_EVENT_GPU_OVERHEAD] = PROCESS_LAYOUT(fbt_gpu_overhead, 0),
	[FBT_EVENT_GPU_FLUSH] = PROCESS_LAYOUT(fbt_gpu_flush, 0),
	[FBT_EVENT_GPU_CLOCK] = PROCESS_LAYOUT(fbt_gpu_clock, 0),
	[FBT_EVENT_SAMPLING] = LAYOUT(fbt_sampling, 0),
	[FBT_EVENT_ENDS] = LAYOUT(fbt_ends, 0),
	[FBT_EVENT_TAILS] = LAYOUT(fbt_tails, WAYS_NAMES),
	[FBT_EVENT_PROBES] = LAYOUT(fbt_probes, 0),
	[FBT_EVENT_PYTHON] = PROCESS_LAYOUT(fbt_python, 1),
	[FBT_EVENT_STALLS] = PROCESS_LAYOUT(fbt_stalls, 0),
	[FBT_EVENT_HANG] = PROCESS_LAYOUT(fbt_hang, 0),
	[FBT_EVENT_CODE] = PROCESS_LAYOUT(fbt_code, 3),
	[FBT_EVENT_STACK] = PROCESS_LAYOUT(fbt_stack, 0),
	[FBT_EVENT_STACKS] = LAYOUT(fbt_stacks, 0),
	[FBT_EVENT_GAP] = PROCESS_LAYOUT(fbt_gap, 0),
	[FBT_EVENT_PEER] = PROCESS_LAYOUT(fbt_peer, 0),
	[FBT_EVENT_PEER_LINK] = PROCESS_LAYOUT(fbt_peer_link, 0),
	[FBT_EVENT_LOOK] = PROCESS_LAYOUT(fbt_look, 0),
	[FBT_EVENT_LOOK_THREAD] = PROCESS_LAYOUT(fbt_look_thread, 0),
	[FBT_EVENT_LOOKS] = LAYOUT(fbt_looks, 0),
	[FBT_EVENT_STOP] = PROCESS_LAYOUT(fbt_stop, 0),
	[FBT_EVENT_WAKE] = PROCESS_LAYOUT(fbt_wake, 0),
	[FBT_EVENT_THREAD_USE] = PROCESS_LAYOUT(fbt_thread_use, 0),
	[FBT_EVENT_CPUS] = PROCESS_LAYOUT(fbt_cpus, 0),
	[FBT_EVENT_TAKEN] = PROCESS_LAYOUT(fbt_taken, 0),
	[FBT_EVENT_WOKEN] = PROCESS_LAYOUT(fbt_woken, 0),
	[FBT_EVENT_SAMPLES] = PROCESS_LAYOUT(fbt_samples, 0),
	[FBT_EVENT_EXPLAIN] = LAYOUT(fbt_explained, 0),
	[FBT_EVENT_EXPLAIN_LOST] = LAYOUT(fbt_explain_lost, 0),
	[FBT_EVENT_FAULT_SITES] = PROCESS_LAYOUT(fbt_fault_sites, 0),
	[FBT_EVENT_STOP_SENDER] = PROCESS_LAYOUT(fbt_stop_sender, 0),
};

static const struct layout *find_layout(uint32_t type)
{
	if (type >= sizeof(layouts) / sizeof(layouts[0]) || !layouts[type].bytes)
		return NULL;
	return &layouts[type];
}

static bool is_window_sound(const struct fbt_window *window)
{
	if (window->detail > FBT_DETAIL_PROBES)
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
	return step->kind < FBT_KIND_COUNT && step->end <= FBT_END_RAISED &&
	       step->end_ns >= step->start_ns && step->arg_mask < 1u << FBT_ARG_COUNT;
}

static bool is_run_sound(const struct fbt_call *call)
{
	return call->run.calls && call->run.longest_ns <= call->run.calls_ns &&
	       call->run.calls_ns <= call->duration_ns && call->delay_ns <= call->run.calls_ns &&
	       !(call->header.flags & (FBT_CALL_UNFINISHED | FBT_CALL_ARGS));
}

/* The sum must not overflow, because others compute the time of return without a check. */
static bool is_call_sound(const struct fbt_call *call)
{
	return call->start_ns + call->duration_ns >= call->start_ns &&
	       (!(call->header.flags & FBT_CALL_RUN) || is_run_sound(call));
}

/*
 * The parts must not add up to more than the wait: others add them up without a check. It is not
 * known when a wait of several calls began.
 */
static bool is_wake_sound(const struct fbt_wake *wake)
{
	uint64_t begin_ns = wake->flags & FBT_WAKE_ROW ? 0 : wake->start_ns;
	uint64_t left_ns = wake->wake_ns - begin_ns;
	const uint64_t parts_ns[] = {wake->cpu_ns,     wake->delay_ns,	 wake->call_ns,
				     wake->unknown_ns, wake->stopped_ns, wake->fault_wait_ns,
				     wake->off_ns};

	for (size_t i = 0; i < sizeof(parts_ns) / sizeof(parts_ns[0]); i++) {
		if (parts_ns[i] > left_ns)
			return false;
		left_ns -= parts_ns[i];
	}
	return wake->wake_ns >= wake->start_ns && wake->nr_ns <= wake->call_ns;
}

/* Kind 0 is the fixed interval, which has no probes. */
static bool is_probed_kind(uint32_t kind)
{
	return kind && kind < FBT_KIND_COUNT;
}

static bool is_thread_sound(const struct fbt_thread_name *thread)
{
	return memchr(thread->comm, '\0', sizeof(thread->comm)) != NULL;
}

static bool is_use_sound(const struct fbt_thread_use *use)
{
	return memchr(use->comm, '\0', sizeof(use->comm)) != NULL;
}

static bool is_hang_sound(const struct fbt_hang *hang)
{
	const struct fbt_call *call = &hang->call;

	return is_probed_kind(hang->kind) && hang->step_start_ns <= hang->time_ns &&
	       (!call->header.type || is_call_sound(call));
}

static bool is_stop_sound(const struct fbt_stop *stop)
{
	return stop->reason < FBT_STOP_REASON_COUNT &&
	       memchr(stop->comm, '\0', sizeof(stop->comm)) != NULL;
}

static bool is_sender_sound(const struct fbt_stop_sender *sender)
{
	return sender->origin < FBT_SENDER_ORIGINS &&
	       memchr(sender->comm, '\0', sizeof(sender->comm)) &&
	       memchr(sender->parent_comm, '\0', sizeof(sender->parent_comm));
}

/* The parts are those of the time that it was looked at: others add them up without a check. */
static bool is_peer_sound(const struct fbt_peer *peer)
{
	uint64_t left_ns = peer->time_ns - peer->first_ns;
	const uint64_t parts_ns[] = {peer->cpu_ns, peer->delay_ns, peer->stopped_ns,
				     peer->asleep_ns};

	if (peer->time_ns < peer->first_ns || peer->way >= FBT_PEER_WAY_COUNT ||
	    peer->kind >= FBT_KIND_COUNT || peer->stop_reason >= FBT_STOP_REASON_COUNT)
		return false;
	for (size_t i = 0; i < sizeof(parts_ns) / sizeof(parts_ns[0]); i++) {
		if (parts_ns[i] > left_ns)
			return false;
		left_ns -= parts_ns[i];
	}
	return memchr(peer->comm, '\0', sizeof(peer->comm)) &&
	       memchr(peer->tracer_comm, '\0', sizeof(peer->tracer_comm));
}

static bool is_stack_sound(const struct fbt_stack *stack)
{
	return stack->nr < FBT_NR_COUNT && stack->count && stack->count <= FBT_STACK_FRAMES;
}

static bool is_look_sound(const struct fbt_look_thread *thread)
{
	bool is_group = thread->header.flags & FBT_LOOK_GROUP;

	return thread->nr < FBT_NR_COUNT && thread->doing < FBT_DOING_COUNT && thread->threads &&
	       thread->count <= FBT_STACK_FRAMES && thread->time_ns >= thread->start_ns &&
	       thread->depth < (is_group ? FBT_LOOK_GROUPS : 1 + FBT_LOOK_HOLDERS);
}

/* The parts must not add up to more than the wait: others add them up without a check. */
static bool is_taken_sound(const struct fbt_taken *taken)
{
	uint64_t left_ns = taken->waited_ns, own_ns = taken->own_ns;

	if (taken->count > FBT_TAKERS || taken->idle_ns > left_ns)
		return false;
	left_ns -= taken->idle_ns;
	if (own_ns > left_ns)
		return false;
	left_ns -= own_ns;
	if (taken->other_ns > left_ns)
		return false;
	left_ns -= taken->other_ns;
	for (uint32_t i = 0; i < taken->count; i++) {
		const struct fbt_taker *taker = &taken->takers[i];
		uint64_t *left = taker->tid ? &own_ns : &left_ns;

		if (taker->ns > *left || !memchr(taker->comm, '\0', sizeof(taker->comm)) ||
		    !memchr(taker->cgroup, '\0', sizeof(taker->cgroup)) ||
		    (!taker->tgid && !*taker->cgroup))
			return false;
		*left -= taker->ns;
	}
	return true;
}

static bool is_woken_sound(const struct fbt_woken *woken)
{
	return woken->context < FBT_WOKEN_CONTEXTS && woken->wake_ns >= woken->start_ns &&
	       (woken->nr < FBT_NR_COUNT || woken->nr == FBT_NR_UNKNOWN) &&
	       memchr(woken->comm, '\0', sizeof(woken->comm));
}

/* All of them together are no more than there are: others take differences without a check. */
static bool are_samples_sound(const struct fbt_samples *samples)
{
	uint64_t sum = 0;

	if (samples->count > FBT_SAMPLED_FUNCTIONS)
		return false;
	for (uint32_t i = 0; i < samples->count; i++)
		sum += samples->functions[i].samples;
	return sum <= samples->samples;
}

/* The same. */
static bool are_sites_sound(const struct fbt_fault_sites *sites)
{
	uint64_t sum = 0;

	if (sites->count > FBT_FAULT_SITES)
		return false;
	for (uint32_t i = 0; i < sites->count; i++) {
		const struct fbt_fault_site *site = &sites->sites[i];

		if (site->mapping >= FBT_MAPPING_COUNT || site->majors > site->faults)
			return false;
		sum += site->faults;
	}
	return sum <= sites->faults;
}

static bool is_explained_sound(const struct fbt_explained *explained)
{
	return explained->kind < FBT_EXPLAIN_COUNT && explained->state < FBT_EXPLAIN_STATES;
}

static bool is_python_sound(const struct fbt_python *python)
{
	return python->collector < FBT_COLLECTOR_COUNT && python->gil_end >= python->gil_start &&
	       !(python->flags & ~(__u32)FBT_PYTHON_OFFERED);
}

static bool are_stalls_sound(const struct fbt_stalls *stalls)
{
	return stalls->gc_generation <= FBT_GENERATION_UNKNOWN &&
	       stalls->gc_own_ns <= stalls->gc_ns;
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

/* Work that was not measured has neither start nor end, so the order of the two holds as well. */
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

static bool is_gpu_overhead_sound(const struct fbt_gpu_overhead *overhead)
{
	return overhead->end_ns >= overhead->start_ns;
}

static bool are_gpu_fields_sound(const struct fbt_header *event)
{
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
		return is_gpu_overhead_sound((const struct fbt_gpu_overhead *)event);
	case FBT_EVENT_GPU_CLOCK:
		return ((const struct fbt_gpu_clock *)event)->method < FBT_GPU_CLOCK_METHOD_COUNT;
	default:
		return true;
	}
}

/* What --explain has looked at. */
static bool is_explanation_sound(const struct fbt_header *event)
{
	switch (event->type) {
	case FBT_EVENT_TAKEN:
		return is_taken_sound((const struct fbt_taken *)event);
	case FBT_EVENT_WOKEN:
		return is_woken_sound((const struct fbt_woken *)event);
	case FBT_EVENT_SAMPLES:
		return are_samples_sound((const struct fbt_samples *)event);
	case FBT_EVENT_EXPLAIN:
		return is_explained_sound((const struct fbt_explained *)event);
	default:
		return true;
	}
}

static bool are_fields_sound(const struct fbt_header *event)
{
	switch (event->type) {
	case FBT_EVENT_WINDOW:
		return is_window_sound((const struct fbt_window *)event);
	case FBT_EVENT_OPTIONS:
		return ((const struct fbt_options *)event)->count <= FBT_OPTIONS_MAX;
	case FBT_EVENT_KIND:
		return is_kind_sound((const struct fbt_kind *)event);
	case FBT_EVENT_STEP:
		return is_step_sound((const struct fbt_step *)event);
	case FBT_EVENT_CALL:
		return is_call_sound((const struct fbt_call *)event);
	case FBT_EVENT_THREAD:
		return is_thread_sound((const struct fbt_thread_name *)event);
	case FBT_EVENT_THREAD_USE:
		return is_use_sound((const struct fbt_thread_use *)event);
	case FBT_EVENT_TABLE:
		return ((const struct fbt_table *)event)->nr < FBT_NR_COUNT;
	case FBT_EVENT_FILE:
		return ((const struct fbt_file *)event)->id != 0;
	case FBT_EVENT_WAKE:
		return is_wake_sound((const struct fbt_wake *)event);
	case FBT_EVENT_SAMPLING:
		return is_probed_kind(((const struct fbt_sampling *)event)->kind);
	case FBT_EVENT_ENDS:
		return is_probed_kind(((const struct fbt_ends *)event)->kind);
	case FBT_EVENT_TAILS:
		return is_probed_kind(((const struct fbt_tails *)event)->kind);
	case FBT_EVENT_PROBES:
		return is_probed_kind(((const struct fbt_probes *)event)->kind);
	case FBT_EVENT_HANG:
		return is_hang_sound((const struct fbt_hang *)event);
	case FBT_EVENT_PEER:
		return is_peer_sound((const struct fbt_peer *)event);
	case FBT_EVENT_STOP:
		return is_stop_sound((const struct fbt_stop *)event);
	case FBT_EVENT_FAULT_SITES:
		return are_sites_sound((const struct fbt_fault_sites *)event);
	case FBT_EVENT_STOP_SENDER:
		return is_sender_sound((const struct fbt_stop_sender *)event);
	case FBT_EVENT_CODE:
		return ((const struct fbt_code *)event)->id != 0;
	case FBT_EVENT_STACK:
		return is_stack_sound((const struct fbt_stack *)event);
	case FBT_EVENT_LOOK_THREAD:
		return is_look_sound((const struct fbt_look_thread *)event);
	case FBT_EVENT_PYTHON:
		return is_python_sound((const struct fbt_python *)event);
	case FBT_EVENT_STALLS:
		return are_stalls_sound((const struct fbt_stalls *)event);
	default:
		return are_gpu_fields_sound(event) && is_explanation_sound(event);
	}
}

/* The fields of the record must be checked before, because the number may depend on one of them. */
static uint32_t count_strings(const struct fbt_header *event, const struct layout *layout)
{
	if (event->type == FBT_EVENT_KIND)
		return layout->strings + ((const struct fbt_kind *)event)->arg_count;
	if (event->type == FBT_EVENT_OPTIONS)
		return ((const struct fbt_options *)event)->count;
	return layout->strings;
}

/* Exactly the strings of the type, then zero bytes up to the next multiple of 8. */
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

/* Encoding. */

void record_send(const struct record_output *output, void *record, size_t size,
		 enum fbt_event_type type)
{
	struct fbt_header *header = record;

	header->type = type;
	header->size = size;
	output->emit(output->ctx, record, size);
}

int record_send_strings(const struct record_output *output, void *record, size_t size,
			enum fbt_event_type type, const char *const *strings, size_t count)
{
	size_t total = size;
	char *copy;

	for (size_t i = 0; i < count; i++)
		total += strnlen(strings[i] ? strings[i] : "", STRING_MAX) + 1;
	total = (total + 7) & ~(size_t)7;
	copy = calloc(1, total);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, record, size);
	for (size_t i = 0, at = size; i < count; i++) {
		const char *string = strings[i] ? strings[i] : "";
		size_t length = strnlen(string, STRING_MAX);

		memcpy(copy + at, string, length);
		at += length + 1;
	}
	record_send(output, copy, total, type);
	free(copy);
	return 0;
}

void record_send_manual(const struct record_output *output, uint64_t time_ns)
{
	struct fbt_manual manual = {.time_ns = time_ns};

	record_send(output, &manual, sizeof(manual), FBT_EVENT_MANUAL);
}

int record_send_window(const struct record_output *output, struct fbt_window *window,
		       const char *tag)
{
	struct utsname name;
	const char *strings[] = {tag, tool_version(), name.release, name.nodename};

	if (uname(&name))
		memset(&name, 0, sizeof(name));
	return record_send_strings(output, window, sizeof(*window), FBT_EVENT_WINDOW, strings, 4);
}

int record_send_options(const struct record_output *output, const char *const *texts, size_t count)
{
	struct fbt_options options = {.count = (uint32_t)count};

	return record_send_strings(output, &options, sizeof(options), FBT_EVENT_OPTIONS, texts,
				   count);
}

int record_send_target(const struct record_output *output, uint32_t tgid, uint32_t parent_tgid,
		       uint64_t start_ns, const struct process_text *text)
{
	struct fbt_target target = {.start_ns = start_ns, .tgid = tgid, .parent_tgid = parent_tgid};
	const char *strings[] = {text->comm, text->exe, text->cmdline};

	return record_send_strings(output, &target, sizeof(target), FBT_EVENT_TARGET, strings, 3);
}

void record_send_thread(const struct record_output *output, uint32_t tgid, uint32_t tid,
			const char *comm)
{
	struct fbt_thread_name name = {.tgid = tgid, .tid = tid};

	memcpy(name.comm, comm, strnlen(comm, sizeof(name.comm) - 1));
	record_send(output, &name, sizeof(name), FBT_EVENT_THREAD);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "output/slice.h"

#include <linux/futex.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/format.h"
#include "judge/look.h"
#include "judge/stopper.h"
#include "model/gpu.h"
#include "model/syscalls.h"
#include "output/explained.h"

/*
 * The name of an error. libc has no names for the results of calls that the kernel restarts, which
 * a tracepoint sees.
 */
static const char *errno_name(int64_t ret)
{
	switch (ret) {
	case -512:
		return "ERESTARTSYS";
	case -513:
		return "ERESTARTNOINTR";
	case -514:
		return "ERESTARTNOHAND";
	case -516:
		return "ERESTART_RESTARTBLOCK";
	}
	return ret < 0 && ret >= -4095 ? strerrorname_np((int)-ret) : NULL;
}

static void add_result(struct call_args *args, const struct fbt_call *call)
{
	const char *error = errno_name(call->ret);

	if (call->header.flags & FBT_CALL_UNFINISHED) {
		json_fields_bool(&args->fields, "truncated", true);
		return;
	}
	json_fields_int(&args->fields, "ret", call->ret);
	if (error)
		json_fields_string(&args->fields, "errno", error);
}

static void add_file(struct call_args *args, const struct window *window,
		     const struct fbt_call *call)
{
	const struct file *file = window__file(window, call->file);

	if (!file)
		return;
	json_fields_int(&args->fields, "fd", file->record.fd);
	if (*file->path)
		json_fields_string(&args->fields, "path", file->path);
}

static void add_futex(struct call_args *args, const struct fbt_call *call)
{
	static const char *const names[] = {
		[FUTEX_WAIT] = "wait",
		[FUTEX_WAKE] = "wake",
		[FUTEX_FD] = "fd",
		[FUTEX_REQUEUE] = "requeue",
		[FUTEX_CMP_REQUEUE] = "cmp_requeue",
		[FUTEX_WAKE_OP] = "wake_op",
		[FUTEX_LOCK_PI] = "lock_pi",
		[FUTEX_UNLOCK_PI] = "unlock_pi",
		[FUTEX_TRYLOCK_PI] = "trylock_pi",
		[FUTEX_WAIT_BITSET] = "wait_bitset",
		[FUTEX_WAKE_BITSET] = "wake_bitset",
		[FUTEX_WAIT_REQUEUE_PI] = "wait_requeue_pi",
		[FUTEX_CMP_REQUEUE_PI] = "cmp_requeue_pi",
		[13] = "lock_pi2", /* since Linux 5.14 */
	};
	uint32_t operation = (uint32_t)call->args[1] & (uint32_t)FUTEX_CMD_MASK;

	if (operation < sizeof(names) / sizeof(names[0]))
		snprintf(args->operation, sizeof(args->operation), "%s", names[operation]);
	else
		snprintf(args->operation, sizeof(args->operation), "0x%x", operation);
	snprintf(args->address, sizeof(args->address), "0x%llx", (unsigned long long)call->args[0]);
	json_fields_string(&args->fields, "op", args->operation);
	json_fields_string(&args->fields, "uaddr", args->address);
}

static bool has_length(const char *name)
{
	static const char *const names[] = {"mmap", "munmap", "mremap", "madvise", "mprotect"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

void call_args_fill(struct call_args *args, const struct window *window,
		    const struct fbt_call *call)
{
	const char *name = syscall_name((enum fbt_arch)window->record.arch, call->nr);

	args->fields.count = 0;
	if (call->header.flags & FBT_CALL_RUN) {
		json_fields_uint(&args->fields, "calls", call->run.calls);
		json_fields_uint(&args->fields, "calls_us", call->run.calls_ns / NS_PER_US);
		json_fields_uint(&args->fields, "longest_us", call->run.longest_ns / NS_PER_US);
	}
	add_result(args, call);
	if (call->header.flags & FBT_CALL_RUN)
		add_file(args, window, call);
	if (!(call->header.flags & FBT_CALL_ARGS))
		return;
	if (call->header.flags & FBT_CALL_BLOCKED)
		json_fields_bool(&args->fields, "blocked", true);
	add_file(args, window, call);
	if (!name)
		return;
	if (!strcmp(name, "ioctl")) {
		/* The kernel uses the low 32 bits. */
		snprintf(args->command, sizeof(args->command), "0x%x", (uint32_t)call->args[1]);
		json_fields_string(&args->fields, "cmd", args->command);
		if (driver_call_name(window__file(window, call->file), call->args[1], args->driver))
			json_fields_string(&args->fields, "driver", args->driver);
	} else if (!strcmp(name, "futex")) {
		add_futex(args, call);
	} else if (has_length(name)) {
		json_fields_uint(&args->fields, "bytes", call->args[1]);
	}
}

static void add_step_args(struct step_args *args, const struct window *window,
			  const struct fbt_step *record)
{
	if (record->kind >= FBT_KIND_COUNT)
		return;
	for (uint32_t i = 0; i < FBT_ARG_COUNT; i++) {
		const char *name = window->kinds[record->kind].arg_names[i];
		char *key = args->keys[i];

		if (!name || !(record->arg_mask & (1u << i)))
			continue;
		snprintf(key, STEP_ARG_KEY_SIZE, "%s", name);
		if (json_fields_int(&args->fields, key, record->args[i]))
			continue;
		snprintf(key, STEP_ARG_KEY_SIZE, "arg%u.%s", i, name);
		json_fields_int(&args->fields, key, record->args[i]);
	}
}

/* The members of ferrum's schema about the calls of a step. */
static void add_calls(struct json_fields *fields, const struct step *step)
{
	static const char *const category_keys[FBT_CATEGORY_COUNT] = {
		"mmap_us", "futex_us", "ioctl_us", "read_us", "write_us", "other_us",
	};
	struct breakdown breakdown;

	step_breakdown(step, &breakdown);
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		json_fields_uint(fields, category_keys[i], breakdown.category_us[i]);
	json_fields_uint(fields, "compute_us", breakdown_compute_us(&breakdown));
	json_fields_uint(fields, "syscall_us", breakdown_syscall_us(&breakdown));
	json_fields_string(fields, "dominant", breakdown_dominant(&breakdown));
	json_fields_double(fields, "overhead_percent", breakdown_overhead_tenths(&breakdown));
	json_fields_uint(fields, "calls", step_calls(step));
	json_fields_uint(fields, "errors", step_errors(step));
}

/*
 * Where the time went. Parts below a microsecond are left out, and all parts if they were not
 * measured.
 */
static void add_parts(struct json_fields *fields, const struct step *step)
{
	static const char *const keys[STEP_PARTS] = {
		[STEP_OWN] = "own_us",
		[STEP_CPU_WAIT] = "cpu_wait_us",
		[STEP_CALLS + FBT_MMAP] = "mmap_net_us",
		[STEP_CALLS + FBT_FUTEX] = "futex_net_us",
		[STEP_CALLS + FBT_IOCTL] = "ioctl_net_us",
		[STEP_CALLS + FBT_READ] = "read_net_us",
		[STEP_CALLS + FBT_WRITE] = "write_net_us",
		[STEP_CALLS + FBT_OTHER] = "other_net_us",
		[STEP_FAULTS] = "faults_us",
		[STEP_DISK_WAIT] = "disk_wait_us",
		[STEP_STOPPED] = "stopped_us",
		[STEP_OFF_CPU] = "off_cpu_us",
		[STEP_AWAIT] = "await_us",
	};
	static const char *const without_calls[STEP_PARTS] = {
		[STEP_OWN] = "on_cpu_us",      [STEP_CPU_WAIT] = "cpu_wait_us",
		[STEP_STOPPED] = "stopped_us", [STEP_OFF_CPU] = "asleep_us",
		[STEP_AWAIT] = "await_us",
	};
	const char *const *names = step_calls_known(step) ? keys : without_calls;
	struct step_parts parts;

	step_split(step, &parts);
	for (int i = 0; parts.known && i < STEP_PARTS; i++)
		if (names[i] && parts.ns[i] >= NS_PER_US)
			json_fields_uint(fields, names[i], parts.ns[i] / NS_PER_US);
}

/* What CPython did in two of these parts: left out like them. */
static void add_stalls(struct json_fields *fields, const struct step *step)
{
	const struct fbt_stalls *stalls = &step->stalls.record;
	struct step_parts parts;

	step_split(step, &parts);
	if (step_gil_ns(step, &parts) >= NS_PER_US)
		json_fields_uint(fields, "gil_us", step_gil_ns(step, &parts) / NS_PER_US);
	if (!stalls->gc_count && step_gc_ns(step, &parts) < NS_PER_US)
		return;
	json_fields_uint(fields, "gc_us", step_gc_ns(step, &parts) / NS_PER_US);
	json_fields_uint(fields, "gc_collections", stalls->gc_count);
	json_fields_uint(fields, "gc_longest_us", stalls->gc_longest_ns / NS_PER_US);
	if (stalls->gc_generation < FBT_GENERATION_UNKNOWN)
		json_fields_uint(fields, "gc_generation", stalls->gc_generation);
}

/*
 * What other threads did. Times below a microsecond are left out, and times that were not measured.
 */
static void add_others(struct json_fields *fields, const struct fbt_step *record)
{
	const struct {
		const char *key;
		uint64_t ns;
	} times[] = {{"other_threads_cpu_us", record->team_cpu_ns},
		     {"other_threads_cpu_wait_us", record->team_delay_ns},
		     {"other_threads_blocked_us", step_team_blocked_ns(record)}};

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		if (record->header.flags & FBT_STEP_TEAM_TIMED && times[i].ns >= NS_PER_US)
			json_fields_uint(fields, times[i].key, times[i].ns / NS_PER_US);
	}
	if (record->header.flags & FBT_STEP_TEAM_KNOWN && record->starved_ns >= NS_PER_US) {
		json_fields_uint(fields, "starved_us", record->starved_ns / NS_PER_US);
		json_fields_uint(fields, "starved_tid", record->starved_tid);
	}
	if (record->late_ns >= NS_PER_US) {
		json_fields_uint(fields, "late_us", record->late_ns / NS_PER_US);
		json_fields_uint(fields, "late_tid", record->late_tid);
	}
}

static void add_figures(struct json_fields *fields, const struct step *step)
{
	if (step_calls_known(step))
		add_calls(fields, step);
	json_fields_uint(fields, "step", step->number);
	json_fields_uint(fields, "kind_number", step->kind_number);
	if (step->record.polls)
		json_fields_uint(fields, "polls", step->record.polls);
	if (step->record.polls > 1)
		json_fields_uint(fields, "tid", step->record.tid);
}

static void add_gpu(struct json_fields *fields, const struct step_gpu *gpu)
{
	const struct gpu_figures *all = &gpu->all;

	json_fields_uint(fields, "gpu_busy_us", all->busy_ns / NS_PER_US);
	json_fields_uint(fields, "gpu_idle_us", all->idle_ns / NS_PER_US);
	json_fields_uint(fields, "gpu_host_wait_us", all->host_wait_ns / NS_PER_US);
	json_fields_uint(fields, "gpu_launch_us", all->launch_ns / NS_PER_US);
	json_fields_uint(fields, "gpu_queue_us", all->queue_ns / NS_PER_US);
	json_fields_string(fields, "gpu_bound", gpu_bound_name(gpu->bound));
	if (!gpu->complete)
		json_fields_bool(fields, "gpu_complete", false);
}

/* Adds what is unusual, and only then, so that it stands out in a viewer. */
static void add_flaws(struct json_fields *fields, const struct step *step)
{
	if (!(step->record.header.flags & FBT_STEP_NO_GAP))
		json_fields_uint(fields, "gap_us", step->record.gap_ns / NS_PER_US);
	if (step->record.end != FBT_END_RETURN)
		json_fields_string(fields, "end",
				   step_end_name((enum fbt_step_end)step->record.end));
	if (!step->complete)
		json_fields_bool(fields, "complete", false);
	if (step->record.lost_calls)
		json_fields_uint(fields, "lost_calls", step->record.lost_calls);
	if (step->calls_truncated)
		json_fields_bool(fields, "calls_truncated", true);
	if (step->record.header.flags & FBT_STEP_SAMPLED)
		json_fields_bool(fields, "sampled", true);
	if (step_is_profiled(step))
		json_fields_bool(fields, "profiled", true);
	if (!step_calls_known(step))
		json_fields_bool(fields, "calls_traced", false);
}

static void sender_fields_add(struct json_fields *fields, const struct fbt_stop_sender *sender)
{
	if (sender->header.type != FBT_EVENT_STOP_SENDER || !stop_signal_name(sender->number))
		return;
	json_fields_string(fields, "stop_signal", stop_signal_name(sender->number));
	json_fields_string(fields, "stop_origin",
			   sender_origin_name((enum fbt_sender_origin)sender->origin));
	if (sender->sender)
		json_fields_uint(fields, "stop_sender", sender->sender);
	if (*sender->comm)
		json_fields_string(fields, "stop_sender_name", sender->comm);
	if (sender->parent)
		json_fields_uint(fields, "stop_sender_parent", sender->parent);
	if (*sender->parent_comm)
		json_fields_string(fields, "stop_sender_parent_name", sender->parent_comm);
}

void stop_fields_add(struct json_fields *fields, const struct fbt_stop *stop,
		     const struct fbt_stop_sender *sender, uint32_t tid)
{
	if (stop->header.type != FBT_EVENT_STOP)
		return;
	json_fields_string(fields, "stop_reason",
			   stop_reason_name((enum fbt_stop_reason)stop->reason));
	if (stop->tracer)
		json_fields_uint(fields, "stop_tracer", stop->tracer);
	if (*stop->comm)
		json_fields_string(fields, "stop_tracer_name", stop->comm);
	sender_fields_add(fields, sender);
	if (stop->tid != tid)
		json_fields_uint(fields, "stop_tid", stop->tid);
}

static void peer_fields_add(struct json_fields *fields, const struct cause *cause,
			    const struct window *window, char label[24])
{
	const struct fbt_peer *peer = &cause->peer.record;

	if (cause->spin.calls) {
		json_fields_uint(fields, "spun_us", cause->spin.ns / NS_PER_US);
		json_fields_uint(fields, "spun_calls", cause->spin.calls);
	}
	if (peer->header.type != FBT_EVENT_PEER)
		return;
	json_fields_uint(fields, "peer_pid", peer->peer);
	json_fields_uint(fields, "peer_tid", peer->peer_tid);
	if (peer->via)
		json_fields_uint(fields, "peer_via_tid", peer->via);
	json_fields_string(fields, "peer_name", peer->comm);
	json_fields_string(fields, "peer_way", peer_way_name((enum fbt_peer_way)peer->way));
	json_fields_string(fields, "peer_did", peer_did_name(peer_did(peer)));
	json_fields_uint(fields, "peer_did_us", peer_did_ns(peer) / NS_PER_US);
	json_fields_uint(fields, "peer_seen_us", (peer->time_ns - peer->first_ns) / NS_PER_US);
	json_fields_uint(fields, "peer_others", peer->others);
	json_fields_uint(fields, "peer_wait_us", cause->peer_ns / NS_PER_US);
	if (peer->nr != FBT_PEER_NR_UNKNOWN)
		json_fields_string(
			fields, "peer_call",
			syscall_label((enum fbt_arch)window->record.arch, peer->nr, label));
	/* A cause has the stop of a thread of the process, or that of another process. */
	if (peer_did(peer) == PEER_STOPPED)
		sender_fields_add(fields, &cause->peer.sender);
	if (peer->kind)
		json_fields_string(fields, "peer_step", window__kind_name(window, peer->kind));
	if (cause->peer.beyond.header.type == FBT_EVENT_PEER)
		json_fields_uint(fields, "peer_beyond_pid", cause->peer.beyond.peer);
}

void step_args_fill(struct step_args *args, const struct window *window, const struct step *step)
{
	const char *source = window__step_source(window, step->record.kind);
	struct json_fields *fields = &args->fields;

	fields->count = 0;
	add_figures(fields, step);
	add_parts(fields, step);
	add_stalls(fields, step);
	add_others(fields, &step->record);
	if (step->gpu)
		add_gpu(fields, step->gpu);
	add_flaws(fields, step);
	stop_fields_add(fields, &step->stop, &step->stop_sender, step->record.tid);
	if (!strcmp(source, "interval"))
		json_fields_string(fields, "step_source", source);
	add_step_args(args, window, &step->record);
}

uint32_t step_lanes_find(struct step_lanes *lanes, const struct step *step)
{
	const struct fbt_step *record = &step->record;
	uint32_t index = 0;

	if (!record->kind || record->polls < 2)
		return record->kind ? record->tid : 0;
	if (lanes->number == step->number)
		return lanes->lane;
	while (index < FUTURE_LANES_MAX - 1 && lanes->end_ns[index] > record->start_ns)
		index++;
	lanes->end_ns[index] = record->end_ns;
	lanes->number = step->number;
	lanes->lane = FUTURE_LANES + index;
	return lanes->lane;
}

static const char *copy_kind_name(uint32_t kind)
{
	static const char *const names[FBT_GPU_COPY_KIND_COUNT] = {
		"<unknown>", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
		"AtoD",	     "DtoA", "DtoD", "HtoH", "PtoP",
	};

	return kind < FBT_GPU_COPY_KIND_COUNT ? names[kind] : names[FBT_GPU_COPY_UNKNOWN];
}

static const char *memory_kind_name(uint32_t kind)
{
	static const char *const names[] = {
		"Unknown", "Pageable", "Pinned",	"Device",
		"Array",   "Managed",  "Device Static", "Managed Static",
	};

	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "<unknown>";
}

const char *gpu_slice_work_name(const struct gpu_process *process, const struct fbt_gpu_work *work,
				char text[GPU_SLICE_NAME_SIZE])
{
	switch (work->kind) {
	case FBT_GPU_MEMCPY:
		snprintf(text, GPU_SLICE_NAME_SIZE, "Memcpy %s (%s -> %s)",
			 copy_kind_name(work->copy.kind),
			 memory_kind_name(work->copy.source_memory),
			 memory_kind_name(work->copy.target_memory));
		return text;
	case FBT_GPU_MEMSET:
		snprintf(text, GPU_SLICE_NAME_SIZE, "Memset (%s)",
			 memory_kind_name(work->copy.target_memory));
		return text;
	default:
		return process ? gpu_process_kernel_name(process, work->name) : "kernel";
	}
}

const char *gpu_slice_api_name(const struct gpu_process *process, const struct fbt_gpu_api *api)
{
	return process ? gpu_process_api_name(process, api->name) : "cuda call";
}

const char *gpu_slice_sync_name(const struct fbt_gpu_sync *sync)
{
	static const char *const names[FBT_GPU_SYNC_KIND_COUNT] = {
		"Unknown Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync",
	};

	return names[sync->kind < FBT_GPU_SYNC_KIND_COUNT ? sync->kind : FBT_GPU_SYNC_UNKNOWN];
}

const char *gpu_slice_overhead_name(const struct fbt_gpu_overhead *overhead)
{
	static const char *const names[] = {
		"Unknown",
		"Buffer Flush",
		"Instrumentation",
		"Resource",
		"Runtime Triggered Module Loading",
		"Lazy Function Loading",
		"Command Buffer Full",
		"Activity Buffer Request",
		"UVM Activity Init",
	};
	uint32_t kind = overhead->kind >> 16;

	if (overhead->kind == 1)
		return "Driver Compiler";
	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : names[0];
}

uint64_t gpu_slice_api_end_ns(const struct fbt_gpu_api *api, const struct fbt_step *step)
{
	bool is_inside = step && step->kind && step->tgid == api->tgid && step->tid == api->tid &&
			 step->start_ns <= api->start_ns && api->start_ns < step->end_ns;

	return is_inside && api->end_ns > step->end_ns ? step->end_ns : api->end_ns;
}

const char *detail_name(uint32_t detail)
{
	static const char *const names[] = {"steps", "escalated", "all", "probes"};

	return detail <= FBT_DETAIL_PROBES ? names[detail] : NULL;
}

#define TIME(key, member) JSON_MEMBER(key, gpu_figures, member)

const struct json_member gpu_times[GPU_TIMES] = {
	TIME("busy", busy_ns),
	TIME("kernel", kernel_ns),
	TIME("memcpy", memcpy_ns),
	TIME("memcpy_h2d", h2d_ns),
	TIME("memcpy_d2h", d2h_ns),
	TIME("memcpy_d2d", d2d_ns),
	TIME("memcpy_p2p", p2p_ns),
	TIME("memset", memset_ns),
	TIME("transfer", transfer_ns),
	TIME("exposed_copy", exposed_copy_ns),
	TIME("comm", comm_ns),
	TIME("exposed_comm", exposed_comm_ns),
	TIME("work_sum", work_sum_ns),
	TIME("idle", idle_ns),
	TIME("host_wait", host_wait_ns),
	TIME("launch", launch_ns),
	TIME("queue", queue_ns),
	TIME("unattributed", unattributed_ns),
	TIME("kernel_wait", kernel_wait_ns),
	TIME("dependency", dependency_ns),
	TIME("wait_blocked", wait_blocked_ns),
	TIME("wait_syscall", wait_syscall_ns),
	TIME("wait_user", wait_user_ns),
	TIME("wait_unknown", wait_unknown_ns),
	TIME("hta_host_wait", hta_host_wait_ns),
	TIME("tklqt", tklqt_ns),
};

bool gpu_time_needs_calls(const struct json_member *time)
{
	return time->offset == offsetof(struct gpu_figures, wait_blocked_ns) ||
	       time->offset == offsetof(struct gpu_figures, wait_syscall_ns) ||
	       time->offset == offsetof(struct gpu_figures, wait_user_ns);
}

#define WORK(member) JSON_MEMBER(#member, gpu_figures, member)

const struct json_member gpu_work_counts[GPU_WORK_COUNTS] = {
	WORK(kernels),	   WORK(memcpys),   WORK(memsets),   WORK(graph_launches),
	WORK(graph_nodes), WORK(pageable),  WORK(launches),  WORK(h2d_bytes),
	WORK(d2h_bytes),   WORK(d2d_bytes), WORK(p2p_bytes), WORK(memset_bytes)};

#define COUNT(member) JSON_MEMBER(#member, gpu_counts, member)

const struct json_member gpu_window_counts[GPU_WINDOW_COUNTS] = {
	COUNT(kernels),	   COUNT(memcpys),    COUNT(memsets), COUNT(apis),
	COUNT(syncs),	   COUNT(unmeasured), COUNT(joined),  COUNT(unjoined),
	COUNT(violations), COUNT(outside),    COUNT(steps),   COUNT(timeouts)};

#define FLUSH(member) JSON_MEMBER(#member, fbt_gpu_flush, member)

const struct json_member gpu_flush_counts[GPU_FLUSH_COUNTS] = {
	FLUSH(records), FLUSH(cupti_dropped), FLUSH(ring_lost), FLUSH(no_buffer), FLUSH(unknown)};

void escalation_fields_percent(struct json_fields *fields, const char *key, double percent)
{
	/* Above this a double has no decimals. */
	const double whole = 1e15;

	if (!isfinite(percent))
		return;
	if (fabs(percent) < whole)
		percent = round(percent * 100) / 100;
	json_fields_double(fields, key, percent);
}

static void add_unnamed(struct json_fields *to, const char *key, const struct window *window,
			const struct fbt_stack *stack, char text[UNNAMED_SIZE])
{
	frames_list_unnamed(stack, window, text, UNNAMED_SIZE);
	if (*text)
		json_fields_string(to, key, text);
}

/* Who ended the longest wait, and when: not one that is only inferred to have been waited for. */
static void add_waker(struct json_fields *to, const struct window *window,
		      const struct cause *cause)
{
	const char *name = window__thread_name(window, cause->waker.tid);

	if (!cause->waker.after_ns)
		return;
	json_fields_uint(to, "waker_tid", cause->waker.tid);
	if (name && *name)
		json_fields_string(to, "waker_name", name);
	json_fields_uint(to, "waker_after_us", cause->waker.after_ns / NS_PER_US);
}

/* Who was seen to hold the lock; and in words who held that for which this thread waited. */
static void add_holder(struct escalation_fields *fields, const struct window *window,
		       const struct cause *cause)
{
	const struct fbt_look_thread *holder = &cause->holders[0];
	const char *name = window__thread_name(window, holder->owner);
	struct line chain = {fields->holder_chain, sizeof(fields->holder_chain), 0};
	struct json_fields *to = &fields->fields;
	struct look_holders holders;
	struct fbt_stack stack;

	if (!cause->holder_count)
		return;
	json_fields_uint(to, "holder_tid", holder->owner);
	if (name && *name)
		json_fields_string(to, "holder_name", name);
	json_fields_string(to, "holder_in", look_doing_name(holder, window, fields->holder_in));
	json_fields_uint(to, "holder_seen_us", (holder->time_ns - holder->start_ns) / NS_PER_US);
	if (holder->call_ns)
		json_fields_uint(to, "holder_call_us", holder->call_ns / NS_PER_US);
	if (holder->count) {
		look_stack(holder, &stack);
		frames_describe(&stack, window, fields->holder, sizeof(fields->holder));
		json_fields_string(to, "holder_stack", fields->holder);
	}
	if (cause->holders[cause->holder_count - 1].header.flags & FBT_LOOK_CYCLE)
		json_fields_bool(to, "holder_deadlock", true);
	if (cause->holder_count < 2)
		return;
	holders = (struct look_holders){.threads = cause->holders + 1,
					.count = cause->holder_count - 1,
					.peer = &cause->peer};
	look_add_thread(&chain, cause->holders[1].owner, window);
	look_add_holders(&chain, &holders, window);
	json_fields_string(to, "holder_chain", fields->holder_chain);
}

static void add_others_seen(struct escalation_fields *fields, const struct window *window,
			    const struct cause *cause)
{
	if (!cause->other_count)
		return;
	look_describe_others(cause->others, cause->other_count, window, fields->others);
	json_fields_string(&fields->fields, "others_seen", fields->others);
	json_fields_uint(&fields->fields, "others_seen_us",
			 (cause->others[0].time_ns - cause->others[0].start_ns) / NS_PER_US);
}

void escalation_fields_fill(struct escalation_fields *fields, const struct window *window,
			    const struct escalation *escalation)
{
	struct json_fields *to = &fields->fields;

	to->count = 0;
	trace_result_attributes(&escalation->result, &fields->attributes);
	for (int i = 0; i < fields->attributes.count; i++)
		json_fields_string(to, fields->attributes.items[i].key,
				   fields->attributes.items[i].value);
	cause_describe(&escalation->cause, window, fields->evidence, sizeof(fields->evidence));
	json_fields_string(to, "cause", cause_name(escalation->cause.kind));
	json_fields_string(to, "cause_evidence", fields->evidence);
	if (escalation->cause.stack.count) {
		frames_describe(&escalation->cause.stack, window, fields->frames,
				sizeof(fields->frames));
		json_fields_string(to, "cause_stack", fields->frames);
		add_unnamed(to, "cause_stack_unnamed", window, &escalation->cause.stack,
			    fields->frames_unnamed);
	}
	if (escalation->cause.waker_stack.count) {
		frames_describe(&escalation->cause.waker_stack, window, fields->waker,
				sizeof(fields->waker));
		json_fields_string(to, "waker_stack", fields->waker);
		add_unnamed(to, "waker_stack_unnamed", window, &escalation->cause.waker_stack,
			    fields->waker_unnamed);
	}
	add_waker(to, window, &escalation->cause);
	peer_fields_add(to, &escalation->cause, window, fields->peer_call);
	add_holder(fields, window, &escalation->cause);
	add_others_seen(fields, window, &escalation->cause);
	explained_fields_add(to, &escalation->cause, window, &fields->names);
	if (cause_has_stop(&escalation->cause))
		stop_fields_add(to, &escalation->cause.stop, &escalation->cause.stop_sender,
				escalation->cause.step_tid);
	json_fields_string(to, "fired", escalation_fired_text(escalation->fired, fields->fired));
	json_fields_uint(to, "class_steps", escalation->class_steps);
	if (escalation->nearest)
		json_fields_bool(to, "class_nearest", true);
	escalation_fields_percent(to, "cv_percent", escalation->cv_percent);
}

void hang_args_fill(struct hang_args *args, const struct window *window,
		    const struct fbt_hang *hang)
{
	struct json_fields *to = &args->fields;

	to->count = 0;
	hang_describe(hang, window, args->evidence);
	hang_describe_threads(hang, window, args->threads);
	json_fields_string(to, "kind", window__kind_name(window, hang->kind));
	json_fields_string(to, "evidence", args->evidence);
	json_fields_uint(to, "open_us", (hang->time_ns - hang->step_start_ns) / NS_PER_US);
	if (*args->threads)
		json_fields_string(to, "threads", args->threads);
	args->call = NULL;
	if (!hang->call.header.type)
		return;
	args->call = syscall_label((enum fbt_arch)window->record.arch, hang->call.nr, args->label);
	json_fields_string(to, "call", args->call);
	json_fields_uint(to, "call_us", hang->call.duration_ns / NS_PER_US);
}

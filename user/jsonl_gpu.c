/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "jsonl_gpu.h"

#include <math.h>
#include "syscalls.h"

#define NS_PER_US 1000
#define DECIMALS  1e4

static void add_us(struct json_fields *stage_us, const char *key, uint64_t ns)
{
	json_fields_uint(stage_us, key, ns / NS_PER_US);
}

/* A ratio; NaN is not known. */
static void add_ratio(struct json_fields *shape, const char *key, double value)
{
	if (isfinite(value))
		json_fields_double(shape, key, round(value * DECIMALS) / DECIMALS);
}

static void add_ratio_of(struct json_fields *shape, const char *key, double part, double whole)
{
	add_ratio(shape, key, whole > 0 ? part / whole : NAN);
}

static uint64_t since(const struct window *window, uint64_t time_ns)
{
	uint64_t start_ns = window->record.start_ns;

	return time_ns > start_ns ? time_ns - start_ns : 0;
}

static void add_identity(struct json_fields *shape, const struct window *window,
			 const struct step *step, const struct gpu_figures *figures, bool whole)
{
	const struct step_gpu *gpu = step->gpu;
	const struct gpu_process *process = gpu_table_find(&window->gpus, step->record.tgid);
	const struct gpu_device *device = NULL;

	json_fields_uint(shape, "step", step->number);
	json_fields_uint(shape, "pid", step->record.tgid);
	json_fields_uint(shape, "tid", step->record.tid);
	json_fields_string(shape, "kind", window__kind_name(window, step->record.kind));
	json_fields_string(shape, "scope", whole ? "step" : "device");
	json_fields_uint(shape, "devices", gpu->devices.count);
	if (!gpu->devices.count)
		return;
	json_fields_uint(shape, "device", figures->device);
	if (process)
		device = gpu_process_device(process, figures->device);
	if (device && *device->name)
		json_fields_string(shape, "device_name", device->name);
}

static void add_counts(struct json_fields *shape, const struct gpu_figures *figures)
{
	json_fields_uint(shape, "kernels", figures->kernels);
	json_fields_uint(shape, "memcpys", figures->memcpys);
	json_fields_uint(shape, "memsets", figures->memsets);
	json_fields_uint(shape, "graph_launches", figures->graph_launches);
	json_fields_uint(shape, "graph_nodes", figures->graph_nodes);
	json_fields_uint(shape, "pageable", figures->pageable);
	json_fields_uint(shape, "h2d_bytes", figures->h2d_bytes);
	json_fields_uint(shape, "d2h_bytes", figures->d2h_bytes);
	json_fields_uint(shape, "d2d_bytes", figures->d2d_bytes);
	json_fields_uint(shape, "p2p_bytes", figures->p2p_bytes);
	json_fields_uint(shape, "memset_bytes", figures->memset_bytes);
	json_fields_uint(shape, "launches", figures->launches);
	add_ratio_of(shape, "concurrency", (double)figures->work_sum_ns, (double)figures->busy_ns);
	add_ratio(shape, "queue_depth", figures->queue_depth);
	add_ratio(shape, "idle_empty", figures->idle_empty);
	if (!figures->launches)
		return;
	json_fields_uint(shape, "launch_latency_ns", figures->launch_latency_ns);
	json_fields_uint(shape, "launch_api_ns", figures->launch_api_ns);
	json_fields_uint(shape, "queue_delay_ns", figures->queue_delay_ns);
	json_fields_uint(shape, "wait_behind_ns", figures->wait_behind_ns);
	json_fields_uint(shape, "work_ns", figures->work_ns);
}

/* The parts that add up, as they are. */
static void add_identity_ns(struct json_fields *shape, const struct step *step,
			    const struct gpu_figures *figures)
{
	json_fields_uint(shape, "total_ns", step_wall_ns(step));
	json_fields_uint(shape, "busy_ns", figures->busy_ns);
	json_fields_uint(shape, "idle_ns", figures->idle_ns);
	json_fields_uint(shape, "host_wait_ns", figures->host_wait_ns);
	json_fields_uint(shape, "launch_ns", figures->launch_ns);
	json_fields_uint(shape, "queue_ns", figures->queue_ns);
	json_fields_uint(shape, "unattributed_ns", figures->unattributed_ns);
	json_fields_uint(shape, "wait_blocked_ns", figures->wait_blocked_ns);
	json_fields_uint(shape, "wait_syscall_ns", figures->wait_syscall_ns);
	json_fields_uint(shape, "wait_user_ns", figures->wait_user_ns);
	json_fields_uint(shape, "wait_unknown_ns", figures->wait_unknown_ns);
}

/* "wait_blocked_ns.futex": 1100000, of the calls that host_wait_ns was longest in. */
static void add_wait_calls(struct jsonl_gpu *event, const struct window *window,
			   const struct gpu_figures *figures)
{
	char label[24];

	for (int i = 0; i < GPU_WAIT_CALLS_MAX && figures->wait_calls[i].ns; i++) {
		const struct gpu_wait_call *call = &figures->wait_calls[i];

		snprintf(event->wait_keys[i], JSONL_GPU_KEY_SIZE, "wait_%s_ns.%s",
			 call->blocked ? "blocked" : "syscall",
			 syscall_label((enum fbt_arch)window->record.arch, call->nr, label));
		json_fields_uint(&event->shape, event->wait_keys[i], call->ns);
	}
}

static void add_times(struct json_fields *stage_us, const struct step *step,
		      const struct gpu_figures *figures)
{
	add_us(stage_us, "total", step_wall_ns(step));
	add_us(stage_us, "busy", figures->busy_ns);
	add_us(stage_us, "kernel", figures->kernel_ns);
	add_us(stage_us, "memcpy", figures->memcpy_ns);
	add_us(stage_us, "memcpy_h2d", figures->h2d_ns);
	add_us(stage_us, "memcpy_d2h", figures->d2h_ns);
	add_us(stage_us, "memcpy_d2d", figures->d2d_ns);
	add_us(stage_us, "memcpy_p2p", figures->p2p_ns);
	add_us(stage_us, "memset", figures->memset_ns);
	add_us(stage_us, "transfer", figures->transfer_ns);
	add_us(stage_us, "exposed_copy", figures->exposed_copy_ns);
	add_us(stage_us, "comm", figures->comm_ns);
	add_us(stage_us, "exposed_comm", figures->exposed_comm_ns);
	add_us(stage_us, "idle", figures->idle_ns);
	add_us(stage_us, "host_wait", figures->host_wait_ns);
	add_us(stage_us, "launch", figures->launch_ns);
	add_us(stage_us, "queue", figures->queue_ns);
	add_us(stage_us, "unattributed", figures->unattributed_ns);
	add_us(stage_us, "kernel_wait", figures->kernel_wait_ns);
	add_us(stage_us, "dependency", figures->dependency_ns);
	add_us(stage_us, "wait_blocked", figures->wait_blocked_ns);
	add_us(stage_us, "wait_syscall", figures->wait_syscall_ns);
	add_us(stage_us, "wait_user", figures->wait_user_ns);
	add_us(stage_us, "wait_unknown", figures->wait_unknown_ns);
	add_us(stage_us, "hta_host_wait", figures->hta_host_wait_ns);
	add_us(stage_us, "tklqt", figures->tklqt_ns);
}

/* When the work that the step launched ran: it may go on behind the step. */
static void add_view(struct jsonl_gpu *event, const struct window *window,
		     const struct gpu_figures *figures)
{
	if (figures->view_end_ns <= figures->view_start_ns)
		return;
	json_fields_uint(&event->shape, "view_start_us",
			 since(window, figures->view_start_ns) / NS_PER_US);
	json_fields_uint(&event->shape, "view_end_us",
			 since(window, figures->view_end_ns) / NS_PER_US);
	add_us(&event->stage_us, "view", figures->view_end_ns - figures->view_start_ns);
	add_us(&event->stage_us, "view_busy", figures->view_busy_ns);
}

/* What is of the step thread, and of all devices as one. */
static void add_step(struct jsonl_gpu *event, const struct step_gpu *gpu)
{
	struct json_fields *shape = &event->shape, *stage_us = &event->stage_us;

	json_fields_string(shape, "bound", gpu_bound_name(gpu->bound));
	add_ratio(shape, "bound_idle", gpu->bound_idle);
	add_ratio(shape, "bound_work", gpu->bound_work);
	add_ratio(shape, "bound_empty", gpu->bound_empty);
	add_ratio(shape, "bound_full", gpu->bound_full);
	json_fields_uint(shape, "gpu_only_ns", gpu->gpu_only_ns);
	json_fields_uint(shape, "gpu_host_ns", gpu->gpu_host_ns);
	add_us(stage_us, "gpu_only", gpu->gpu_only_ns);
	add_us(stage_us, "gpu_host", gpu->gpu_host_ns);
	add_us(stage_us, "sync", gpu->sync_ns);
	add_us(stage_us, "sync_useful", gpu->sync_useful_ns);
	add_us(stage_us, "sync_tail", gpu->sync_tail_ns);
	json_fields_bool(shape, "calls_known", gpu->calls_known);
	if (!gpu->calls_known)
		return;
	add_us(stage_us, "sync_spin", gpu->sync_spin_ns);
	add_us(stage_us, "exposed_syscall", gpu->exposed_syscall_ns);
	add_us(stage_us, "overlapped_syscall", gpu->overlapped_syscall_ns);
	add_us(stage_us, "cuda_internal", gpu->cuda_internal_ns);
}

/* On every line, so that idle time for want of records is not taken for a finding. */
static void add_quality(struct json_fields *shape, const struct window *window,
			const struct step *step)
{
	const struct step_gpu *gpu = step->gpu;
	const struct gpu_process *process = gpu_table_find(&window->gpus, step->record.tgid);

	json_fields_string(shape, "sealed", gpu_seal_name(gpu->sealed));
	json_fields_bool(shape, "complete", gpu->complete);
	json_fields_uint(shape, "joined", gpu->joined);
	json_fields_uint(shape, "by_time", gpu->by_time);
	add_ratio_of(shape, "correlated_pct", 100.0 * gpu->joined,
		     (double)gpu->joined + gpu->by_time);
	json_fields_uint(shape, "missing", gpu->missing);
	json_fields_uint(shape, "unmeasured", gpu->unmeasured);
	json_fields_uint(shape, "violations", gpu->violations);
	json_fields_uint(shape, "cupti_dropped", gpu->cupti_dropped);
	json_fields_uint(shape, "ring_lost", gpu->ring_lost);
	json_fields_uint(shape, "cupti_overhead_ns", gpu->cupti_overhead_ns);
	json_fields_uint(shape, "shim_ns", gpu->shim_ns);
	json_fields_uint(shape, "clock_error_ns", gpu->clock_error_ns);
	if (process)
		json_fields_string(
			shape, "clock",
			gpu_clock_name((enum fbt_gpu_clock_method)process->state.clock_method));
}

size_t jsonl_gpu_lines(const struct step_gpu *gpu)
{
	return gpu->devices.count > 1 ? 1 + gpu->devices.count : 1;
}

void jsonl_gpu_fill(struct jsonl_gpu *event, const struct window *window, const struct step *step,
		    size_t index)
{
	const struct step_gpu *gpu = step->gpu;
	const struct gpu_figures *figures = index ? &gpu->devices.items[index - 1] : &gpu->all;

	event->shape.count = 0;
	event->stage_us.count = 0;
	add_identity(&event->shape, window, step, figures, !index);
	add_counts(&event->shape, figures);
	add_identity_ns(&event->shape, step, figures);
	add_wait_calls(event, window, figures);
	add_times(&event->stage_us, step, figures);
	add_view(event, window, figures);
	if (!index)
		add_step(event, gpu);
	add_quality(&event->shape, window, step);
}

void jsonl_gpu_add_to_step(struct json_fields *shape, struct json_fields *stage_us,
			   const struct step *step)
{
	const struct gpu_figures *figures = &step->gpu->all;

	json_fields_bool(shape, "gpu_complete", step->gpu->complete);
	add_us(stage_us, "gpu_busy", figures->busy_ns);
	add_us(stage_us, "gpu_idle", figures->idle_ns);
	add_us(stage_us, "gpu_host_wait", figures->host_wait_ns);
	add_us(stage_us, "gpu_launch", figures->launch_ns);
	add_us(stage_us, "gpu_queue", figures->queue_ns);
}

bool jsonl_gpu_has_graph(const struct step *step)
{
	return step->gpu && step->gpu->all.graph_launches;
}

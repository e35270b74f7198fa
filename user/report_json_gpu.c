/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "report_json_gpu.h"

#include "gpu_text.h"
#include "report_format.h"
#include "syscalls.h"

static void write_stats(struct json *json, const char *key, const struct stats *stats)
{
	json_object_begin(json, key);
	json_uint(json, "count", stats__count(stats));
	json_uint(json, "p50_ns", stats__percentile(stats, 0.5));
	json_uint(json, "p95_ns", stats__percentile(stats, 0.95));
	json_uint(json, "max_ns", stats__max(stats));
	json_object_end(json);
}

static void write_times(struct json *json, const struct gpu_figures *times)
{
	json_uint(json, "busy_ns", times->busy_ns);
	json_uint(json, "kernel_ns", times->kernel_ns);
	json_uint(json, "memcpy_ns", times->memcpy_ns);
	json_uint(json, "memcpy_h2d_ns", times->h2d_ns);
	json_uint(json, "memcpy_d2h_ns", times->d2h_ns);
	json_uint(json, "memcpy_d2d_ns", times->d2d_ns);
	json_uint(json, "memcpy_p2p_ns", times->p2p_ns);
	json_uint(json, "memset_ns", times->memset_ns);
	json_uint(json, "transfer_ns", times->transfer_ns);
	json_uint(json, "exposed_copy_ns", times->exposed_copy_ns);
	json_uint(json, "comm_ns", times->comm_ns);
	json_uint(json, "exposed_comm_ns", times->exposed_comm_ns);
	json_uint(json, "work_sum_ns", times->work_sum_ns);
	json_uint(json, "idle_ns", times->idle_ns);
	json_uint(json, "host_wait_ns", times->host_wait_ns);
	json_uint(json, "launch_ns", times->launch_ns);
	json_uint(json, "queue_ns", times->queue_ns);
	json_uint(json, "unattributed_ns", times->unattributed_ns);
	json_uint(json, "kernel_wait_ns", times->kernel_wait_ns);
	json_uint(json, "dependency_ns", times->dependency_ns);
	json_uint(json, "wait_blocked_ns", times->wait_blocked_ns);
	json_uint(json, "wait_syscall_ns", times->wait_syscall_ns);
	json_uint(json, "wait_user_ns", times->wait_user_ns);
	json_uint(json, "wait_unknown_ns", times->wait_unknown_ns);
	json_uint(json, "hta_host_wait_ns", times->hta_host_wait_ns);
	json_uint(json, "tklqt_ns", times->tklqt_ns);
}

/* Of a step only its longest calls are known: the rest is in wait_blocked_ns and wait_syscall_ns.
 */
static void write_wait_calls(struct json *json, const struct gpu_tally_kind *kind,
			     enum fbt_arch arch)
{
	char label[24];

	json_array_begin(json, "wait_calls");
	for (uint32_t nr = 0; nr < FBT_NR_COUNT; nr++) {
		for (int blocked = 0; blocked < 2; blocked++) {
			if (!kind->wait_ns[nr][blocked])
				continue;
			json_object_begin(json, NULL);
			json_string(json, "name", syscall_label(arch, nr, label));
			json_uint(json, "nr", nr);
			json_bool(json, "blocked", blocked);
			json_uint(json, "total_ns", kind->wait_ns[nr][blocked]);
			json_object_end(json);
		}
	}
	json_array_end(json);
}

static void write_work(struct json *json, const struct gpu_tally_kind *kind)
{
	json_uint(json, "kernels", kind->kernels);
	json_uint(json, "memcpys", kind->memcpys);
	json_uint(json, "memsets", kind->memsets);
	json_uint(json, "graph_launches", kind->graph_launches);
	json_uint(json, "graph_nodes", kind->graph_nodes);
	json_uint(json, "pageable", kind->pageable);
	json_uint(json, "launches", kind->launches);
	json_uint(json, "h2d_bytes", kind->h2d_bytes);
	json_uint(json, "d2h_bytes", kind->d2h_bytes);
	json_uint(json, "d2d_bytes", kind->d2d_bytes);
	json_uint(json, "p2p_bytes", kind->p2p_bytes);
	json_uint(json, "memset_bytes", kind->memset_bytes);
	write_stats(json, "launch_latency", kind->launch_latency);
	write_stats(json, "launch_api", kind->launch_api);
	write_stats(json, "work", kind->work);
}

static void write_thread(struct json *json, const struct gpu_tally_kind *kind)
{
	json_uint(json, "gpu_only_ns", kind->gpu_only_ns);
	json_uint(json, "gpu_host_ns", kind->gpu_host_ns);
	json_uint(json, "sync_ns", kind->sync_ns);
	json_uint(json, "sync_useful_ns", kind->sync_useful_ns);
	json_uint(json, "sync_tail_ns", kind->sync_tail_ns);
	json_uint(json, "sync_spin_ns", kind->sync_spin_ns);
	json_uint(json, "calls_known_steps", kind->calls_known);
	json_uint(json, "exposed_syscall_ns", kind->exposed_syscall_ns);
	json_uint(json, "overlapped_syscall_ns", kind->overlapped_syscall_ns);
	json_uint(json, "cuda_internal_ns", kind->cuda_internal_ns);
}

static void write_quality(struct json *json, const struct gpu_tally_kind *kind)
{
	json_uint(json, "complete_steps", kind->complete);
	json_object_begin(json, "sealed");
	for (int i = 0; i < GPU_SEAL_COUNT; i++)
		json_uint(json, gpu_seal_name((enum gpu_seal)i), kind->sealed[i]);
	json_object_end(json);
	json_uint(json, "joined", kind->joined);
	json_uint(json, "by_time", kind->by_time);
	json_uint(json, "unmeasured", kind->unmeasured);
	json_uint(json, "missing", kind->missing);
	json_uint(json, "violations", kind->violations);
	json_uint(json, "cupti_overhead_ns", kind->cupti_overhead_ns);
}

static void write_slowest(struct json *json, const struct gpu_tally_kind *kind, enum fbt_arch arch)
{
	char text[GPU_IDLE_TEXT_SIZE];

	json_array_begin(json, "slowest");
	for (int i = 0; i < GPU_TALLY_SLOWEST && kind->slowest[i].number; i++) {
		const struct gpu_tally_step *step = &kind->slowest[i];
		const struct gpu_text about = {&step->figures, step->total_ns, step->run_delay_ns,
					       arch, !step->complete};

		json_object_begin(json, NULL);
		json_uint(json, "step", step->number);
		json_uint(json, "duration_ns", step->total_ns);
		json_uint(json, "kernels", step->figures.kernels);
		write_times(json, &step->figures);
		json_string(json, "bound", gpu_bound_name(step->bound));
		json_bool(json, "complete", step->complete);
		json_string(json, "text", gpu_idle_text(&about, text));
		json_object_end(json);
	}
	json_array_end(json);
}

void report_json_gpu_kind(struct json *json, const struct report *report, uint32_t index)
{
	const struct gpu_tally_kind *kind = report->tally->gpu.kinds[index];
	enum fbt_arch arch = (enum fbt_arch)report->window->record.arch;

	if (!kind) {
		json_null(json, "gpu");
		return;
	}
	json_object_begin(json, "gpu");
	json_uint(json, "steps", kind->steps);
	json_uint(json, "total_ns", kind->total_ns);
	json_double(json, "busy_percent",
		    percent_of((double)kind->sum.busy_ns, (double)kind->total_ns));
	write_stats(json, "busy", kind->busy);
	write_stats(json, "idle", kind->idle);
	write_times(json, &kind->sum);
	write_wait_calls(json, kind, arch);
	json_object_begin(json, "bound");
	for (int i = 0; i < GPU_BOUND_COUNT; i++)
		json_uint(json, gpu_bound_name((enum gpu_bound)i), kind->bound[i]);
	json_object_end(json);
	write_work(json, kind);
	write_thread(json, kind);
	write_quality(json, kind);
	write_slowest(json, kind, arch);
	json_object_end(json);
}

static void write_counts(struct json *json, const struct gpu_counts *counts)
{
	json_uint(json, "kernels", counts->kernels);
	json_uint(json, "memcpys", counts->memcpys);
	json_uint(json, "memsets", counts->memsets);
	json_uint(json, "apis", counts->apis);
	json_uint(json, "syncs", counts->syncs);
	json_uint(json, "unmeasured", counts->unmeasured);
	json_uint(json, "joined", counts->joined);
	json_uint(json, "unjoined", counts->unjoined);
	json_uint(json, "violations", counts->violations);
	json_uint(json, "outside", counts->outside);
	json_uint(json, "steps", counts->steps);
	json_uint(json, "timeouts", counts->timeouts);
}

static void write_flush(struct json *json, const struct fbt_gpu_flush *flush)
{
	json_uint(json, "records", flush->records);
	json_uint(json, "cupti_dropped", flush->cupti_dropped);
	json_uint(json, "ring_lost", flush->ring_lost);
	json_uint(json, "no_buffer", flush->no_buffer);
	json_uint(json, "unknown", flush->unknown);
	json_uint(json, "shim_ns", flush->shim_ns);
	json_uint(json, "clock_error_ns", flush->clock_error_ns);
	json_uint(json, "clock_steps", flush->clock_steps);
}

static void write_devices(struct json *json, const struct gpu_process *process)
{
	json_array_begin(json, "devices");
	vec_for_each (device, &process->devices) {
		json_object_begin(json, NULL);
		json_uint(json, "id", device->record.id);
		json_string(json, "name", device->name);
		json_uint(json, "memory_bytes", device->record.memory_bytes);
		json_uint(json, "compute_major", device->record.compute_major);
		json_uint(json, "compute_minor", device->record.compute_minor);
		json_uint(json, "sms", device->record.sms);
		json_object_end(json);
	}
	json_array_end(json);
}

void report_json_gpu_processes(struct json *json, const struct window *window)
{
	char version[32];

	json_array_begin(json, "gpu_processes");
	vec_for_each (entry, &window->gpus.processes) {
		const struct gpu_process *process = *entry;
		const struct fbt_gpu_state *state = &process->state;

		json_object_begin(json, NULL);
		json_uint(json, "pid", process->tgid);
		json_string(json, "status", gpu_status_name((enum fbt_gpu_status)state->status));
		json_string(json, "detail", process->detail);
		json_bool(json, "armed", process->armed);
		json_string(json, "cupti",
			    state->cupti_version
				    ? gpu_cupti_version_name(state->cupti_version, version)
				    : NULL);
		json_uint(json, "cupti_version", state->cupti_version);
		json_uint(json, "driver_version", state->driver_version);
		json_uint(json, "shim_version", state->shim_version);
		json_string(json, "library", process->library);
		json_string(json, "clock",
			    gpu_clock_name((enum fbt_gpu_clock_method)state->clock_method));
		json_bool(json, "clock_suspect", gpu_process_is_clock_suspect(process));
		json_uint(json, "arm_ns", process->arm_ns);
		write_counts(json, &process->counts);
		write_flush(json, &process->flush);
		write_devices(json, process);
		json_object_end(json);
	}
	json_array_end(json);
}

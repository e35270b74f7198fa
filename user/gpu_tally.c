/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_tally.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The times of struct gpu_figures: what a sum, and a mean, over steps means something of. */
static const size_t summed_times[] = {
	offsetof(struct gpu_figures, busy_ns),
	offsetof(struct gpu_figures, kernel_ns),
	offsetof(struct gpu_figures, memcpy_ns),
	offsetof(struct gpu_figures, memset_ns),
	offsetof(struct gpu_figures, h2d_ns),
	offsetof(struct gpu_figures, d2h_ns),
	offsetof(struct gpu_figures, d2d_ns),
	offsetof(struct gpu_figures, p2p_ns),
	offsetof(struct gpu_figures, transfer_ns),
	offsetof(struct gpu_figures, exposed_copy_ns),
	offsetof(struct gpu_figures, work_sum_ns),
	offsetof(struct gpu_figures, idle_ns),
	offsetof(struct gpu_figures, host_wait_ns),
	offsetof(struct gpu_figures, launch_ns),
	offsetof(struct gpu_figures, queue_ns),
	offsetof(struct gpu_figures, unattributed_ns),
	offsetof(struct gpu_figures, kernel_wait_ns),
	offsetof(struct gpu_figures, dependency_ns),
	offsetof(struct gpu_figures, wait_blocked_ns),
	offsetof(struct gpu_figures, wait_syscall_ns),
	offsetof(struct gpu_figures, wait_user_ns),
	offsetof(struct gpu_figures, wait_unknown_ns),
	offsetof(struct gpu_figures, hta_host_wait_ns),
	offsetof(struct gpu_figures, comm_ns),
	offsetof(struct gpu_figures, exposed_comm_ns),
	offsetof(struct gpu_figures, tklqt_ns),
};

#define SUMMED (sizeof(summed_times) / sizeof(summed_times[0]))

static void add(uint64_t *to, uint64_t what)
{
	if (__builtin_add_overflow(*to, what, to))
		*to = UINT64_MAX;
}

static uint64_t *time_at(struct gpu_figures *figures, size_t index)
{
	return (uint64_t *)((char *)figures + summed_times[index]);
}

static uint64_t read_time(const struct gpu_figures *figures, size_t index)
{
	uint64_t value;

	memcpy(&value, (const char *)figures + summed_times[index], sizeof(value));
	return value;
}

static void free_kind(struct gpu_tally_kind *kind)
{
	if (!kind)
		return;
	stats__free(kind->busy);
	stats__free(kind->idle);
	stats__free(kind->launch_latency);
	stats__free(kind->launch_api);
	stats__free(kind->work);
	free(kind);
}

static struct gpu_tally_kind *new_kind(void)
{
	struct gpu_tally_kind *kind = calloc(1, sizeof(*kind));

	if (!kind)
		return NULL;
	kind->busy = stats__new();
	kind->idle = stats__new();
	kind->launch_latency = stats__new();
	kind->launch_api = stats__new();
	kind->work = stats__new();
	if (kind->busy && kind->idle && kind->launch_latency && kind->launch_api && kind->work)
		return kind;
	free_kind(kind);
	return NULL;
}

static void add_figures(struct gpu_tally_kind *kind, const struct gpu_figures *figures)
{
	for (size_t i = 0; i < SUMMED; i++)
		add(time_at(&kind->sum, i), read_time(figures, i));
	for (int i = 0; i < GPU_WAIT_CALLS_MAX; i++) {
		const struct gpu_wait_call *call = &figures->wait_calls[i];

		if (call->nr < FBT_NR_COUNT)
			add(&kind->wait_ns[call->nr][call->blocked], call->ns);
	}
	add(&kind->kernels, figures->kernels);
	add(&kind->memcpys, figures->memcpys);
	add(&kind->memsets, figures->memsets);
	add(&kind->graph_launches, figures->graph_launches);
	add(&kind->graph_nodes, figures->graph_nodes);
	add(&kind->pageable, figures->pageable);
	add(&kind->launches, figures->launches);
	add(&kind->h2d_bytes, figures->h2d_bytes);
	add(&kind->d2h_bytes, figures->d2h_bytes);
	add(&kind->d2d_bytes, figures->d2d_bytes);
	add(&kind->p2p_bytes, figures->p2p_bytes);
	add(&kind->memset_bytes, figures->memset_bytes);
	stats__add(kind->busy, figures->busy_ns);
	stats__add(kind->idle, figures->idle_ns);
	if (!figures->launches)
		return;
	stats__add(kind->launch_latency, figures->launch_latency_ns);
	stats__add(kind->launch_api, figures->launch_api_ns);
	stats__add(kind->work, figures->work_ns);
}

static void add_thread(struct gpu_tally_kind *kind, const struct step_gpu *gpu)
{
	add(&kind->sync_ns, gpu->sync_ns);
	add(&kind->sync_useful_ns, gpu->sync_useful_ns);
	add(&kind->sync_tail_ns, gpu->sync_tail_ns);
	add(&kind->sync_spin_ns, gpu->sync_spin_ns);
	add(&kind->gpu_only_ns, gpu->gpu_only_ns);
	add(&kind->gpu_host_ns, gpu->gpu_host_ns);
	if (!gpu->calls_known)
		return;
	kind->calls_known++;
	add(&kind->exposed_syscall_ns, gpu->exposed_syscall_ns);
	add(&kind->overlapped_syscall_ns, gpu->overlapped_syscall_ns);
	add(&kind->cuda_internal_ns, gpu->cuda_internal_ns);
}

static void add_quality(struct gpu_tally_kind *kind, const struct step_gpu *gpu)
{
	if (gpu->sealed < GPU_SEAL_COUNT)
		kind->sealed[gpu->sealed]++;
	add(&kind->joined, gpu->joined);
	add(&kind->by_time, gpu->by_time);
	add(&kind->unmeasured, gpu->unmeasured);
	add(&kind->missing, gpu->missing);
	add(&kind->violations, gpu->violations);
	add(&kind->cupti_overhead_ns, gpu->cupti_overhead_ns);
}

static uint64_t run_delay_of(const struct step *step)
{
	if (step->record.header.flags & FBT_STEP_SCHED_UNKNOWN)
		return UINT64_MAX;
	return step->record.run_delay_ns;
}

static void add_to_slowest(struct gpu_tally_kind *kind, const struct step *step)
{
	struct gpu_tally_step entry = {
		.number = step->number,
		.total_ns = step_wall_ns(step),
		.run_delay_ns = run_delay_of(step),
		.figures = step->gpu->all,
		.bound = step->gpu->bound,
		.complete = step->gpu->complete,
	};
	int place = GPU_TALLY_SLOWEST;

	while (place && (!kind->slowest[place - 1].number ||
			 kind->slowest[place - 1].total_ns < entry.total_ns))
		place--;
	if (place == GPU_TALLY_SLOWEST)
		return;
	memmove(&kind->slowest[place + 1], &kind->slowest[place],
		(size_t)(GPU_TALLY_SLOWEST - 1 - place) * sizeof(entry));
	kind->slowest[place] = entry;
}

int gpu_tally_add(struct gpu_tally *tally, const struct step *step)
{
	struct gpu_tally_kind *kind;
	uint32_t index = step->record.kind;

	if (!step->gpu || index >= FBT_KIND_COUNT)
		return 0;
	if (!tally->kinds[index])
		tally->kinds[index] = new_kind();
	kind = tally->kinds[index];
	if (!kind)
		return -ENOMEM;
	kind->steps++;
	add_quality(kind, step->gpu);
	add_to_slowest(kind, step);
	if (!step->gpu->complete)
		return 0;
	kind->complete++;
	add(&kind->total_ns, step_wall_ns(step));
	add(&kind->run_delay_ns, run_delay_of(step));
	if (step->gpu->bound < GPU_BOUND_COUNT)
		kind->bound[step->gpu->bound]++;
	add_figures(kind, &step->gpu->all);
	add_thread(kind, step->gpu);
	return 0;
}

void gpu_tally_clear(struct gpu_tally *tally)
{
	for (int i = 0; i < FBT_KIND_COUNT; i++)
		free_kind(tally->kinds[i]);
	*tally = (struct gpu_tally){0};
}

/* The longest of them all, in the mean. */
static void find_wait_calls(const struct gpu_tally_kind *kind, struct gpu_figures *mean)
{
	for (uint32_t nr = 0; nr < FBT_NR_COUNT; nr++) {
		for (int blocked = 0; blocked < 2; blocked++) {
			uint64_t ns = kind->wait_ns[nr][blocked] / kind->complete;
			int place = GPU_WAIT_CALLS_MAX;

			while (place && mean->wait_calls[place - 1].ns < ns)
				place--;
			if (place == GPU_WAIT_CALLS_MAX)
				continue;
			memmove(&mean->wait_calls[place + 1], &mean->wait_calls[place],
				(size_t)(GPU_WAIT_CALLS_MAX - 1 - place) *
					sizeof(mean->wait_calls[0]));
			mean->wait_calls[place] = (struct gpu_wait_call){nr, blocked, ns};
		}
	}
}

void gpu_tally_mean(const struct gpu_tally_kind *kind, struct gpu_figures *mean)
{
	*mean = (struct gpu_figures){0};
	if (!kind->complete)
		return;
	for (size_t i = 0; i < SUMMED; i++)
		*time_at(mean, i) = read_time(&kind->sum, i) / kind->complete;
	find_wait_calls(kind, mean);
}

enum gpu_bound gpu_tally_bound(const struct gpu_tally_kind *kind)
{
	enum gpu_bound best = GPU_BOUND_UNKNOWN;

	for (int i = GPU_BOUND_UNKNOWN + 1; i < GPU_BOUND_COUNT; i++) {
		if (kind->bound[i] > (best ? kind->bound[best] : 0))
			best = (enum gpu_bound)i;
	}
	return best;
}

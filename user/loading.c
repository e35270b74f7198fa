/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "loading.h"

#include "calibrate.h"
#include "preflight.h"
#include "processes.h"

/* Of the threads that come in a window. */
#define SPARE_SLOTS 256

static uint32_t count_threads(const struct options *options)
{
	uint32_t count = 0;

	/* Without -p, and with -f, any process of the machine may come under trace. */
	if (!options->pids.count || options->follow)
		count = processes_count_threads(0);
	vec_for_each (pid, &options->pids)
		count += processes_count_threads(*pid);
	return count;
}

static int open_for(struct loader **loader, const struct options *options, uint32_t thread_count)
{
	struct loader_options loader_options = {
		.detail = options->detail,
		.trace_all = options->all,
		.follow = options->follow,
		.ring_records = options->ring_records,
		.thread_count = thread_count,
		.bpf_stats = options->bpf_stats,
		.perf_uprobes = options->perf_uprobes,
	};

	return loader__open(loader, &loader_options);
}

int loading_open(struct loader **loader, const struct options *options)
{
	int err = preflight_check();

	if (err)
		return err;
	return open_for(loader, options, count_threads(options));
}

bool loading_has_room(struct loader *loader, const struct options *options)
{
	uint32_t slots = loader__shared(loader)->slot_count;

	return slots >= FBT_SLOTS_MAX || count_threads(options) + SPARE_SLOTS <= slots;
}

int loading_attach_syscalls(struct loader *loader, bool with_steps, struct fbt_cost *cost)
{
	uint64_t bare_ps = calibrate_bare_ps();
	int err = loader__attach_syscalls(loader);

	if (!err && with_steps)
		err = calibrate_step(loader, cost);
	if (!err)
		calibrate_calls(loader, bare_ps, cost);
	return err;
}

int loading_measure(const struct options *options, struct fbt_cost *cost)
{
	struct loader *loader;
	int err = open_for(&loader, options, 1);

	*cost = (struct fbt_cost){0};
	if (!err)
		err = loading_attach_syscalls(loader, true, cost);
	loader__free(loader);
	return err;
}

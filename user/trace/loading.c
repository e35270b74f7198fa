/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "trace/loading.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "kernel/calibrate.h"
#include "proc/process.h"
#include "trace/explain.h"

/*
 * Descriptors for maps, programs, links, one step function, outputs, their folders, and opening
 * them.
 */
#define FILES_NEEDED 69
/* Slots for threads that are created during the window. */
#define SPARE_SLOTS 256

static int check_descriptors(void)
{
	int fds[FILES_NEEDED], count = 0, err = 0;
	struct rlimit limit = {0};

	while (!err && count < FILES_NEEDED) {
		fds[count] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		err = fds[count] < 0 ? -errno : 0;
		count += !err;
	}
	for (int i = 0; i < count; i++)
		close(fds[i]);
	if (err == -EMFILE && !getrlimit(RLIMIT_NOFILE, &limit))
		log_err("ulimit -n is %llu: too few file descriptors, raise it to %llu",
			(unsigned long long)limit.rlim_cur,
			(unsigned long long)limit.rlim_cur + (unsigned int)(FILES_NEEDED - count));
	else if (err)
		log_err("/dev/null: %s", strerror(-err));
	return err;
}

void loading_raise_files_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		log_debug("ulimit -n: %s", strerror(errno));
}

static int check_file(const char *path, const char *root)
{
	int err = access(path, R_OK) ? -errno : 0;

	if (err)
		log_err("%s: %s: %s has to be mounted here", path, strerror(-err), root);
	return err;
}

static int check_machine(void)
{
	int err = check_descriptors();

	if (!err)
		err = check_file("/proc/self/stat", "/proc");
	return err ? err : check_file("/sys/devices/system/cpu/possible", "/sys");
}

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
		.perf_uprobes = options->perf_uprobes,
		.find_senders = options->explain != EXPLAIN_OFF,
	};

	return loader__open(loader, &loader_options);
}

int loading_open(struct loader **loader, const struct options *options)
{
	int err = check_machine();

	return err ? err : open_for(loader, options, count_threads(options));
}

bool loading_has_room(struct loader *loader, const struct options *options)
{
	uint32_t slots = loader__shared(loader)->slot_count;

	return slots >= FBT_SLOTS_MAX || count_threads(options) + SPARE_SLOTS <= slots;
}

int loading_attach_syscalls(struct loader *loader, bool with_steps, struct fbt_cost *cost)
{
	bool with_calls = loader__traces_calls(loader);
	uint64_t bare_ps = with_calls ? calibrate_bare_ps() : 0;
	int err = loader__attach_syscalls(loader);

	if (!err && with_steps)
		err = calibrate_step(loader, cost);
	if (!err && with_calls)
		calibrate_calls(loader, bare_ps, cost);
	return err;
}

int loading_measure(const struct options *options, struct fbt_cost *cost,
		    uint64_t explain_ps[FBT_EXPLAIN_COUNT])
{
	struct loader *loader;
	int err = open_for(&loader, options, 1);

	*cost = (struct fbt_cost){0};
	if (!err)
		err = loading_attach_syscalls(loader, true, cost);
	if (!err && options->explain != EXPLAIN_OFF)
		explain_measure(loader, explain_ps);
	loader__free(loader);
	return err;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_check_room.h"

#include <dirent.h>
#include <inttypes.h>

#include "fbt_gpu.h"
#include "inject_cgroup.h"
#include "inject_status.h"
#include "processes.h"

/* Two memfds, and what dlopen opens of one. */
#define FILES_NEEDED 3

/* Two stacks (at most 8 MiB where the first attempt failed), the library, its heap. */
#define KIB_NEEDED 16384

#define INSTEAD "raise it (prlimit), or " INJECT_INSTEAD

static uint64_t count_files(uint32_t tgid, uint32_t thread)
{
	uint64_t count = 0;
	struct dirent *entry;
	char path[64];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/fd", tgid, thread);
	folder = opendir(path);
	while (folder && (entry = readdir(folder)))
		count += entry->d_name[0] != '.';
	if (folder)
		closedir(folder);
	return count;
}

static void check_files(struct inject_verdict *verdict, uint32_t tgid, uint32_t thread)
{
	uint64_t limit = inject_limit_read(tgid, thread, "Max open files");
	uint64_t count = limit == INJECT_UNLIMITED ? 0 : count_files(tgid, thread);

	if (limit < FILES_NEEDED || limit - FILES_NEEDED < count)
		inject_verdict_add(verdict, INJECT_REFUSAL, "limits",
				   "RLIMIT_NOFILE: %" PRIu64 " of %" PRIu64 " descriptors are "
				   "open, and %d more are needed: " INSTEAD,
				   count, limit, FILES_NEEDED);
}

static void check_memory(struct inject_verdict *verdict, const char *name, uint64_t limit,
			 uint64_t used_kib)
{
	if (limit != INJECT_UNLIMITED &&
	    (limit / 1024 < KIB_NEEDED || limit / 1024 - KIB_NEEDED < used_kib))
		inject_verdict_add(verdict, INJECT_REFUSAL, "limits",
				   "%s: %" PRIu64 " of %" PRIu64 " MiB are used: " INSTEAD, name,
				   used_kib / 1024, limit >> 20);
}

/* Memory files count too; beyond the limit a write is answered with a signal. */
static void check_file_size(struct inject_verdict *verdict, uint32_t tgid, uint32_t thread)
{
	uint64_t limit = inject_limit_read(tgid, thread, "Max file size");

	if (limit < FBT_GPU_HEADER_BYTES + FBT_GPU_RING_BYTES)
		inject_verdict_add(verdict, INJECT_REFUSAL, "limits",
				   "RLIMIT_FSIZE is %" PRIu64 " KiB, less than what the shim "
				   "shares: " INSTEAD,
				   limit >> 10);
}

static uint64_t count_threads_of(uint32_t uid)
{
	process_vec processes = {0};
	struct inject_status status;
	uint64_t count = 0;

	if (processes_list(&processes))
		return 0;
	vec_for_each (process, &processes) {
		if (!inject_status_read(&status, process->tgid, process->tgid) && status.uid == uid)
			count += status.threads;
	}
	vec_free(&processes);
	return count;
}

/* The kernel counts all threads of the user, and lets root have any number. */
static void check_threads(struct inject_verdict *verdict, uint32_t tgid, uint32_t thread,
			  uint32_t uid)
{
	uint64_t limit = inject_limit_read(tgid, thread, "Max processes");
	uint64_t left = inject_cgroup_threads_left(tgid, thread), count = 0;

	if (uid && limit != INJECT_UNLIMITED && processes_count_threads(0) >= limit)
		count = count_threads_of(uid);
	if (count && count >= limit)
		inject_verdict_add(verdict, INJECT_REFUSAL, "limits",
				   "RLIMIT_NPROC: its user has %" PRIu64 " of %" PRIu64
				   " threads, and one more is needed: " INSTEAD,
				   count, limit);
	if (!left)
		inject_verdict_add(
			verdict, INJECT_REFUSAL, "limits",
			"pids.max of its cgroup is reached, and one more thread is "
			"needed: raise it (docker update --pids-limit), or " INJECT_INSTEAD);
}

void inject_check_room(struct inject_verdict *verdict, uint32_t tgid, uint32_t thread)
{
	struct inject_status status;

	if (inject_status_read(&status, tgid, thread))
		return;
	check_files(verdict, tgid, thread);
	check_file_size(verdict, tgid, thread);
	check_memory(verdict, "RLIMIT_AS", inject_limit_read(tgid, thread, "Max address space"),
		     status.size_kib);
	check_memory(verdict, "RLIMIT_DATA", inject_limit_read(tgid, thread, "Max data size"),
		     status.data_kib);
	check_threads(verdict, tgid, thread, status.uid);
}

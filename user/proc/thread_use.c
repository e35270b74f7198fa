/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "proc/thread_use.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "proc/process.h"

static int compare_tids(const void *left, const void *right)
{
	const struct thread_use *a = left, *b = right;

	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

static int compare_use(const void *left, const void *right)
{
	const struct thread_use *a = left, *b = right;

	if (a->cpu_ns != b->cpu_ns)
		return a->cpu_ns > b->cpu_ns ? -1 : 1;
	return compare_tids(left, right);
}

int thread_use_read_one(struct thread_use *use, struct proc_ref ref)
{
	FILE *file = proc_fopen(ref, "schedstat");
	int fields, err;

	if (!file)
		return -errno;
	fields = fscanf(file, "%" SCNu64 " %" SCNu64, &use->cpu_ns, &use->wait_ns);
	err = fields == 2 ? 0 : -ESRCH;
	fclose(file);
	return err;
}

int thread_use_read(thread_use_vec *threads, uint32_t tgid)
{
	pid_vec tids = {0};
	int err = threads_list(tgid, &tids), failed = 0;

	vec_for_each (tid, &tids) {
		struct thread_use use = {.tid = *tid};

		if (err)
			break;
		/* A thread may have ended since the list was read. */
		failed = thread_use_read_one(&use, (struct proc_ref){tgid, *tid});
		if (!failed)
			err = vec_push(threads, use);
	}
	vec_free(&tids);
	vec_sort(threads, compare_tids);
	return err ? err : threads->count ? 0 : failed;
}

void thread_use_since(thread_use_vec *threads, const thread_use_vec *before)
{
	size_t kept = 0;

	for (size_t i = 0; i < threads->count; i++) {
		struct thread_use use = threads->items[i];
		size_t at = vec_lower_bound(before, item->tid, use.tid);

		if (at < before->count && before->items[at].tid == use.tid) {
			use.cpu_ns -= before->items[at].cpu_ns;
			use.wait_ns -= before->items[at].wait_ns;
		}
		if (use.cpu_ns || use.wait_ns)
			threads->items[kept++] = use;
	}
	threads->count = kept;
	vec_sort(threads, compare_use);
}

bool thread_use_is_short(const thread_use_vec *threads, uint64_t period_ns)
{
	uint64_t cpu_ns = 0, wait_ns = 0;

	vec_for_each (use, threads) {
		cpu_ns += use->cpu_ns;
		wait_ns += use->wait_ns;
	}
	return wait_ns > (cpu_ns + wait_ns) / 5 && wait_ns > period_ns / 5;
}

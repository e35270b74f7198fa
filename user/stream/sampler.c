/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/sampler.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_clock(int program, uint32_t tid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000000 / SAMPLER_HZ,
		.disabled = 1,
		.exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	if (!ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) && !ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

int sampler_add(struct sampler *sampler, int program, uint32_t tid)
{
	int fd;

	for (uint32_t i = 0; i < sampler->count; i++)
		if (sampler->tids[i] == tid)
			return 0;
	if (sampler->count == SAMPLER_THREADS)
		return -ENOSPC;
	fd = open_clock(program, tid);
	if (fd < 0)
		return fd;
	sampler->tids[sampler->count] = tid;
	sampler->fds[sampler->count++] = fd;
	return 0;
}

void sampler_remove(struct sampler *sampler, uint32_t tid)
{
	uint32_t at = 0;

	while (at < sampler->count && sampler->tids[at] != tid)
		at++;
	if (at == sampler->count)
		return;
	close(sampler->fds[at]);
	sampler->count--;
	sampler->tids[at] = sampler->tids[sampler->count];
	sampler->fds[at] = sampler->fds[sampler->count];
}

void sampler_clear(struct sampler *sampler)
{
	while (sampler->count)
		close(sampler->fds[--sampler->count]);
}

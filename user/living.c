/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "living.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "log.h"

struct living {
	pid_vec pids;
	VEC(int) fds; /* of the pids, in their order; -1: known by its number only */
};

static int open_process(uint32_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);

	return fd < 0 ? -errno : fd;
}

static int add_process(struct living *living, uint32_t pid)
{
	int fd = open_process(pid), err;

	if (fd == -ESRCH) {
		log_err("process %u: no such process", pid);
		return fd;
	}
	if (fd < 0) {
		log_debug("process %u: pidfd: %s", pid, strerror(-fd));
		fd = -1;
	}
	err = vec_push(&living->pids, pid);
	if (!err)
		err = vec_push(&living->fds, fd);
	if (err && fd >= 0)
		close(fd);
	return err;
}

int living__new(struct living **result, const pid_vec *pids)
{
	struct living *living = calloc(1, sizeof(*living));
	int err = living ? 0 : -ENOMEM;

	vec_for_each (pid, pids) {
		if (!err)
			err = add_process(living, *pid);
	}
	if (err) {
		living__free(living);
		living = NULL;
	}
	*result = living;
	return err;
}

void living__free(struct living *living)
{
	if (!living)
		return;
	vec_for_each (fd, &living->fds) {
		if (*fd >= 0)
			close(*fd);
	}
	vec_free(&living->fds);
	vec_free(&living->pids);
	free(living);
}

const pid_vec *living__pids(const struct living *living)
{
	return &living->pids;
}

/* A process that has ended but for its last thread's report to the parent counts as ended. */
static bool has_ended(uint32_t pid, int fd)
{
	struct pollfd process = {.fd = fd, .events = POLLIN};

	if (fd < 0)
		return kill((pid_t)pid, 0) && errno == ESRCH;
	return poll(&process, 1, 0) > 0;
}

static void forget(struct living *living, size_t index)
{
	size_t behind = living->pids.count - index - 1;

	if (living->fds.items[index] >= 0)
		close(living->fds.items[index]);
	memmove(&living->fds.items[index], &living->fds.items[index + 1],
		behind * sizeof(living->fds.items[0]));
	memmove(&living->pids.items[index], &living->pids.items[index + 1],
		behind * sizeof(living->pids.items[0]));
	living->fds.count--;
	living->pids.count--;
}

size_t living__look(struct living *living)
{
	size_t i = 0;

	while (i < living->pids.count) {
		uint32_t pid = living->pids.items[i];

		if (!has_ended(pid, living->fds.items[i])) {
			i++;
			continue;
		}
		forget(living, i);
		if (living->pids.count)
			log_info("process %u has ended", pid);
	}
	return living->pids.count;
}

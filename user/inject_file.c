/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

/* Since 6.9, and in no header of Debian 12. */
#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

static bool is_queue(const char *link)
{
	static const char *const kinds[] = {"pipe:[",
					    "socket:[",
					    "anon_inode:[eventfd]",
					    "anon_inode:[timerfd]",
					    "anon_inode:[signalfd]",
					    "anon_inode:inotify"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (!strncmp(link, kinds[i], strlen(kinds[i])))
			return true;
	}
	return false;
}

/* A second descriptor of the thread's, for the time of a question. -errno if there is none. */
static int borrow_file(uint32_t tgid, uint32_t tid, uint32_t number)
{
	int pidfd, fd;

	/* By the thread where the kernel can: the first one may have ended. */
	pidfd = (int)syscall(SYS_pidfd_open, (pid_t)tid, PIDFD_THREAD);
	if (pidfd < 0)
		pidfd = (int)syscall(SYS_pidfd_open, (pid_t)tgid, 0);
	if (pidfd < 0)
		return -errno;
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, (int)number, 0);
	if (fd < 0)
		fd = -errno;
	close(pidfd);
	return fd;
}

/*
 * With SO_RCVTIMEO the call returns EINTR, and the time begins anew; with SO_RCVLOWAT it returns
 * the fewer bytes that it has. A socket that cannot be asked counts as one with a time-out that is
 * borne with.
 */
static enum inject_rank rank_socket(enum inject_rank rank, uint32_t tgid, uint32_t tid,
				    uint32_t number)
{
	int fd = borrow_file(tgid, tid, number), least = 0;
	struct timeval time = {0};
	socklen_t size = sizeof(time), least_size = sizeof(least);

	if (fd < 0)
		return INJECT_RANK_EINTR_TIMED;
	if (getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, &size) ||
	    getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, &least_size))
		rank = INJECT_RANK_EINTR_TIMED;
	else if (time.tv_sec || time.tv_usec || least > 1)
		rank = INJECT_RANK_NONE;
	close(fd);
	return rank;
}

enum inject_rank inject_file_rank(uint32_t tgid, uint32_t tid, uint64_t nr, const uint64_t args[6])
{
	enum inject_rank rank = inject_rank_of(nr, args);
	char path[64], link[64];
	ssize_t size;

	if (rank == INJECT_RANK_NONE || inject_rank_file(nr) == INJECT_FILE_ANY)
		return rank;
	snprintf(path, sizeof(path), "/proc/%u/task/%u/fd/%u", tgid, tid, (uint32_t)args[0]);
	size = readlink(path, link, sizeof(link) - 1);
	if (size < 0)
		return INJECT_RANK_NONE;
	link[size] = '\0';
	if (!is_queue(link))
		return INJECT_RANK_NONE;
	return strncmp(link, "socket:", strlen("socket:"))
		       ? rank
		       : rank_socket(rank, tgid, tid, (uint32_t)args[0]);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_check.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject_libc.h"
#include "inject_maps.h"
#include "processes.h"

/* What tells a process from a later one of its number, and a program from the next: 0 or -ESRCH. */
struct identity {
	uint64_t start_ticks;
	uint64_t start_code;
	uint64_t start_stack;
};

/* Fields 22, 26 and 28 of a stat file. */
static int read_stat(const char *path, struct identity *identity)
{
	char line[1024];
	const char *end;
	int err = -ESRCH;
	FILE *file = fopen(path, "re");

	if (!file)
		return -ESRCH;
	if (fgets(line, sizeof(line), file) && (end = strrchr(line, ')')) &&
	    sscanf(end + 1,
		   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
		   "%" SCNu64 " %*u %*d %*u %" SCNu64 " %*u %" SCNu64,
		   &identity->start_ticks, &identity->start_code, &identity->start_stack) == 3)
		err = 0;
	fclose(file);
	return err;
}

/* The first thread says when the process began, a living one where its program is. */
static int read_identity(uint32_t tgid, uint32_t thread, struct identity *identity)
{
	struct identity first;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%u/stat", tgid);
	err = read_stat(path, &first);
	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", tgid, thread);
	err = read_stat(path, identity);
	identity->start_ticks = first.start_ticks;
	return err;
}

static int open_target(struct inject_target *target, uint32_t tgid)
{
	struct identity identity;

	target->tgid = tgid;
	target->thread = processes_living_thread(tgid);
	target->pidfd = (int)syscall(SYS_pidfd_open, tgid, 0);
	if (target->pidfd < 0)
		return -errno;
	if (read_identity(tgid, target->thread, &identity))
		return -ESRCH;
	target->start_ticks = identity.start_ticks;
	target->start_code = identity.start_code;
	target->start_stack = identity.start_stack;
	return 0;
}

static int check_libc(struct inject_target *target, struct inject_verdict *verdict,
		      const inject_mapping_vec *maps)
{
	struct inject_libc libc;
	int err = inject_libc_find(&libc, target->thread, maps);

	if (err) {
		inject_verdict_add(verdict, INJECT_REFUSAL, "libc", "%s", strerror(-err));
		return err;
	}
	inject_verdict_add(verdict, INJECT_FINE, "libc", "glibc %s (%s)", libc.version,
			   libc.mapping->file.path);
	err = inject_place_find(&target->place, target->tgid, target->thread, maps, libc.functions);
	if (err)
		inject_verdict_add(verdict, INJECT_REFUSAL, "place", "%s", strerror(-err));
	return err;
}

int inject_check(struct inject_target *target, struct inject_verdict *verdict, uint32_t tgid,
		 bool need_cuda)
{
	inject_mapping_vec maps = {0};
	int err;

	(void)need_cuda;
	memset(target, 0, sizeof(*target));
	memset(verdict, 0, sizeof(*verdict));
	target->pidfd = -1;
	err = open_target(target, tgid);
	if (!err)
		err = inject_maps_read(&maps, tgid, target->thread);
	if (!err)
		check_libc(target, verdict, &maps);
	inject_maps_free(&maps);
	if (err)
		return err;
	return verdict->refused ? -EPERM : 0;
}

void inject_target_clear(struct inject_target *target)
{
	if (target->pidfd >= 0)
		close(target->pidfd);
	target->pidfd = -1;
}

bool inject_target_is_there(const struct inject_target *target)
{
	struct pollfd ended = {.fd = target->pidfd, .events = POLLIN, .revents = 0};
	uint32_t thread = processes_living_thread(target->tgid);
	struct identity identity;

	return !poll(&ended, 1, 0) && !read_identity(target->tgid, thread, &identity) &&
	       identity.start_ticks == target->start_ticks &&
	       identity.start_code == target->start_code &&
	       identity.start_stack == target->start_stack;
}

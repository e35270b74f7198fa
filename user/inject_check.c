/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_check.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "elf_file.h"
#include "inject_check_access.h"
#include "inject_check_cuda.h"
#include "inject_check_program.h"
#include "inject_check_room.h"
#include "inject_check_state.h"
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

static int open_target(struct inject_target *target, struct inject_verdict *verdict, uint32_t tgid)
{
	struct identity identity;
	int err;

	target->tgid = tgid;
	target->thread = processes_living_thread(tgid);
	err = inject_check_process(verdict, tgid, target->thread);
	if (err || verdict->refused)
		return err;
	target->pidfd = (int)syscall(SYS_pidfd_open, tgid, 0);
	if (target->pidfd < 0) {
		err = -errno;
		inject_verdict_add(verdict, INJECT_REFUSAL, "process", "pidfd_open: %s",
				   strerror(-err));
		return err;
	}
	err = read_identity(tgid, target->thread, &identity);
	if (err) {
		inject_verdict_add(verdict, INJECT_REFUSAL, "process", "has ended");
		return err;
	}
	target->start_ticks = identity.start_ticks;
	target->start_code = identity.start_code;
	target->start_stack = identity.start_stack;
	return 0;
}

static void check_place(struct inject_target *target, struct inject_verdict *verdict,
			const inject_mapping_vec *maps, const struct inject_libc *libc)
{
	struct inject_place *place = &target->place;
	int err = inject_place_find(place, target->tgid, target->thread, maps, libc->functions);

	if (!err)
		inject_verdict_add(verdict, INJECT_FINE, "stub", "%u bytes%s behind the code of %s",
				   place->size, place->written ? ", there already," : "",
				   place->file);
	else if (err == -ENOSPC)
		inject_verdict_add(verdict, INJECT_REFUSAL, "stub",
				   "no library has %u free bytes behind its code: " INJECT_INSTEAD,
				   place->size);
	else if (err == -EEXIST)
		inject_verdict_add(verdict, INJECT_REFUSAL, "stub",
				   "another version of this program has left one: use that one, "
				   "or " INJECT_INSTEAD);
	else if (err != -ENOEXEC)
		inject_verdict_add(verdict, INJECT_REFUSAL, "stub", "its memory: %s",
				   strerror(-err));
}

static void refuse_libc(struct inject_verdict *verdict, const struct inject_libc *libc, int err)
{
	const char *path = libc->mapping ? libc->mapping->file.path : "";
	const char *version = *libc->version ? libc->version : "of unknown version";

	if (err == -ESRCH)
		inject_verdict_add(verdict, INJECT_REFUSAL, "libc",
				   "no libc.so.6 is mapped: only programs that are linked with "
				   "glibc can load the shim");
	else if (err == -EEXIST)
		inject_verdict_add(verdict, INJECT_REFUSAL, "libc",
				   "there are two (dlmopen, an audit library?): " INJECT_INSTEAD);
	else if (err == -ENOENT)
		inject_verdict_add(
			verdict, INJECT_REFUSAL, "libc",
			"glibc %s (%s) has no %s: 2.34 or newer is needed: " INJECT_INSTEAD,
			version, path, libc->missing);
	else
		inject_verdict_add(verdict, INJECT_REFUSAL, "libc", "%s: %s", path,
				   err == -EBADMSG ? "what is mapped and the file do not agree"
						   : elf_file_strerror(err));
}

static void check_libc(struct inject_target *target, struct inject_verdict *verdict,
		       const inject_mapping_vec *maps)
{
	struct inject_libc libc;
	int err = inject_libc_find(&libc, target->thread, maps);

	if (err) {
		refuse_libc(verdict, &libc, err);
		return;
	}
	inject_verdict_add(verdict, INJECT_FINE, "libc", "glibc%s%s (%s)", *libc.version ? " " : "",
			   libc.version, libc.mapping->file.path);
	check_place(target, verdict, maps, &libc);
}

static void check_all(struct inject_target *target, struct inject_verdict *verdict,
		      const inject_mapping_vec *maps)
{
	inject_check_state(verdict, target->tgid, target->thread);
	inject_check_processor(verdict);
	inject_check_program(verdict, target->tgid, target->thread, maps);
	check_libc(target, verdict, maps);
	inject_check_room(verdict, target->tgid, target->thread);
	inject_check_namespaces(verdict, target->tgid, target->thread);
}

static int read_maps(const struct inject_target *target, struct inject_verdict *verdict,
		     inject_mapping_vec *maps)
{
	int err = inject_maps_read(maps, target->tgid, target->thread);

	if (err == -ESRCH)
		inject_verdict_add(verdict, INJECT_REFUSAL, "process", "has ended");
	else if (err)
		inject_verdict_add(verdict, INJECT_REFUSAL, "access", "its memory map: %s",
				   strerror(-err));
	return err;
}

int inject_check(struct inject_target *target, struct inject_verdict *verdict, uint32_t tgid,
		 bool need_cuda)
{
	inject_mapping_vec maps = {0};
	int err;

	memset(target, 0, sizeof(*target));
	memset(verdict, 0, sizeof(*verdict));
	target->pidfd = -1;
	err = open_target(target, verdict, tgid);
	if (err || verdict->refused)
		goto out;
	err = inject_check_access(verdict, tgid, target->thread);
	if (!err)
		err = read_maps(target, verdict, &maps);
	if (err)
		goto out;
	if (need_cuda)
		inject_check_cuda(verdict, tgid, target->thread, &maps);
	if (!verdict->present)
		check_all(target, verdict, &maps);
out:
	inject_maps_free(&maps);
	return !err && verdict->refused ? -EPERM : err;
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

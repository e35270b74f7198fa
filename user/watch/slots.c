/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "watch/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "output/safe_file.h"

#define SUFFIX ".prom"
/* The first metric in a file, of metric_catalog: its lines are within that many bytes. */
#define UP	 "ferrum_bpftrace_up"
#define UP_BYTES 1024

char *slot_path(const char *path, unsigned int slot)
{
	char *text;

	if (slot == 1)
		return strdup(path);
	return asprintf(&text, "%.*s_%u" SUFFIX, (int)(strlen(path) - strlen(SUFFIX)), path, slot) <
			       0
		       ? NULL
		       : text;
}

unsigned int slot_choose(uint32_t used)
{
	for (unsigned int slot = 1; slot <= SLOTS_MAX; slot++) {
		if (!(used & UINT32_C(1) << slot))
			return slot;
	}
	return 0;
}

/* Whether a file begins with the metric, and its value is 1. */
static bool says_up(int fd)
{
	static const char begin[] = "# HELP " UP " ", value[] = "\n" UP "{";
	char text[UP_BYTES + 1];
	ssize_t size = pread(fd, text, UP_BYTES, 0);
	const char *at;

	if (size <= 0)
		return false;
	text[size] = '\0';
	at = strncmp(text, begin, strlen(begin)) ? NULL : strstr(text, value);
	at = at ? strstr(at, "} ") : NULL;
	return at && !strncmp(at, "} 1\n", 4);
}

static bool is_ours(const struct stat *status)
{
	uid_t uid;
	gid_t gid;

	return S_ISREG(status->st_mode) && status->st_nlink == 1 &&
	       (status->st_uid == geteuid() ||
		(safe_file_find_user(&uid, &gid) && status->st_uid == uid));
}

static bool is_old(const struct stat *status)
{
	return status->st_mtim.tv_sec + SLOT_OLD_S < (int64_t)(clock_ns(CLOCK_REALTIME) / NS_PER_S);
}

static void sweep(const struct safe_file *file, bool is_own)
{
	int fd = openat(file->dir, file->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat opened, named;

	if (fd < 0)
		return;
	/* A tracer that has written it anew since has another file. */
	if (!fstat(fd, &opened) && is_ours(&opened) && (is_own || is_old(&opened)) && says_up(fd) &&
	    !fstatat(file->dir, file->name, &named, AT_SYMLINK_NOFOLLOW) &&
	    named.st_dev == opened.st_dev && named.st_ino == opened.st_ino) {
		if (unlinkat(file->dir, file->name, 0))
			log_warn("%s: of a tracer that was killed; it cannot be deleted: %s",
				 file->path, strerror(errno));
		else
			log_info("%s: deleted, because its tracer was killed", file->path);
	}
	close(fd);
}

static void drop_message(void *ctx, enum log_level level, const char *message)
{
}

/* A tracer that cannot write there says so itself; this comes with each end of an engine. */
static int open_folder(struct safe_file *file, const char *path)
{
	struct log_diversion before =
		log_divert((struct log_diversion){.take = drop_message, .ctx = NULL});
	int err = safe_file_open(file, path);

	log_divert(before);
	return err;
}

void slots_sweep(const char *path, uint32_t used, uint32_t own)
{
	struct safe_file folder;

	if (!path || open_folder(&folder, path))
		return;
	for (unsigned int slot = 1; !folder.is_foreign && slot <= SLOTS_MAX; slot++) {
		char *name = used & UINT32_C(1) << slot ? NULL : slot_path(path, slot);
		struct safe_file file = {.path = name, .dir = folder.dir};
		char *slash = name ? strrchr(name, '/') : NULL;

		file.name = slash ? slash + 1 : name;
		if (name)
			sweep(&file, own & UINT32_C(1) << slot);
		free(name);
	}
	safe_file_clear(&folder);
}

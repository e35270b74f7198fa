/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* A descriptor that can only be asked about, or -errno. */
static int look(uint32_t tgid, uint32_t thread, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	char root[64];
	long found;
	int folder;

	snprintf(root, sizeof(root), "/proc/%u/task/%u/root", tgid, thread);
	folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return -errno;
	found = syscall(SYS_openat2, folder, path, &how, sizeof(how));
	if (found < 0)
		found = -errno;
	close(folder);
	return (int)found;
}

bool inject_root_has(uint32_t tgid, uint32_t thread, const char *path)
{
	int fd = look(tgid, thread, path);

	if (fd >= 0)
		close(fd);
	return fd != -ENOENT && fd != -ENOTDIR;
}

bool inject_root_has_proc(uint32_t tgid, uint32_t thread)
{
	int fd = look(tgid, thread, "/proc");
	struct statfs status;
	bool is_proc;

	if (fd < 0)
		return fd != -ENOENT && fd != -ENOTDIR;
	is_proc = fstatfs(fd, &status) || status.f_type == PROC_SUPER_MAGIC;
	close(fd);
	return is_proc;
}

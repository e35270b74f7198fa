/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MAGIC_CONFIGFS 0x62656570 /* fs/configfs */

/*
 * Whether it is one of the kernel's own: those look regular too, and to read them may take what
 * others wait for (/proc/kmsg, trace_pipe), or change something.
 */
static bool is_of_kernel(int place)
{
	static const uint32_t magics[] = {
		PROC_SUPER_MAGIC,    SYSFS_MAGIC,   DEBUGFS_MAGIC,	  TRACEFS_MAGIC,
		SECURITYFS_MAGIC,    SELINUX_MAGIC, SMACK_MAGIC,	  CGROUP_SUPER_MAGIC,
		CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,  PSTOREFS_MAGIC,	  EFIVARFS_MAGIC,
		BINFMTFS_MAGIC,	     NSFS_MAGIC,    RDTGROUP_SUPER_MAGIC, MAGIC_CONFIGFS,
	};
	struct statfs system;

	if (fstatfs(place, &system))
		return true;
	for (size_t i = 0; i < sizeof(magics) / sizeof(*magics); i++) {
		if ((uint32_t)system.f_type == magics[i])
			return true;
	}
	return false;
}

int regular_file_open(const char *path, struct stat *status)
{
	int place, fd = -1, err = 0;
	char again[32];

	/* O_PATH does not open what it finds: a device is looked at, not started. */
	place = open(path, O_PATH | O_CLOEXEC);
	if (place < 0)
		return -errno;
	if (fstat(place, status)) {
		err = -errno;
		goto out;
	}
	if (!S_ISREG(status->st_mode) || is_of_kernel(place)) {
		err = -ENOEXEC;
		goto out;
	}
	snprintf(again, sizeof(again), "/proc/self/fd/%d", place);
	/* Who holds a lease on it (fcntl(2)) could have us wait for 45 s. */
	fd = open(again, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		err = -errno;
out:
	close(place);
	return err ? err : fd;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "proc/open.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/memfd.h"

#define MAGIC_CONFIGFS 0x62656570 /* fs/configfs */

void proc_path(char path[PROC_PATH_MAX], struct proc_ref ref, const char *name)
{
	if (ref.thread)
		snprintf(path, PROC_PATH_MAX, "/proc/%u/task/%u/%s", ref.tgid, ref.thread, name);
	else
		snprintf(path, PROC_PATH_MAX, "/proc/%u/%s", ref.tgid, name);
}

FILE *proc_fopen(struct proc_ref ref, const char *name)
{
	char path[PROC_PATH_MAX];

	proc_path(path, ref, name);
	return fopen(path, "re");
}

int proc_open(struct proc_ref ref, const char *name, int flags)
{
	char path[PROC_PATH_MAX];
	int fd;

	proc_path(path, ref, name);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return fd;
}

size_t proc_readlink(struct proc_ref ref, const char *name, char *text, size_t size)
{
	char path[PROC_PATH_MAX];
	ssize_t length;

	proc_path(path, ref, name);
	length = readlink(path, text, size - 1);
	text[length > 0 ? length : 0] = '\0';
	return length > 0 ? (size_t)length : 0;
}

bool proc_comm(struct proc_ref ref, char *comm, size_t size)
{
	FILE *file = proc_fopen(ref, "comm");
	bool read = file && fgets(comm, (int)size, file);

	if (file)
		fclose(file);
	if (!read)
		*comm = '\0';
	comm[strcspn(comm, "\n")] = '\0';
	return read;
}

bool proc_exe_stat(struct proc_ref ref, struct statx *status)
{
	char path[PROC_PATH_MAX];

	/* A server of network files that does not answer must not hold up a trace. */
	proc_path(path, ref, "exe");
	return !statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, status);
}

ino_t proc_exe_inode(struct proc_ref ref)
{
	struct statx status;

	return proc_exe_stat(ref, &status) ? (ino_t)status.stx_ino : 0;
}

bool proc_root_path(char *rooted, size_t size, uint32_t tgid, const char *path)
{
	return snprintf(rooted, size, "/proc/%u/root%s", tgid, path) < (int)size;
}

int proc_root_open(struct proc_ref ref, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	int root = proc_open(ref, "root", O_PATH | O_DIRECTORY), found;

	if (root < 0)
		return root;
	found = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (found < 0)
		found = -errno;
	close(root);
	return found;
}

bool proc_root_has_proc(struct proc_ref ref)
{
	int fd = proc_root_open(ref, "/proc");
	struct statfs status;
	bool is_proc;

	if (fd < 0)
		return fd != -ENOENT && fd != -ENOTDIR;
	is_proc = fstatfs(fd, &status) || status.f_type == PROC_SUPER_MAGIC;
	close(fd);
	return is_proc;
}

/*
 * Whether the file is on one of the kernel's own file systems. Their files look regular, but
 * reading one may change something or consume data of others (/proc/kmsg, trace_pipe).
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

	/* O_PATH does not open the device at a path, so it has no side effects. */
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
	/* Without O_NONBLOCK the holder of a lease (fcntl(2)) could block the tool for 45 s. */
	fd = open(again, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		err = -errno;
out:
	close(place);
	return err ? err : fd;
}

int memfd_device(dev_t *device)
{
	int own = memfd_make("ferrum-bpftrace"), err = 0;
	struct stat status;

	if (own < 0)
		return -errno;
	if (fstat(own, &status))
		err = -errno;
	else
		*device = status.st_dev;
	close(own);
	return err;
}

int memfd_open(int folder, const char *number, dev_t device)
{
	/* O_PATH and AT_STATX_DONT_SYNC do not contact the file system, which may be hostile. */
	int looked = openat(folder, number, O_PATH | O_CLOEXEC), fd = -ENOENT;
	struct statx status;
	char path[64];

	if (looked < 0)
		return -errno;
	if (statx(looked, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) ||
	    !S_ISREG(status.stx_mode) ||
	    makedev(status.stx_dev_major, status.stx_dev_minor) != device)
		goto out;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", looked);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		fd = errno == EWOULDBLOCK || errno == ETXTBSY ? -EBADMSG : -errno;
out:
	close(looked);
	return fd;
}

int memfd_is_named(int folder, const char *number, const char *name)
{
	static const char deleted[] = " (deleted)";
	char wanted[64], link[sizeof(wanted) + 1];
	int size = snprintf(wanted, sizeof(wanted), "/memfd:%s%s", name, deleted);
	ssize_t length = readlinkat(folder, number, link, sizeof(link));

	if (length < 0 && (errno == EACCES || errno == EPERM))
		return -EACCES;
	return size < (int)sizeof(wanted) && length == size &&
	       !memcmp(link, wanted, (size_t)length);
}

int memfd_open_named(uint32_t tgid, uint32_t number, const char *name)
{
	char text[16];
	int folder, fd;
	dev_t device = 0;

	fd = memfd_device(&device);
	if (fd)
		return fd;
	folder = proc_open((struct proc_ref){.tgid = tgid}, "fd", O_PATH | O_DIRECTORY);
	if (folder < 0)
		return folder;
	snprintf(text, sizeof(text), "%u", number);
	fd = memfd_is_named(folder, text, name) > 0 ? memfd_open(folder, text, device) : -ENOENT;
	close(folder);
	return fd;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Opens what belongs to another process, which may be hostile: its files in /proc, a file at a path
 * that it chose, a path in its root, its shared memory.
 */
#ifndef FBT_PROC_OPEN_H
#define FBT_PROC_OPEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * A process or one of its threads, as /proc names it. If the first thread has ended before the
 * others, most files of the process can be read only through a living thread: see
 * processes_live_thread().
 */
struct proc_ref {
	uint32_t tgid;
	uint32_t thread; /* 0: the process itself, /proc/TGID instead of /proc/TGID/task/THREAD */
};

#define PROC_PATH_MAX 96

/* The path of a file below /proc, cut off at PROC_PATH_MAX. */
void proc_path(char path[PROC_PATH_MAX], struct proc_ref ref, const char *name);

/* Opens a file for reading. On failure NULL and errno, as fopen(3). */
FILE *proc_fopen(struct proc_ref ref, const char *name);

/* A descriptor; -ESRCH if the process or its file does not exist; or another -errno of open(2). */
int proc_open(struct proc_ref ref, const char *name, int flags);

/* The target of a link, cut off at size - 1 bytes; "" if it cannot be read. Returns its length. */
size_t proc_readlink(struct proc_ref ref, const char *name, char *text, size_t size);

/* The name of a thread (/proc/PID/comm), without newline; "" and false if it cannot be read. */
bool proc_comm(struct proc_ref ref, char *comm, size_t size);

/*
 * Device and inode of the program, as the kernel knows them: no file system is asked. False if they
 * are not known.
 */
bool proc_exe_stat(struct proc_ref ref, struct statx *status);

/* Its inode alone; 0 if not known. */
ino_t proc_exe_inode(struct proc_ref ref);

/*
 * A path in the root of the process, as a path of the tool. False if it is too long. Symbolic links
 * may lead out of that root.
 */
bool proc_root_path(char *rooted, size_t size, uint32_t tgid, const char *path);

/*
 * Opens an absolute path as the process sees it, in its root and mounts; symbolic links stay there.
 * Returns an O_PATH descriptor; -ENOENT or -ENOTDIR if the path does not exist; or another -errno
 * if that is not known.
 */
int proc_root_open(struct proc_ref ref, const char *path);

/* Whether /proc is mounted in the root of the process; true also if that is not known. */
bool proc_root_has_proc(struct proc_ref ref);

/*
 * Opens a regular file for reading. A device or pipe is not opened, because that has side effects.
 * Returns a descriptor, or -errno without a message: -ENOEXEC if it is not a regular file, or one
 * of a kernel file system (/proc, /sys …); -EAGAIN if another process holds a lease on the file, so
 * that open(2) would wait.
 */
int regular_file_open(const char *path, struct stat *status);

/* The device of the kernel's file system for memfds (memfd_create(2)). 0 or -errno. */
int memfd_device(dev_t *device);

/*
 * Opens a memfd of another process for reading and writing. folder is a /proc/PID/fd and number the
 * name of the descriptor there, or a /proc/PID/map_files and a mapping. The file is opened only if
 * it is on device (memfd_device), so that only the kernel handles the open, whatever the number
 * refers to by now. Returns a descriptor; -ENOENT if it is another file; -EBADMSG if a process
 * holds a lease on it; or another -errno.
 */
int memfd_open(int folder, const char *number, dev_t device);

/* Whether a descriptor there is a memfd of that name. 1, 0, or -EACCES: its link may not be read.
 */
int memfd_is_named(int folder, const char *number, const char *name);

/* The two in one: descriptor number of a process, if it is a memfd of that name. As memfd_open. */
int memfd_open_named(uint32_t tgid, uint32_t number, const char *name);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Opens files as root in directories that others may write to. Functions return 0; or -errno,
 * logged as "PATH: reason; what to do" unless they say otherwise. "Ours" are the files of the user
 * as whom we run, and of the user who called sudo (SUDO_UID, SUDO_GID; used only if we are root).
 */
#ifndef FBT_OUTPUT_SAFE_FILE_H
#define FBT_OUTPUT_SAFE_FILE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

struct broker_order;

/* A name in a directory that is held open. The file need not exist. */
struct safe_file {
	char *path; /* as given, for messages */
	char *name; /* last component, within dir */
	int dir;    /* O_PATH */
	/*
	 * A member of some group may have put dir there, so files of dir's owner may be anyone's.
	 */
	bool is_foreign;
};

/*
 * Opens the directory of path. Missing directories are created with mode 0755, for the user who
 * called sudo. Free file with safe_file_clear.
 *
 * fs.protected_* (proc(5)) may be off, so each component is checked. A symbolic link is followed
 * only if root, we or the user who called sudo made it, and never after a link of /proc, which
 * leads into the root of another process. In a directory that everyone may write to, only
 * directories of these three users are entered.
 *
 * In a directory that a group may write to (an ACL looks the same), directories of its members are
 * entered; /srv/traces, 2775 root:llm, exists for them. But any member may have put a directory
 * there, under any name, even with the sticky bit. What is in it may be anyone's, so it is neither
 * replaced nor appended to. New files are created there, and belong to root.
 */
int safe_file_open(struct safe_file *file, const char *path);
void safe_file_clear(struct safe_file *file);

/* lstat of the file; -ENOENT is not logged. */
int safe_file_stat(const struct safe_file *file, struct stat *status);

/* Whether a file with that status may be written to or replaced. */
int safe_file_check(const struct safe_file *file, const struct stat *status);

/* Opens an existing file, which is checked before and after opening. -ENOENT is not logged. */
int safe_file_open_existing(const struct safe_file *file, int flags, int *fd);

/*
 * In the broker: opens an existing file to append to it (struct broker_task). path is fixed. Our
 * own seccomp filter cannot tell such a file from the memory of a process.
 */
int safe_file_append_serve(const void *path, const struct broker_order *nothing);

/* Creates the file with mode 0600, for the user who called sudo. -EEXIST is not logged. */
int safe_file_create(const struct safe_file *file, int flags, int *fd);

/*
 * Renames fd's file from one name to another in the same directory. Not logged: -EEXIST a file that
 * may not be replaced has appeared, and is unchanged; -ESTALE somebody has put another file in the
 * place of fd's; -errno.
 */
int safe_file_rename(const struct safe_file *from, const struct safe_file *to, int fd);

/* The N of /dev/fd/N, /dev/stdout and their other names; -1: path is none of them. */
int safe_file_find_own_fd(const char *path);

/* Logs what err (positive) means for path and returns -err. */
int safe_file_fail(const char *path, int err);

/* What to do about err (positive), including a separator: "; free some space …", or "". */
const char *safe_file_advice(int err);

/*
 * The user who called sudo, to whom the outputs belong. false: there is none, or we are not root.
 */
bool safe_file_find_user(uid_t *uid, gid_t *gid);

#endif

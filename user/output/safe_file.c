/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "output/safe_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/log.h"
#include "sandbox/broker.h"

#define LINKS_MAX	40 /* as in the kernel */
#define PROC_ROOT_INODE 1  /* PROC_ROOT_INO of the kernel's linux/proc_fs.h */

const char *safe_file_advice(int err)
{
	switch (err) {
	case ENOSPC:
	case EDQUOT:
		return "; free some space or name a file elsewhere";
	case EMFILE:
		return "; raise ulimit -n";
	case EFBIG:
		return "; raise ulimit -f or trace for a shorter time";
	case EACCES:
	case EPERM:
	case EROFS:
		return "; name a file in a directory that you can write to";
	case ELOOP:
		return "; symbolic links are not followed, name the file itself";
	case ENOTDIR:
	case EISDIR:
		return "; name a file in a directory";
	default:
		return "";
	}
}

int safe_file_fail(const char *path, int err)
{
	log_err("%s: %s%s", path, strerror(err), safe_file_advice(err));
	return -err;
}

int safe_file_find_own_fd(const char *path)
{
	static const char *const dirs[] = {"/dev/fd/", "/proc/self/fd/"};
	char *end = NULL;
	unsigned long fd;

	if (!strcmp(path, "/dev/stdout"))
		return STDOUT_FILENO;
	if (!strcmp(path, "/dev/stderr"))
		return STDERR_FILENO;
	for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++) {
		size_t length = strlen(dirs[i]);

		if (strncmp(path, dirs[i], length) || path[length] < '0' || path[length] > '9')
			continue;
		fd = strtoul(path + length, &end, 10);
		return *end || fd > INT32_MAX ? -1 : (int)fd;
	}
	return -1;
}

bool safe_file_find_user(uid_t *uid, gid_t *gid)
{
	const char *uid_text = getenv("SUDO_UID");
	const char *gid_text = getenv("SUDO_GID");
	char *uid_end = NULL, *gid_end = NULL;
	unsigned long uid_value, gid_value;

	if (geteuid() || !uid_text || !*uid_text || !gid_text || !*gid_text)
		return false;
	uid_value = strtoul(uid_text, &uid_end, 10);
	gid_value = strtoul(gid_text, &gid_end, 10);
	if (*uid_end || *gid_end || uid_value >= UINT32_MAX || gid_value >= UINT32_MAX)
		return false;
	*uid = (uid_t)uid_value;
	*gid = (gid_t)gid_value;
	return true;
}

/* Whether we run as uid, or uid is the user who called sudo. */
static bool is_us(uid_t uid)
{
	uid_t sudo_uid;
	gid_t sudo_gid;

	return uid == geteuid() || (safe_file_find_user(&sudo_uid, &sudo_gid) && uid == sudo_uid);
}

/* Whether links and directories of a user may be followed. */
static bool is_trusted(uid_t uid)
{
	return uid == 0 || is_us(uid);
}

/*
 * Gives a file that we have just created to the user who called sudo. Uses the descriptor, since
 * the name may refer to another file by now. path is for the log.
 */
static void give_to_user(int fd, const char *path)
{
	uid_t uid;
	gid_t gid;

	/* Some file systems have no owners. */
	if (safe_file_find_user(&uid, &gid) && fchown(fd, uid, gid))
		log_debug("%s: owner not changed: %s", path, strerror(errno));
}

/* The state of a walk to the directory of a path. */
struct walk {
	struct safe_file *file; /* dir: the directory reached so far */
	char *rest;		/* what is still to be walked, including the file's name */
	unsigned int links;
	bool left_root; /* the walk went through a link of /proc */
	bool told;	/* the failure was logged */
};

static int refuse(struct walk *walk, const char *name, uid_t uid, const char *what, int err)
{
	log_err("%s: %s is a %s of another user (uid %u); use a directory of your own",
		walk->file->path, name, what, (unsigned int)uid);
	walk->told = true;
	return err;
}

static bool is_empty(int fd)
{
	const struct dirent *entry;
	bool is_empty = true;
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);

	if (!dir) {
		if (copy >= 0)
			close(copy);
		return false;
	}
	while (is_empty && (entry = readdir(dir)))
		is_empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	closedir(dir);
	return is_empty;
}

/*
 * Creates a directory and opens it. Returns the descriptor or -errno. Whoever may write to the
 * parent may have replaced the new directory by another one of root's, so only an empty one is
 * given to the user.
 */
static int make_directory(const struct walk *walk, const char *name)
{
	bool made = !mkdirat(walk->file->dir, name, 0755);
	struct stat status;
	int fd;

	if (!made && errno != EEXIST)
		return -errno;
	fd = openat(walk->file->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (made && !fstat(fd, &status) && status.st_uid == geteuid() && is_empty(fd))
		give_to_user(fd, walk->file->path);
	return fd;
}

/* Whether a directory may be entered from walk->file->dir. 0 or -EPERM. */
static int check_directory(struct walk *walk, const char *name, const struct stat *status)
{
	struct stat parent;

	if (is_trusted(status->st_uid))
		return 0;
	if (fstat(walk->file->dir, &parent) || (parent.st_mode & S_IWOTH))
		return refuse(walk, name, status->st_uid, "directory", -EPERM);
	/* The parent's owner does not need the group to put a directory there. */
	if ((parent.st_mode & S_IWGRP) && parent.st_uid != status->st_uid)
		walk->file->is_foreign = true;
	return 0;
}

/*
 * Whether the walk is in a directory of /proc, but not in /proc itself, whose own links (self) are
 * ordinary ones.
 */
static bool is_in_process(const struct walk *walk)
{
	struct statfs system;
	struct stat status;

	return !fstatfs(walk->file->dir, &system) && system.f_type == PROC_SUPER_MAGIC &&
	       !fstat(walk->file->dir, &status) && status.st_ino != PROC_ROOT_INODE;
}

static void enter(struct walk *walk, int fd)
{
	close(walk->file->dir);
	walk->file->dir = fd;
}

/* A link of /proc refers to a file, not to a name, so it is opened. */
static int enter_proc_link(struct walk *walk, const char *name)
{
	int fd = openat(walk->file->dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	walk->left_root = true;
	enter(walk, fd);
	return 0;
}

/* Puts the target of a link in front of the rest of the path. */
static int follow_link(struct walk *walk, int link, const char *name, const struct stat *status)
{
	char target[PATH_MAX];
	char *rest = NULL;
	ssize_t size;
	int root;

	if (++walk->links > LINKS_MAX)
		return -ELOOP;
	if (walk->left_root)
		return refuse(walk, name, status->st_uid, "symbolic link in the root", -ELOOP);
	if (is_in_process(walk))
		return enter_proc_link(walk, name);
	/* A second hard link may have been made by anyone. */
	if (!is_trusted(status->st_uid) || status->st_nlink > 1)
		return refuse(walk, name, status->st_uid, "symbolic link", -ELOOP);
	size = readlinkat(link, "", target, sizeof(target));
	if (size < 0 || size == sizeof(target))
		return size < 0 ? -errno : -ENAMETOOLONG;
	if (asprintf(&rest, "%.*s/%s", (int)size, target, walk->rest) < 0)
		return -ENOMEM;
	free(walk->rest);
	walk->rest = rest;
	if (*rest != '/')
		return 0;
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	enter(walk, root);
	return 0;
}

static int walk_into(struct walk *walk, const char *name)
{
	int fd = openat(walk->file->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;
	int err = 0;

	if (fd < 0 && errno == ENOENT)
		fd = make_directory(walk, name);
	else if (fd < 0)
		fd = -errno;
	if (fd < 0)
		return fd;
	if (fstat(fd, &status))
		err = -errno;
	else if (S_ISLNK(status.st_mode))
		err = follow_link(walk, fd, name, &status);
	else if (!S_ISDIR(status.st_mode))
		err = -ENOTDIR;
	else
		err = check_directory(walk, name, &status);
	if (err || S_ISLNK(status.st_mode))
		close(fd);
	else
		enter(walk, fd);
	return err;
}

/* Walks to the last slash. walk->rest is then the file's name. */
static int walk_all(struct walk *walk)
{
	const char *path = walk->file->path;
	char name[NAME_MAX + 1];
	int err = 0;

	walk->rest = strdup(path);
	if (!walk->rest)
		return -ENOMEM;
	walk->file->dir = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (walk->file->dir < 0)
		return -errno;
	while (!err) {
		size_t size = strcspn(walk->rest, "/");
		char *slash = walk->rest + size;

		if (!*slash)
			return 0;
		if (size > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, walk->rest, size);
		name[size] = '\0';
		memmove(walk->rest, slash + 1, strlen(slash + 1) + 1);
		if (size && strcmp(name, ".") != 0)
			err = walk_into(walk, name);
	}
	return err;
}

int safe_file_open(struct safe_file *file, const char *path)
{
	struct walk walk = {.file = file};
	int err;

	*file = (struct safe_file){.path = strdup(path), .dir = -1};
	err = file->path ? walk_all(&walk) : -ENOMEM;
	file->name = walk.rest;
	if (!err && (!*file->name || !strcmp(file->name, ".") || !strcmp(file->name, "..")))
		err = -EISDIR;
	if (err) {
		if (!walk.told)
			safe_file_fail(path, -err);
		safe_file_clear(file);
	}
	return err;
}

void safe_file_clear(struct safe_file *file)
{
	if (file->dir >= 0)
		close(file->dir);
	free(file->path);
	free(file->name);
	*file = (struct safe_file){.dir = -1};
}

/* Whether a file belongs to us, to the user who called sudo, or to the directory's owner. */
static bool is_ours(const struct safe_file *file, const struct stat *status)
{
	struct stat dir;

	if (is_us(status->st_uid))
		return true;
	/*
	 * The directory's owner counts only if nobody else could have put the directory or the file
	 * there.
	 */
	return !file->is_foreign && !fstat(file->dir, &dir) && !(dir.st_mode & S_IWOTH) &&
	       status->st_uid == dir.st_uid;
}

int safe_file_stat(const struct safe_file *file, struct stat *status)
{
	int err;

	if (!fstatat(file->dir, file->name, status, AT_SYMLINK_NOFOLLOW))
		return 0;
	err = errno;
	return err == ENOENT ? -err : safe_file_fail(file->path, err);
}

int safe_file_check(const struct safe_file *file, const struct stat *status)
{
	const char *path = file->path;

	if (S_ISLNK(status->st_mode))
		return safe_file_fail(path, ELOOP);
	if (S_ISDIR(status->st_mode))
		return safe_file_fail(path, EISDIR);
	if (S_ISCHR(status->st_mode))
		return 0;
	if (!S_ISREG(status->st_mode) && !S_ISFIFO(status->st_mode)) {
		log_err("%s: neither a regular file nor a FIFO; name another file", path);
		return -EINVAL;
	}
	/* Opening another user's FIFO could block for ever. */
	if (S_ISFIFO(status->st_mode) ? !is_us(status->st_uid) : !is_ours(file, status)) {
		log_err("%s: belongs to another user (uid %u); name another file", path,
			(unsigned int)status->st_uid);
		return -EPERM;
	}
	if (S_ISREG(status->st_mode) && status->st_nlink > 1) {
		log_err("%s: has %lu hard links; name another file", path,
			(unsigned long)status->st_nlink);
		return -EPERM;
	}
	return 0;
}

int safe_file_append_serve(const void *path, const struct broker_order *nothing)
{
	struct safe_file file;
	int fd = -1, err = safe_file_open(&file, path);

	(void)nothing;
	if (err)
		return err;
	err = safe_file_open_existing(&file, O_RDWR | O_APPEND, &fd);
	safe_file_clear(&file);
	return err ? err : fd;
}

/* A descriptor or -errno. */
static int open_checked(const struct safe_file *file, int flags)
{
	int fd = -ENOSYS;

	if (flags & O_APPEND && broker_is_there())
		fd = broker_open(BROKER_APPEND, 0, 0, NULL);
	if (fd != -ENOSYS)
		return fd;
	fd = openat(file->dir, file->name, flags | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int safe_file_open_existing(const struct safe_file *file, int flags, int *result)
{
	struct stat status;
	int fd = -1, err;

	err = safe_file_stat(file, &status);
	if (!err)
		err = safe_file_check(file, &status);
	if (err)
		return err;
	/*
	 * A user who names a FIFO wants to wait for its reader. But a regular file may have been
	 * replaced by a FIFO since, and that must not block.
	 */
	if (S_ISREG(status.st_mode))
		flags |= O_NONBLOCK;
	else
		flags = (flags & ~O_ACCMODE) | O_WRONLY;
	fd = open_checked(file, flags);
	if (fd < 0)
		return safe_file_fail(file->path, -fd);
	err = fstat(fd, &status) ? safe_file_fail(file->path, errno)
				 : safe_file_check(file, &status);
	if (err) {
		close(fd);
		return err;
	}
	if (flags & O_NONBLOCK)
		(void)fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
	*result = fd;
	return 0;
}

int safe_file_create(const struct safe_file *file, int flags, int *result)
{
	int fd = openat(file->dir, file->name,
			flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, 0600);
	int err = fd < 0 ? errno : 0;

	if (err)
		return err == EEXIST ? -err : safe_file_fail(file->path, err);
	give_to_user(fd, file->path);
	*result = fd;
	return 0;
}

/* Whether the name is that of fd's file. */
static bool has_name(const struct safe_file *file, int fd)
{
	struct stat named, opened;

	return !fstatat(file->dir, file->name, &named, AT_SYMLINK_NOFOLLOW) &&
	       !fstat(fd, &opened) && named.st_dev == opened.st_dev &&
	       named.st_ino == opened.st_ino;
}

/* safe_file_check for a regular file, without a message. */
static bool may_replace(const struct safe_file *file)
{
	struct stat status;

	return !fstatat(file->dir, file->name, &status, AT_SYMLINK_NOFOLLOW) &&
	       S_ISREG(status.st_mode) && status.st_nlink == 1 && is_ours(file, &status);
}

/*
 * Renames over an existing file. The file is checked before the exchange, and again after it, when
 * nobody can change it any more.
 */
static int replace(const struct safe_file *from, const struct safe_file *to)
{
	if (!may_replace(to))
		return -EEXIST;
	if (renameat2(from->dir, from->name, to->dir, to->name, RENAME_EXCHANGE)) {
		if (errno != EINVAL && errno != ENOSYS)
			return -errno;
		return renameat(from->dir, from->name, to->dir, to->name) ? -errno : 0;
	}
	if (!may_replace(from)) {
		(void)renameat2(from->dir, from->name, to->dir, to->name, RENAME_EXCHANGE);
		return -EEXIST;
	}
	(void)unlinkat(from->dir, from->name, 0);
	return 0;
}

int safe_file_rename(const struct safe_file *from, const struct safe_file *to, int fd)
{
	int err = 0;

	if (!has_name(from, fd))
		return -ESTALE;
	if (renameat2(from->dir, from->name, to->dir, to->name, RENAME_NOREPLACE))
		err = -errno;
	/* Not every file system has renameat2. */
	if (err == -EINVAL || err == -ENOSYS) {
		err = faccessat(to->dir, to->name, F_OK, AT_SYMLINK_NOFOLLOW) ? 0 : -EEXIST;
		if (!err && renameat(from->dir, from->name, to->dir, to->name))
			err = -errno;
	}
	if (err == -EEXIST)
		err = replace(from, to);
	return err || has_name(to, fd) ? err : -ESTALE;
}

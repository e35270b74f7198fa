/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker.h"
#include "folder.h"
#include "log.h"
#include "owner.h"

const char *place_advice(int err)
{
	switch (err) {
	case ENOSPC:
	case EDQUOT:
		return ": free some space or name a file elsewhere";
	case EMFILE:
		return ": raise ulimit -n";
	case EFBIG:
		return ": raise ulimit -f or trace for a shorter time";
	case EACCES:
	case EPERM:
	case EROFS:
		return ": name a file in a folder that can be written to";
	case ELOOP:
		return ": a symbolic link is not followed, name the file itself";
	case ENOTDIR:
	case EISDIR:
		return ": name a file in a folder";
	default:
		return "";
	}
}

int place_fail(const char *path, int err)
{
	log_err("%s: %s%s", path, strerror(err), place_advice(err));
	return -err;
}

int place_find_own_fd(const char *path)
{
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
	char *end = NULL;
	unsigned long fd;

	if (!strcmp(path, "/dev/stdout"))
		return STDOUT_FILENO;
	if (!strcmp(path, "/dev/stderr"))
		return STDERR_FILENO;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		size_t length = strlen(folders[i]);

		if (strncmp(path, folders[i], length) || path[length] < '0' || path[length] > '9')
			continue;
		fd = strtoul(path + length, &end, 10);
		return *end || fd > INT32_MAX ? -1 : (int)fd;
	}
	return -1;
}

int place_open(struct place *place, const char *path)
{
	bool told = false;
	int err = 0;

	*place = (struct place){.path = strdup(path), .dir = -1};
	if (!place->path)
		err = -ENOMEM;
	else
		place->dir = folder_open_parent(path, &place->name, &place->is_foreign, &told);
	if (!err && place->dir < 0)
		err = place->dir;
	else if (!err && (!*place->name || !strcmp(place->name, ".") || !strcmp(place->name, "..")))
		err = -EISDIR;
	if (err) {
		if (!told)
			place_fail(path, -err);
		place_clear(place);
	}
	return err;
}

void place_clear(struct place *place)
{
	if (place->dir >= 0)
		close(place->dir);
	free(place->path);
	free(place->name);
	*place = (struct place){.dir = -1};
}

/* Whether a file belongs to us, to the user behind sudo or to the folder's owner. */
static bool is_ours(const struct place *place, const struct stat *file)
{
	struct stat dir;

	if (owner_is_us(file->st_uid))
		return true;
	/* Where everyone may write, or a group member put the folder, its owner's are not. */
	return !place->is_foreign && !fstat(place->dir, &dir) && !(dir.st_mode & S_IWOTH) &&
	       file->st_uid == dir.st_uid;
}

int place_stat(const struct place *place, struct stat *file)
{
	int err;

	if (!fstatat(place->dir, place->name, file, AT_SYMLINK_NOFOLLOW))
		return 0;
	err = errno;
	return err == ENOENT ? -err : place_fail(place->path, err);
}

int place_check(const struct place *place, const struct stat *file)
{
	const char *path = place->path;

	if (S_ISLNK(file->st_mode))
		return place_fail(path, ELOOP);
	if (S_ISDIR(file->st_mode))
		return place_fail(path, EISDIR);
	if (S_ISCHR(file->st_mode))
		return 0;
	if (!S_ISREG(file->st_mode) && !S_ISFIFO(file->st_mode)) {
		log_err("%s: neither a regular file nor a FIFO: name another file", path);
		return -EINVAL;
	}
	/* Nobody else's pipe: one without a reader would have us wait for ever. */
	if (S_ISFIFO(file->st_mode) ? !owner_is_us(file->st_uid) : !is_ours(place, file)) {
		log_err("%s: belongs to another user (uid %u): name another file", path,
			(unsigned int)file->st_uid);
		return -EPERM;
	}
	if (S_ISREG(file->st_mode) && file->st_nlink > 1) {
		log_err("%s: has %lu hard links: name another file", path,
			(unsigned long)file->st_nlink);
		return -EPERM;
	}
	return 0;
}

int place_append_serve(const void *path, const struct broker_order *nothing)
{
	struct place place;
	int fd = -1, err = place_open(&place, path);

	(void)nothing;
	if (err)
		return err;
	err = place_open_existing(&place, O_RDWR | O_APPEND, &fd);
	place_clear(&place);
	return err ? err : fd;
}

/* A descriptor or -errno. */
static int open_checked(const struct place *place, int flags)
{
	int fd = -ENOSYS;

	if (flags & O_APPEND && broker_is_there())
		fd = broker_open(BROKER_APPEND, 0, 0, NULL);
	if (fd != -ENOSYS)
		return fd;
	fd = openat(place->dir, place->name, flags | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int place_open_existing(const struct place *place, int flags, int *result)
{
	struct stat file;
	int fd = -1, err;

	err = place_stat(place, &file);
	if (!err)
		err = place_check(place, &file);
	if (err)
		return err;
	/*
	 * Waiting for a FIFO's reader is what its user asked for; a regular file may have been
	 * replaced by one meanwhile, and that must not hang.
	 */
	if (S_ISREG(file.st_mode))
		flags |= O_NONBLOCK;
	else
		flags = (flags & ~O_ACCMODE) | O_WRONLY;
	fd = open_checked(place, flags);
	if (fd < 0)
		return place_fail(place->path, -fd);
	err = fstat(fd, &file) ? place_fail(place->path, errno) : place_check(place, &file);
	if (err) {
		close(fd);
		return err;
	}
	if (flags & O_NONBLOCK)
		(void)fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
	*result = fd;
	return 0;
}

int place_create(const struct place *place, int flags, int *result)
{
	int fd = openat(place->dir, place->name,
			flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, 0600);
	int err = fd < 0 ? errno : 0;

	if (err)
		return err == EEXIST ? -err : place_fail(place->path, err);
	owner_give(fd, place->path);
	*result = fd;
	return 0;
}

/* Whether it is what is behind fd that has the name. */
static bool has_name(const struct place *place, int fd)
{
	struct stat named, file;

	return !fstatat(place->dir, place->name, &named, AT_SYMLINK_NOFOLLOW) &&
	       !fstat(fd, &file) && named.st_dev == file.st_dev && named.st_ino == file.st_ino;
}

/* As place_check of a regular file, without a message. */
static bool may_replace(const struct place *place)
{
	struct stat file;

	return !fstatat(place->dir, place->name, &file, AT_SYMLINK_NOFOLLOW) &&
	       S_ISREG(file.st_mode) && file.st_nlink == 1 && is_ours(place, &file);
}

/*
 * Gives from's file the name to, which something has: looked at before, and again when it is out of
 * the way, where nobody can have changed it in between.
 */
static int replace(const struct place *from, const struct place *to)
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

int place_rename(const struct place *from, const struct place *to, int fd)
{
	int err = 0;

	if (!has_name(from, fd))
		return -ESTALE;
	if (renameat2(from->dir, from->name, to->dir, to->name, RENAME_NOREPLACE))
		err = -errno;
	/* Not every file system can do that. */
	if (err == -EINVAL || err == -ENOSYS) {
		err = faccessat(to->dir, to->name, F_OK, AT_SYMLINK_NOFOLLOW) ? 0 : -EEXIST;
		if (!err && renameat(from->dir, from->name, to->dir, to->name))
			err = -errno;
	}
	if (err == -EEXIST)
		err = replace(from, to);
	return err || has_name(to, fd) ? err : -ESTALE;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "log.h"
#include "owner.h"

#define LINKS_MAX	40 /* as the kernel */
#define PROC_ROOT_INODE 1  /* PROC_ROOT_INO of linux/proc_fs.h */

struct walk {
	const char *path; /* as given, for messages */
	int dir;	  /* where we are; O_PATH */
	char *rest;	  /* what is still to be walked, the file's name included */
	unsigned int links;
	bool left_root;	 /* came through a link of /proc */
	bool is_foreign; /* came through a folder that a member of some group may have put there */
	bool told;	 /* why it failed was said */
};

static int refuse(struct walk *walk, const char *name, uid_t uid, const char *what, int err)
{
	log_err("%s: %s is %s of another user (uid %u): name a folder that is yours", walk->path,
		name, what, (unsigned int)uid);
	walk->told = true;
	return err;
}

static bool is_empty(int fd)
{
	const struct dirent *entry;
	bool is_empty = true;
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = copy < 0 ? NULL : fdopendir(copy);

	if (!folder) {
		if (copy >= 0)
			close(copy);
		return false;
	}
	while (is_empty && (entry = readdir(folder)))
		is_empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	closedir(folder);
	return is_empty;
}

/*
 * Makes the folder and opens it: the descriptor or -errno. Whoever may write to the folder around
 * it may have put another of root's folders there since; a new one is empty.
 */
static int make_folder(const struct walk *walk, const char *name)
{
	bool made = !mkdirat(walk->dir, name, 0755);
	struct stat status;
	int fd;

	if (!made && errno != EEXIST)
		return -errno;
	fd = openat(walk->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (made && !fstat(fd, &status) && status.st_uid == geteuid() && is_empty(fd))
		owner_give(fd, walk->path);
	return fd;
}

/* Whether a folder may be entered from where we are: 0 or -EPERM. */
static int check_folder(struct walk *walk, const char *name, const struct stat *status)
{
	struct stat around;

	if (owner_is_trusted(status->st_uid))
		return 0;
	if (fstat(walk->dir, &around) || (around.st_mode & S_IWOTH))
		return refuse(walk, name, status->st_uid, "a folder", -EPERM);
	/* Whose the folder around is might do the same without a group: it is often their own. */
	if ((around.st_mode & S_IWGRP) && around.st_uid != status->st_uid)
		walk->is_foreign = true;
	return 0;
}

/* In a folder of /proc, but not in /proc itself: its own links, as self, are names. */
static bool is_in_process(const struct walk *walk)
{
	struct statfs system;
	struct stat status;

	return !fstatfs(walk->dir, &system) && system.f_type == PROC_SUPER_MAGIC &&
	       !fstat(walk->dir, &status) && status.st_ino != PROC_ROOT_INODE;
}

static void enter(struct walk *walk, int fd)
{
	close(walk->dir);
	walk->dir = fd;
}

/* A link of /proc leads to a file, not to a name. */
static int enter_proc_link(struct walk *walk, const char *name)
{
	int fd = openat(walk->dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	walk->left_root = true;
	enter(walk, fd);
	return 0;
}

/* Puts what the link says in front of what is still to be walked. */
static int follow_link(struct walk *walk, int link, const char *name, const struct stat *status)
{
	char target[PATH_MAX];
	char *rest = NULL;
	ssize_t size;
	int root;

	if (++walk->links > LINKS_MAX)
		return -ELOOP;
	if (walk->left_root)
		return refuse(walk, name, status->st_uid, "a symbolic link in the root", -ELOOP);
	if (is_in_process(walk))
		return enter_proc_link(walk, name);
	/* With two names it may be anyone's who could make the second one. */
	if (!owner_is_trusted(status->st_uid) || status->st_nlink > 1)
		return refuse(walk, name, status->st_uid, "a symbolic link", -ELOOP);
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
	int fd = openat(walk->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;
	int err = 0;

	if (fd < 0 && errno == ENOENT)
		fd = make_folder(walk, name);
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
		err = check_folder(walk, name, &status);
	if (err || S_ISLNK(status.st_mode))
		close(fd);
	else
		enter(walk, fd);
	return err;
}

/* Up to the last slash, which leaves the file's name in walk->rest. */
static int walk_all(struct walk *walk)
{
	char name[NAME_MAX + 1];
	int err = 0;

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

int folder_open_parent(const char *path, char **name, bool *is_foreign, bool *told)
{
	struct walk walk = {.path = path, .dir = -1, .rest = strdup(path)};
	int err = walk.rest ? 0 : -ENOMEM;

	*name = NULL;
	*is_foreign = *told = false;
	if (!err) {
		walk.dir = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
		err = walk.dir < 0 ? -errno : walk_all(&walk);
	}
	if (!err) {
		*name = walk.rest;
		*is_foreign = walk.is_foreign;
		return walk.dir;
	}
	*told = walk.told;
	free(walk.rest);
	if (walk.dir >= 0)
		close(walk.dir);
	return err;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "flag.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "log.h"

#define WATCHED (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MOVE_SELF)

/* Without inotify; and with it, should it miss something. */
#define TURN_NS	      100000000ull
#define QUIET_TURN_NS 1000000000ull

/*
 * Events that come while we look make us look again; somebody may go on for ever. A queue of
 * inotify holds 16,384 by default, of some 32 bytes.
 */
#define LOOKS_MAX 8
#define READS_MAX 256

/* Of <linux/magic.h> of newer kernels. */
#define MAGIC_CIFS 0xff534d42
#define MAGIC_SMB2 0xfe534d42
#define MAGIC_FUSE 0x65735546
#define MAGIC_CEPH 0x00c36400
#define MAGIC_9P   0x01021997

/* Which file it is. An inode's number may be given again at once, its time of birth is another. */
struct identity {
	uint64_t inode;
	uint32_t device[2];
	struct statx_timestamp birth; /* 0: the file system keeps none */
};

struct flag {
	const char *path;
	const char *name; /* behind the folder in path */
	char *folder;
	int fd;	   /* inotify; -1: there is none */
	int watch; /* of the folder; -1: there is none */
	bool is_remote;
	bool present;
	uint64_t time; /* it is, or was, there */
	struct identity identity;
	bool warned; /* of what is in its place now, or why it cannot be looked at */
};

/* What a look saw. */
struct sight {
	bool present;
	struct identity identity;
};

static const char *why_no_flag(uint32_t mode)
{
	if (S_ISDIR(mode))
		return "is a folder: a flag is a file";
	if (S_ISLNK(mode))
		return "is a symbolic link: a flag is a file of its own";
	return NULL;
}

/* 0, -EINVAL with *why if something else is there, or -errno of the look. */
static int see(const struct flag *flag, struct sight *sight, const char **why)
{
	struct statx file;

	*sight = (struct sight){0};
	if (statx(AT_FDCWD, flag->path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
		  STATX_TYPE | STATX_INO | STATX_BTIME, &file))
		return errno == ENOENT ? 0 : -errno;
	*why = why_no_flag(file.stx_mode);
	if (*why)
		return -EINVAL;
	sight->present = true;
	sight->identity = (struct identity){
		.inode = file.stx_ino,
		.device = {file.stx_dev_major, file.stx_dev_minor},
	};
	if (file.stx_mask & STATX_BTIME) {
		sight->identity.birth.tv_sec = file.stx_btime.tv_sec;
		sight->identity.birth.tv_nsec = file.stx_btime.tv_nsec;
	}
	return 0;
}

static bool is_same(const struct identity *a, const struct identity *b)
{
	return a->inode == b->inode && a->device[0] == b->device[0] &&
	       a->device[1] == b->device[1] && a->birth.tv_sec == b->birth.tv_sec &&
	       a->birth.tv_nsec == b->birth.tv_nsec;
}

/* inotify tells only of what this machine does. */
static bool is_remote(const char *folder)
{
	struct statfs system;

	if (statfs(folder, &system))
		return false;
	switch ((uint32_t)system.f_type) {
	case NFS_SUPER_MAGIC:
	case AFS_SUPER_MAGIC:
	case CODA_SUPER_MAGIC:
	case MAGIC_CIFS:
	case MAGIC_SMB2:
	case MAGIC_FUSE:
	case MAGIC_CEPH:
	case MAGIC_9P:
		return true;
	default:
		return false;
	}
}

/* The folder may come, go or be replaced: what stands under its name now is watched. */
static void watch_folder(struct flag *flag)
{
	int watch;

	if (flag->fd < 0)
		return;
	watch = inotify_add_watch(flag->fd, flag->folder, WATCHED | IN_ONLYDIR);
	if (watch == flag->watch)
		return;
	if (watch < 0)
		log_debug("%s: not watched: %s", flag->folder, strerror(errno));
	else
		flag->is_remote = is_remote(flag->folder);
	if (flag->watch >= 0)
		inotify_rm_watch(flag->fd, flag->watch);
	flag->watch = watch;
}

static void take_event(struct flag *flag, const struct inotify_event *event, bool *present,
		       bool *went, uint64_t *came)
{
	if (event->wd != flag->watch)
		return;
	if (event->mask & IN_IGNORED)
		flag->watch = -1;
	if (!event->len || strcmp(event->name, flag->name) != 0 || (event->mask & IN_ISDIR))
		return;
	/* One that repeats what a look has seen already is late. */
	if (event->mask & (IN_CREATE | IN_MOVED_TO)) {
		*came += !*present;
		*present = true;
	} else if (event->mask & (IN_DELETE | IN_MOVED_FROM)) {
		*went |= *present;
		*present = false;
	}
}

/* Follows what inotify tells from *present on; whether it told anything. */
static bool take_events(struct flag *flag, bool *present, bool *went, uint64_t *came)
{
	_Alignas(struct inotify_event) char buffer[4096];
	const struct inotify_event *event;
	bool told = false;
	ssize_t length;

	for (int i = 0; flag->fd >= 0 && i < READS_MAX; i++) {
		length = read(flag->fd, buffer, sizeof(buffer));
		if (length <= 0)
			break;
		told = true;
		for (ssize_t at = 0; at < length; at += (ssize_t)(sizeof(*event) + event->len)) {
			event = (const struct inotify_event *)(buffer + at);
			take_event(flag, event, present, went, came);
		}
	}
	return told;
}

static void warn_once(struct flag *flag, int err, const char *why)
{
	if (!flag->warned)
		log_warn("%s: %s: no window is opened by it", flag->path,
			 why ? why : strerror(-err));
	flag->warned = true;
}

uint64_t flag__look(struct flag *flag)
{
	struct sight sight = {0};
	const char *why = NULL;
	bool present = flag->present, went = false;
	uint64_t came = 0;
	int err = 0;

	watch_folder(flag);
	take_events(flag, &present, &went, &came);
	for (int i = 0; i < LOOKS_MAX; i++) {
		err = see(flag, &sight, &why);
		if (!take_events(flag, &present, &went, &came))
			break;
	}
	if (err && err != -ENOTDIR)
		warn_once(flag, err, why);
	else
		flag->warned = false;
	/* What cannot be looked at now, on a file server that is away, may still be there. */
	if (err && err != -ENOTDIR && !why)
		return flag->present ? flag->time : 0;
	if (came > sight.present)
		log_info("%s: came and went before a window could be opened", flag->path);
	if (sight.present && (!flag->present || went || !is_same(&sight.identity, &flag->identity)))
		flag->time++;
	flag->present = sight.present;
	flag->identity = sight.identity;
	return flag->present ? flag->time : 0;
}

static int set_path(struct flag *flag, const char *path)
{
	const char *slash = strrchr(path, '/');

	flag->path = path;
	flag->name = slash ? slash + 1 : path;
	if (!slash)
		flag->folder = strdup(".");
	else
		flag->folder = strndup(path, slash == path ? 1 : (size_t)(slash - path));
	return flag->folder ? 0 : -ENOMEM;
}

static int check_path(const struct flag *flag)
{
	struct sight sight;
	const char *why = NULL;
	int err;

	if (!*flag->name) {
		log_err("--flag %s: names no file", flag->path);
		return -EINVAL;
	}
	err = see(flag, &sight, &why);
	if (err)
		log_err("--flag %s: %s", flag->path, why ? why : strerror(-err));
	return err;
}

int flag__new(struct flag **result, const char *path)
{
	struct flag *flag = calloc(1, sizeof(*flag));
	int err;

	*result = NULL;
	if (!flag)
		return -ENOMEM;
	flag->fd = flag->watch = -1;
	err = set_path(flag, path);
	if (!err)
		err = check_path(flag);
	if (err) {
		flag__free(flag);
		return err;
	}
	flag->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (flag->fd < 0)
		log_debug("%s: inotify: %s: looked at every 100 ms", path, strerror(errno));
	watch_folder(flag);
	*result = flag;
	return 0;
}

void flag__free(struct flag *flag)
{
	if (!flag)
		return;
	if (flag->fd >= 0)
		close(flag->fd);
	free(flag->folder);
	free(flag);
}

int flag__fd(const struct flag *flag)
{
	return flag->fd;
}

uint64_t flag__turn_ns(const struct flag *flag)
{
	return flag->watch < 0 || flag->is_remote ? TURN_NS : QUIET_TURN_NS;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "trace/flag.h"

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

#include "base/clock.h"
#include "base/log.h"

#define WATCHED (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MOVE_SELF)

/* How often to look without inotify, and with it, in case it misses something. */
#define TURN_NS	      100000000ull
#define QUIET_TURN_NS NS_PER_S

/*
 * Events during a look cause another look, but not without limit. inotify queues at most 16,384
 * events by default, of some 32 bytes each.
 */
#define LOOKS_MAX 8
#define READS_MAX 256

/* From <linux/magic.h> of newer kernels. */
#define MAGIC_CIFS 0xff534d42
#define MAGIC_SMB2 0xfe534d42
#define MAGIC_FUSE 0x65735546
#define MAGIC_CEPH 0x00c36400
#define MAGIC_9P   0x01021997

/*
 * Identifies a file. An inode number may be reused at once, but then the file has another birth
 * time.
 */
struct identity {
	uint64_t inode;
	uint32_t device[2];
	struct statx_timestamp birth; /* 0: the file system keeps none */
};

struct flag {
	const char *path;
	const char *name; /* last part of path */
	char *folder;
	int fd;	   /* inotify; -1: there is none */
	int watch; /* inotify's watch of the folder; -1: there is none */
	bool is_remote;
	bool present;
	uint64_t time; /* how many times the flag has appeared */
	struct identity identity;
	bool warned; /* a warning about the flag has been logged */
};

struct sight {
	bool present;
	struct identity identity;
};

/* What happened since the last look, according to events. */
struct changes {
	bool present;
	bool went;
	uint64_t came; /* how many times the flag appeared */
};

static const char *why_no_flag(uint32_t mode)
{
	if (S_ISDIR(mode))
		return "is a folder: a flag is a file";
	if (S_ISLNK(mode))
		return "is a symbolic link: a flag is a file of its own";
	return NULL;
}

/* 0; -EINVAL if something else has the flag's name, and *why says what; or -errno of statx. */
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

/* Whether the file system is remote: inotify reports only what this machine does. */
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

/* Watches what has the folder's name now: the folder may be created, removed or replaced. */
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

static void take_event(struct flag *flag, const struct inotify_event *event,
		       struct changes *changes)
{
	if (event->wd != flag->watch)
		return;
	if (event->mask & IN_IGNORED)
		flag->watch = -1;
	if (!event->len || strcmp(event->name, flag->name) != 0 || (event->mask & IN_ISDIR))
		return;
	/* An event that tells what a look has already seen is late. */
	if (event->mask & (IN_CREATE | IN_MOVED_TO)) {
		changes->came += !changes->present;
		changes->present = true;
	} else if (event->mask & (IN_DELETE | IN_MOVED_FROM)) {
		changes->went |= changes->present;
		changes->present = false;
	}
}

/* Reads all events. Returns whether there were any. */
static bool take_events(struct flag *flag, struct changes *changes)
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
			take_event(flag, event, changes);
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
	struct changes changes = {.present = flag->present};
	int err = 0;

	watch_folder(flag);
	take_events(flag, &changes);
	for (int i = 0; i < LOOKS_MAX; i++) {
		err = see(flag, &sight, &why);
		if (!take_events(flag, &changes))
			break;
	}
	if (err && err != -ENOTDIR)
		warn_once(flag, err, why);
	else
		flag->warned = false;
	/* A flag on a file server that does not answer may still be present. */
	if (err && err != -ENOTDIR && !why)
		return flag->present ? flag->time : 0;
	if (changes.came > sight.present)
		log_info("%s: came and went before a window could be opened", flag->path);
	if (sight.present &&
	    (!flag->present || changes.went || !is_same(&sight.identity, &flag->identity)))
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
	flag->folder =
		strndup(slash ? path : ".", slash && slash != path ? (size_t)(slash - path) : 1);
	return flag->folder ? 0 : -ENOMEM;
}

static int check_path(const struct flag *flag)
{
	struct sight sight;
	const char *why = NULL;
	int err;

	if (!*flag->name) {
		log_err("--flag: invalid value '%s' (expected the path of a file)", flag->path);
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

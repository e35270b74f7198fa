/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "watch/dumps.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"
#include "output/file.h"
#include "output/safe_file.h"

#define PREFIX	"ferrum_watch_"
#define PARTIAL ".partial"
/* d: a digit. */
#define TIME_FORM "ddddddddTdddddddddZ_"

/* As flight_reason_name. */
static const char *const reasons[] = {"escalation", "hang", "manual"};
static const char *const parts[] = {"_calls", "_sample", ""};
static const char *const suffixes[] = {".fbt.gz", ".trace.json.gz", ".pftrace.gz", ".jsonl.gz",
				       ".html"};

/* Half a second: who has the folder alone deletes some files. */
#define SHARE_TRIES    50
#define SHARE_PAUSE_NS (10 * NS_PER_MS)

/* A file may be dated so much later than now, by another machine's clock. */
#define CLOCK_SLACK_S 60

#define MESSAGE_MAX 512

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

void dump_stem(char stem[DUMP_STEM_MAX], uint64_t realtime_ns, uint32_t tgid, const char *reason)
{
	time_t seconds = (time_t)(realtime_ns / NS_PER_S);
	char text[32] = "";
	struct tm utc;

	if (gmtime_r(&seconds, &utc))
		strftime(text, sizeof(text), "%Y%m%dT%H%M%S", &utc);
	snprintf(stem, DUMP_STEM_MAX, PREFIX "%s%03" PRIu64 "Z_%" PRIu32 "_%s", text,
		 realtime_ns % NS_PER_S / NS_PER_MS, tgid, reason);
}

/* The word of words with which text begins; NULL: none. */
static const char *find_start(const char *text, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!strncmp(text, words[i], strlen(words[i])))
			return words[i];
	}
	return NULL;
}

static bool has_form(const char *text, const char *form)
{
	for (; *form; form++, text++) {
		if (*form == 'd' ? !isdigit((unsigned char)*text) : *text != *form)
			return false;
	}
	return true;
}

size_t dump_stem_of(const char *name, bool *is_partial)
{
	const char *at = name + sizeof(PREFIX) - 1, *reason, *end;
	size_t digits;

	*is_partial = false;
	if (strncmp(name, PREFIX, sizeof(PREFIX) - 1) != 0 || !has_form(at, TIME_FORM))
		return 0;
	at += sizeof(TIME_FORM) - 1;
	digits = strspn(at, "0123456789");
	if (!digits || at[digits] != '_')
		return 0;
	at += digits + 1;
	reason = find_start(at, reasons, COUNT_OF(reasons));
	if (!reason)
		return 0;
	end = at += strlen(reason);
	at += strlen(find_start(at, parts, COUNT_OF(parts)));
	reason = find_start(at, suffixes, COUNT_OF(suffixes));
	if (!reason)
		return 0;
	at += strlen(reason);
	*is_partial = !strcmp(at, PARTIAL);
	return !*at || *is_partial ? (size_t)(end - name) : 0;
}

struct dump_file {
	char *name;
	size_t stem; /* length */
	uint64_t bytes;
	int64_t time; /* in seconds; in order_files: of the dump's last file */
	bool is_partial;
};

typedef VEC(struct dump_file) file_vec;

static void clear_files(file_vec *files)
{
	vec_for_each (file, files)
		free(file->name);
	vec_free(files);
}

static int compare_names(const void *left, const void *right)
{
	const struct dump_file *a = left, *b = right;

	return strcmp(a->name, b->name);
}

static bool is_ours(const struct stat *file)
{
	uid_t uid;
	gid_t gid;

	return S_ISREG(file->st_mode) && (file->st_uid == geteuid() ||
					  (safe_file_find_user(&uid, &gid) && file->st_uid == uid));
}

static int add_file(file_vec *files, int dir, const char *name)
{
	struct dump_file file = {0};
	struct stat status;

	file.stem = dump_stem_of(name, &file.is_partial);
	if (!file.stem || fstatat(dir, name, &status, AT_SYMLINK_NOFOLLOW) || !is_ours(&status))
		return 0;
	file.bytes = (uint64_t)status.st_blocks * 512;
	file.time = status.st_mtim.tv_sec;
	file.name = strdup(name);
	if (!file.name)
		return -ENOMEM;
	if (!vec_push(files, file))
		return 0;
	free(file.name);
	return -ENOMEM;
}

/* Opens the directory as files in it are opened, so that no link of another user is followed. */
static DIR *open_dir(const char *path, int *dir)
{
	struct safe_file probe;
	char name[4096];
	DIR *list = NULL;
	int fd;

	snprintf(name, sizeof(name), "%s/%s", path, PREFIX);
	if (safe_file_open(&probe, name))
		return NULL;
	fd = openat(probe.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	safe_file_clear(&probe);
	if (fd >= 0)
		list = fdopendir(fd);
	if (!list) {
		log_err("%s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	*dir = fd;
	return list;
}

/* The files of all dumps, by name. The directory stays open; NULL: logged. */
static DIR *list_files(const char *path, file_vec *files, int *dir)
{
	DIR *list = open_dir(path, dir);
	const struct dirent *entry;

	if (!list)
		return NULL;
	while ((entry = readdir(list))) {
		if (add_file(files, *dir, entry->d_name)) {
			log_err("%s: %s", path, strerror(ENOMEM));
			break;
		}
	}
	vec_sort(files, compare_names);
	return list;
}

static bool same_stem(const struct dump_file *a, const struct dump_file *b)
{
	return a->stem == b->stem && !strncmp(a->name, b->name, a->stem);
}

/* Whether the dump is of an escalation: they may be many. */
static bool is_common(const struct dump_file *file)
{
	size_t size = strlen(reasons[0]);

	return file->stem > size && !strncmp(file->name + file->stem - size, reasons[0], size);
}

static int compare_order(const void *left, const void *right)
{
	const struct dump_file *a = left, *b = right;

	if (is_common(a) != is_common(b))
		return is_common(a) ? -1 : 1;
	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return compare_names(left, right);
}

/*
 * From by name to what is deleted first: escalations, and of each the oldest. What is from the
 * future is from before the clock was set back, so that it is older than what came since.
 */
static void order_files(file_vec *files)
{
	int64_t last = (int64_t)(clock_ns(CLOCK_REALTIME) / NS_PER_S) + CLOCK_SLACK_S, time;
	size_t next;

	for (size_t i = 0; i < files->count; i = next) {
		time = INT64_MIN;
		for (next = i; next < files->count; next++) {
			const struct dump_file *file = &files->items[next];

			if (!same_stem(&files->items[i], file))
				break;
			time = file->time > time ? file->time : time;
		}
		for (size_t j = i; j < next; j++)
			files->items[j].time = time > last ? INT64_MIN : time;
	}
	vec_sort(files, compare_order);
}

/* Deletes files of one dump, from index on. Returns the index after them. */
static size_t delete_dump(const file_vec *files, size_t index, int dir, struct dump_usage *usage)
{
	const struct dump_file *first = &files->items[index];

	for (; index < files->count && same_stem(first, &files->items[index]); index++) {
		const struct dump_file *file = &files->items[index];

		if (unlinkat(dir, file->name, 0) && errno != ENOENT) {
			log_warn("%s: cannot be deleted: %s", file->name, strerror(errno));
			continue;
		}
		usage->bytes -= file->bytes;
	}
	usage->dumps--;
	usage->deleted++;
	return index;
}

static void count_all(const file_vec *files, struct dump_usage *usage)
{
	*usage = (struct dump_usage){0};
	for (size_t i = 0; i < files->count; i++) {
		usage->bytes += files->items[i].bytes;
		usage->dumps += !i || !same_stem(&files->items[i - 1], &files->items[i]);
	}
}

static bool is_kept(const struct dump_file *file, const char *keep)
{
	return keep && strlen(keep) == file->stem && !strncmp(keep, file->name, file->stem);
}

static size_t after_dump(const file_vec *files, size_t index)
{
	const struct dump_file *first = &files->items[index];

	while (index < files->count && same_stem(first, &files->items[index]))
		index++;
	return index;
}

/* Whether more than what is to be kept is free for bytes, once so much of ours is deleted. */
static bool has_disk(const struct disk_room *room, uint64_t deleted, uint64_t bytes)
{
	return add_saturating(room->free_bytes, deleted) >= add_saturating(room->keep_bytes, bytes);
}

/* Whether it can be met at all. 0, -ENOSPC or -EDQUOT. */
static int check_alone(const struct dump_limits *limits, const struct disk_room *room,
		       uint64_t others, uint64_t kept, uint64_t bytes)
{
	if (!bytes)
		return 0;
	if (add_saturating(bytes, kept) > limits->bytes)
		return -ENOSPC;
	return has_disk(room, others, bytes) ? 0 : -EDQUOT;
}

int dumps_make_room(const char *path, const struct dump_limits *limits, uint64_t bytes,
		    const char *keep, struct dump_usage *usage)
{
	file_vec files = {0};
	uint32_t more = bytes != 0;
	size_t i = 0;
	int dir, err;
	DIR *list = list_files(path, &files, &dir);
	uint64_t kept = 0, before;
	struct disk_room room;

	*usage = (struct dump_usage){0};
	if (!list)
		return -EIO;
	order_files(&files);
	count_all(&files, usage);
	room = disk_room_of(dir, limits->keep_free);
	before = usage->bytes;
	vec_for_each (file, &files) {
		if (!is_kept(file, keep))
			continue;
		more = 0; /* it has files already */
		kept += file->bytes;
	}
	/* No dump is deleted for one that has no room even alone. */
	err = check_alone(limits, &room, before - kept, kept, bytes);
	while (!err && i < files.count &&
	       (usage->dumps + more > limits->dumps ||
		add_saturating(usage->bytes, bytes) > limits->bytes ||
		(bytes && !has_disk(&room, before - usage->bytes, bytes))))
		i = is_kept(&files.items[i], keep) ? after_dump(&files, i)
						   : delete_dump(&files, i, dir, usage);
	if (!err && add_saturating(usage->bytes, bytes) > limits->bytes)
		err = -ENOSPC;
	if (!err && bytes && !has_disk(&room, before - usage->bytes, bytes))
		err = -EDQUOT;
	closedir(list);
	clear_files(&files);
	return err;
}

/* The folder of a directory; the text is the caller's. NULL: -ENOMEM. */
static char *folder_of(const char *path)
{
	char *folder;

	return asprintf(&folder, "%s/" DUMPS_FOLDER, path) < 0 ? NULL : folder;
}

static bool is_of(const struct dump_file *file, const char *stem)
{
	return !stem || is_kept(file, stem);
}

static bool is_capture(const char *name)
{
	size_t length = strlen(name), size = strlen(suffixes[0]);

	return length > size && !strcmp(name + length - size, suffixes[0]);
}

static int move(const struct dump_file *file, int from, int to)
{
	int err;

	if (!renameat2(from, file->name, to, file->name, RENAME_NOREPLACE))
		return 0;
	err = -errno;
	/* File systems that cannot do that, as NFS: names have the time to a millisecond. */
	if (err == -EINVAL && !renameat(from, file->name, to, file->name))
		return 0;
	log_err("%s: cannot be moved from " DUMPS_FOLDER ": %s", file->name, strerror(-err));
	return err;
}

int dumps_publish(const char *path, const char *stem, bool only_captures)
{
	char *folder = folder_of(path);
	file_vec files = {0};
	int from, to, err = 0;
	DIR *source = folder ? list_files(folder, &files, &from) : NULL;
	DIR *target = source ? open_dir(path, &to) : NULL;

	if (!target)
		err = folder ? -EIO : -ENOMEM;
	vec_for_each (file, &files) {
		if (!err && is_of(file, stem) && !file->is_partial &&
		    (!only_captures || is_capture(file->name)))
			keep_first(&err, move(file, from, to));
	}
	if (source)
		closedir(source);
	if (target)
		closedir(target);
	clear_files(&files);
	free(folder);
	return err;
}

void dumps_sweep(const char *path, const char *stem)
{
	char *folder = folder_of(path);
	file_vec files = {0};
	int dir;
	DIR *list = folder ? list_files(folder, &files, &dir) : NULL;

	vec_for_each (file, &files) {
		if (is_of(file, stem) && unlinkat(dir, file->name, 0) && errno != ENOENT)
			log_warn("%s: cannot be deleted: %s", file->name, strerror(errno));
	}
	if (list)
		closedir(list);
	clear_files(&files);
	free(folder);
}

/* Shares the folder. Anybody who may read it can lock it, so nobody is waited for for long. */
static void share(int fd)
{
	const struct timespec pause = {.tv_nsec = SHARE_PAUSE_NS};

	for (int i = 0; i < SHARE_TRIES; i++) {
		if (!flock(fd, LOCK_SH | LOCK_NB))
			return;
		nanosleep(&pause, NULL);
	}
	log_warn(DUMPS_FOLDER ": is locked: if another watch begins in the same directory, dumps "
			      "that are being written may be lost");
}

static void keep_message(void *ctx, enum log_level level, const char *message)
{
	if (level == LOG_ERR)
		snprintf(ctx, MESSAGE_MAX, "%s", message);
}

/* What safe_file says names a file that nobody has asked for; but it knows whose a directory is. */
static int refuse(const char *path, int err, const char *message)
{
	if (err == -EROFS)
		log_err("dir %s: dumps cannot be written there: %s; as a service, watch needs "
			"ReadWritePaths=%s in a drop-in (systemctl edit ferrum-bpftrace)",
			path, strerror(-err), path);
	else if ((err == -EPERM || err == -ELOOP) && *message)
		log_err("%s", message);
	else
		log_err("dir %s: dumps cannot be written there: %s; choose another --dir", path,
			strerror(-err));
	return err;
}

/* Whether files can be made in the folder, and moved from there to its directory. 0 or -errno. */
static int check_folder(int folder)
{
	return faccessat(folder, ".", W_OK | X_OK, 0) || faccessat(folder, "..", W_OK | X_OK, 0)
		       ? -errno
		       : 0;
}

/* A descriptor, or -errno, logged. */
static int open_folder(const char *path)
{
	char message[MESSAGE_MAX] = "", *name;
	struct safe_file probe;
	int fd = -1, err;
	struct log_diversion before;

	if (asprintf(&name, "%s/" DUMPS_FOLDER "/" PREFIX, path) < 0)
		return refuse(path, -ENOMEM, "");
	before = log_divert((struct log_diversion){keep_message, message});
	err = safe_file_open(&probe, name);
	log_divert(before);
	free(name);
	if (err)
		return refuse(path, err, message);
	fd = openat(probe.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = fd < 0 ? -errno : check_folder(fd);
	safe_file_clear(&probe);
	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	return refuse(path, err, "");
}

int dumps_enter(const char *path)
{
	int fd = open_folder(path);

	if (fd < 0)
		return fd;
	if (!flock(fd, LOCK_EX | LOCK_NB) && !dumps_publish(path, NULL, true))
		dumps_sweep(path, NULL);
	share(fd);
	return fd;
}

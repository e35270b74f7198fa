/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "output/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/format.h"
#include "base/gzip.h"
#include "base/log.h"
#include "base/timed_write.h"
#include "output/safe_file.h"

#define PARTIAL_SUFFIX ".partial"
#define OLD_PREFIX     "old."
#define BUFFER_BYTES   (256 * 1024)
#define RACE_RETRIES   8

/* The parts of DISK_ROOM_DEFAULT. */
#define KEEP_DIVISOR 20
#define KEEP_MAX     (1ull << 30)

struct output {
	char *path;
	struct safe_file target;  /* empty for one of our own descriptors */
	struct safe_file partial; /* the temporary name; path is NULL if there is none */
	struct gzip *gzip; /* NULL: the name does not end with .gz; else file is its stream */
	FILE *file;
	char *buffer; /* of file; stdio takes a size only with memory of ours */
	int fd;	      /* of file; owned by us if file is NULL, or gzip's */
	bool made;    /* output__append created it */
};

static struct output *new_output(const char *path)
{
	struct output *output = calloc(1, sizeof(*output));

	if (!output)
		return NULL;
	output->fd = output->target.dir = output->partial.dir = -1;
	output->path = strdup(path);
	if (output->path)
		return output;
	free(output);
	return NULL;
}

static int open_own_fd(struct output *output, int fd)
{
	output->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return output->fd < 0 ? safe_file_fail(output->path, errno) : 0;
}

/*
 * What a run that was killed has written gets another name: the last of such runs is kept. The end
 * of the name stays, as it says what is in the file.
 */
static int keep_stale(const struct output *output)
{
	const struct safe_file *partial = &output->partial;
	char old[NAME_MAX + 1];

	if (snprintf(old, sizeof(old), OLD_PREFIX "%s", partial->name) >= (int)sizeof(old))
		return unlinkat(partial->dir, partial->name, 0);
	if (renameat(partial->dir, partial->name, partial->dir, old))
		return -1;
	log_info("%s: what a run that was killed had written is kept as %s", output->path, old);
	return 0;
}

static int fail_busy(const struct output *output)
{
	log_err("%s: another ferrum-bpftrace is writing it; wait or name another file",
		output->path);
	return -EBUSY;
}

/*
 * Takes the temporary file of a run that was killed out of the way. The file of a run that is alive
 * is locked. 0 or -errno, logged.
 */
static int remove_stale(const struct output *output)
{
	struct stat file = {.st_size = 0};
	int fd = -1;
	int err = safe_file_open_existing(&output->partial, O_WRONLY, &fd);

	if (err)
		return err == -ENOENT ? 0 : err;
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		err = fail_busy(output);
	} else if ((!fstat(fd, &file) && file.st_size
			    ? keep_stale(output)
			    : unlinkat(output->partial.dir, output->partial.name, 0)) &&
		   errno != ENOENT) {
		err = safe_file_fail(output->partial.path, errno);
	}
	close(fd);
	return err;
}

static int open_partial(struct output *output)
{
	char *path = NULL;
	int err;

	if (asprintf(&path, "%s" PARTIAL_SUFFIX, output->path) < 0)
		return safe_file_fail(output->path, ENOMEM);
	err = safe_file_open(&output->partial, path);
	free(path);
	return err;
}

static int create_partial(struct output *output)
{
	struct stat file;
	int err = open_partial(output);

	if (err)
		return err;
	for (int i = 0; i < RACE_RETRIES; i++) {
		err = safe_file_create(&output->partial, O_WRONLY, &output->fd);
		if (err == -EEXIST)
			err = remove_stale(output);
		if (err)
			return err;
		if (output->fd < 0)
			continue;
		/* Another run may have removed it as stale before it was locked. */
		if (!flock(output->fd, LOCK_EX | LOCK_NB) && !fstat(output->fd, &file) &&
		    file.st_nlink)
			return 0;
		close(output->fd);
		output->fd = -1;
	}
	return safe_file_fail(output->path, EBUSY);
}

static int open_document(struct output *output)
{
	struct stat file;
	int err;

	err = safe_file_open(&output->target, output->path);
	if (err)
		return err;
	err = safe_file_stat(&output->target, &file);
	if (err)
		return err == -ENOENT ? create_partial(output) : err;
	err = safe_file_check(&output->target, &file);
	if (err)
		return err;
	if (S_ISREG(file.st_mode))
		return create_partial(output);
	return safe_file_open_existing(&output->target, O_WRONLY, &output->fd);
}

/* 0 or -errno, logged. */
static int open_gzip(struct output *output)
{
	output->gzip = gzip__new(output->fd);
	if (!output->gzip)
		return safe_file_fail(output->path, errno);
	output->file = gzip__file(output->gzip);
	return 0;
}

/* Opens the stream of a document. err: the error of opening the file. */
static int finish_create(struct output **result, struct output *output, int err)
{
	if (!err && gzip_is_name(output->path)) {
		err = open_gzip(output);
	} else if (!err) {
		/* A pipe without a reader must not block the end of a window. */
		output->file = timed_write_may_block(output->fd) ? timed_write_open(output->fd)
								 : fdopen(output->fd, "w");
		err = output->file ? 0 : safe_file_fail(output->path, errno);
	}
	if (err) {
		output__free(output);
		return err;
	}
	if (!output->gzip)
		output->buffer = malloc(BUFFER_BYTES);
	if (output->buffer)
		(void)setvbuf(output->file, output->buffer, _IOFBF, BUFFER_BYTES);
	*result = output;
	return 0;
}

int output__create(struct output **result, const char *path)
{
	struct output *output = new_output(path);
	int own = safe_file_find_own_fd(path);
	int err;

	if (!output)
		return safe_file_fail(path, ENOMEM);
	err = own >= 0 ? open_own_fd(output, own) : open_document(output);
	return finish_create(result, output, err);
}

static int open_lines(struct output *output)
{
	const int flags = O_RDWR | O_APPEND; /* read access for end_last_line */
	int err = safe_file_open(&output->target, output->path);

	if (err)
		return err;
	for (int i = 0; i < RACE_RETRIES; i++) {
		err = safe_file_open_existing(&output->target, flags, &output->fd);
		if (err != -ENOENT)
			return err;
		err = safe_file_create(&output->target, flags, &output->fd);
		output->made = !err;
		if (err != -EEXIST)
			return err;
	}
	return safe_file_fail(output->path, EBUSY);
}

/*
 * Ends the last member, because a run that was killed has not. The one of a run that is alive looks
 * the same, and would be lost, so that file is locked.
 */
static int end_last_member(const struct output *output)
{
	struct stat file;
	int err;

	if (fstat(output->fd, &file) || !S_ISREG(file.st_mode))
		return 0;
	/* Not every file system has locks. */
	if (flock(output->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return fail_busy(output);
	err = gzip_mend(output->fd);
	if (err != -EBADMSG)
		return err ? safe_file_fail(output->path, -err) : 0;
	log_err("%s: is no gzip file, or its end is damaged: nothing is appended to it; name "
		"another "
		"file, or move it away",
		output->path);
	return err;
}

/* Ends the last line, because a run that was killed may have left it without its newline. */
static int end_last_line(const struct output *output)
{
	struct stat file;
	char last = '\n';

	if (fstat(output->fd, &file) || !S_ISREG(file.st_mode) || !file.st_size)
		return 0;
	if (pread(output->fd, &last, 1, file.st_size - 1) != 1 || last == '\n')
		return 0;
	return write(output->fd, "\n", 1) == 1 ? 0 : safe_file_fail(output->path, errno);
}

static int open_new_document(struct output *output)
{
	struct stat file;
	int err = safe_file_open(&output->target, output->path);

	if (err)
		return err;
	err = open_partial(output);
	if (!err)
		err = safe_file_create(&output->partial, O_WRONLY, &output->fd);
	if (err) {
		/* The file is another run's, and output__free would remove it if it is empty. */
		safe_file_clear(&output->partial);
		return err;
	}
	if (flock(output->fd, LOCK_EX | LOCK_NB))
		return -EEXIST;
	/* Checked last, because a run that ends renames its temporary file to this. */
	err = safe_file_stat(&output->target, &file);
	return err == -ENOENT ? 0 : err ? err : -EEXIST;
}

int output__create_new(struct output **result, const char *path)
{
	struct output *output = new_output(path);
	int err = output ? open_new_document(output) : safe_file_fail(path, ENOMEM);

	return finish_create(result, output, err);
}

int output__append_new(struct output **result, const char *path)
{
	struct output *output = new_output(path);
	int err = output ? safe_file_open(&output->target, path) : safe_file_fail(path, ENOMEM);

	if (!err)
		err = safe_file_create(&output->target, O_RDWR | O_APPEND, &output->fd);
	if (err) {
		output__free(output);
		return err;
	}
	output->made = true;
	*result = output;
	return 0;
}

static int continue_file(struct output *output)
{
	int err;

	if (!gzip_is_name(output->path))
		return end_last_line(output);
	err = end_last_member(output);
	return err ? err : open_gzip(output);
}

int output__append(struct output **result, const char *path)
{
	struct output *output = new_output(path);
	int own = safe_file_find_own_fd(path);
	int err;

	if (!output)
		return safe_file_fail(path, ENOMEM);
	err = own >= 0 ? open_own_fd(output, own) : open_lines(output);
	if (!err)
		err = continue_file(output);
	if (err) {
		output__free(output);
		return err;
	}
	*result = output;
	return 0;
}

FILE *output__file(struct output *output)
{
	return output->file;
}

int output__fd(struct output *output)
{
	return output->fd;
}

/* Flushes. 0, or the -errno of any write so far. Keeps the lock. */
static int flush_file(struct output *output)
{
	int copy, err;

	if (output->gzip) {
		err = gzip__finish(output->gzip);
		if (err)
			return err;
	} else if (output->file && fflush(output->file)) {
		return -errno;
	}
	/* Network file systems report a full disk only when a descriptor is closed. */
	copy = fcntl(output->fd, F_DUPFD_CLOEXEC, 3);
	return copy < 0 || close(copy) ? -errno : 0;
}

/* Checks that nobody has removed the file, or the directory with it. 0 or -ENOENT, logged. */
static int check_still_there(const struct output *output)
{
	struct stat file;

	if (fstat(output->fd, &file) || !S_ISREG(file.st_mode) || file.st_nlink)
		return 0;
	/* The caller has opened it, and may know that it has no name, as a memory file. */
	if (safe_file_find_own_fd(output->path) >= 0)
		return 0;
	/* Something else has the file's name: the rename will fail with -ESTALE. */
	if (output->partial.path && safe_file_stat(&output->partial, &file) != -ENOENT)
		return 0;
	log_err("%s: was removed while it was written, its contents are lost; name a file in a "
		"directory that stays",
		output->path);
	return -ENOENT;
}

const char *output__where(const struct output *output)
{
	const struct safe_file *partial = &output->partial;
	struct stat file, named;

	if (fstat(output->fd, &file) || !S_ISREG(file.st_mode))
		return output->path;
	if (!partial->path)
		return file.st_nlink ? output->path : NULL;
	/* output__free will remove an empty file. */
	if (!file.st_size || safe_file_stat(partial, &named) || named.st_dev != file.st_dev ||
	    named.st_ino != file.st_ino)
		return NULL;
	return partial->path;
}

/* Leaves an incomplete document under its temporary name, and logs that name. Returns -EIO. */
static int leave_partial(struct output *output)
{
	const char *where;

	if (!output->partial.path)
		return -EIO;
	/* Flush first, so that output__where knows whether anything was written. */
	if (output->file)
		(void)fflush(output->file);
	where = output__where(output);
	if (where)
		log_err("%s: incomplete; what was written is in %s", output->path, where);
	else
		log_err("%s: incomplete, and nothing of it was written", output->path);
	return -EIO;
}

/* Logs why a document could not be renamed to its final name. */
static int fail_commit(const struct output *output, int err)
{
	const char *partial = output->partial.path;

	if (err == -ESTALE)
		log_err("%s: another user has replaced %s; name a file in a directory that is "
			"yours alone",
			output->path, partial);
	else if (err == -EEXIST)
		log_err("%s: something else has that name by now and is left as it is; what was "
			"written is in %s",
			output->path, partial);
	else
		log_err("%s: %s%s; what was written is in %s", output->path, strerror(-err),
			safe_file_advice(-err), partial);
	return err;
}

int output__commit(struct output *output)
{
	const struct safe_file *partial = &output->partial;
	int err;

	if (output->file && ferror(output->file))
		return leave_partial(output);
	err = flush_file(output);
	if (!err && check_still_there(output))
		return -ENOENT;
	if (!partial->path)
		return err ? safe_file_fail(output->path, -err) : 0;
	if (!err)
		err = safe_file_rename(partial, &output->target, output->fd);
	if (err)
		return fail_commit(output, err);
	safe_file_clear(&output->partial);
	return 0;
}

void output__discard(struct output *output)
{
	struct stat file;

	if (!output)
		return;
	if (output->partial.path)
		(void)unlinkat(output->partial.dir, output->partial.name, 0);
	else if (output->made && !fstat(output->fd, &file) && !file.st_size)
		(void)unlinkat(output->target.dir, output->target.name, 0);
	output__free(output);
}

void output__free(struct output *output)
{
	const struct safe_file *partial;
	struct stat file;

	if (!output)
		return;
	partial = &output->partial;
	if (output->gzip) {
		gzip__free(output->gzip);
		output->file = NULL;
	}
	if (output->file)
		(void)fflush(output->file);
	if (partial->path && output->fd >= 0 && !fstat(output->fd, &file) && !file.st_size)
		(void)unlinkat(partial->dir, partial->name, 0);
	if (output->file)
		(void)fclose(output->file);
	else if (output->fd >= 0)
		close(output->fd);
	safe_file_clear(&output->target);
	safe_file_clear(&output->partial);
	free(output->buffer);
	free(output->path);
	free(output);
}

void writer_begin(struct writer *writer)
{
	/* Any call of the piece may flush, and fail. */
	(void)writer;
	errno = 0;
}

static int keep_error(struct writer *writer, bool failed)
{
	if (failed && !writer->err)
		writer->err = errno ? -errno : -EIO;
	return writer->err;
}

int writer_finish(struct writer *writer)
{
	writer->has_more = false;
	return keep_error(writer, ferror(writer->file) || fflush(writer->file));
}

static int flush_if_due(struct writer *writer)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	if (now_ns - writer->flushed_ns < NS_PER_S)
		return 0;
	writer->flushed_ns = now_ns;
	return writer_finish(writer);
}

int writer_end(struct writer *writer)
{
	writer->has_more = true;
	return keep_error(writer, ferror(writer->file)) ? writer->err : flush_if_due(writer);
}

int writer_poll(struct writer *writer)
{
	if (writer->err || !writer->has_more)
		return writer->err;
	writer_begin(writer);
	return flush_if_due(writer);
}

static uint64_t bytes_of(uint64_t blocks, uint64_t block_bytes)
{
	uint64_t bytes;

	return __builtin_mul_overflow(blocks, block_bytes, &bytes) ? UINT64_MAX : bytes;
}

static uint64_t choose_keep(uint64_t size_bytes, uint64_t keep_bytes)
{
	uint64_t share = size_bytes / KEEP_DIVISOR;

	if (keep_bytes != DISK_ROOM_DEFAULT)
		return keep_bytes;
	return share < KEEP_MAX ? share : KEEP_MAX;
}

struct disk_room disk_room_of(int fd, uint64_t keep_bytes)
{
	struct disk_room room = {.free_bytes = UINT64_MAX};
	struct statvfs system;
	struct stat file;

	if (fstat(fd, &file) || !(S_ISREG(file.st_mode) || S_ISDIR(file.st_mode)))
		return room;
	/* No blocks: a tmpfs without a limit, or a file system that does not report them. */
	if (fstatvfs(fd, &system) || !system.f_blocks)
		return room;
	room.free_bytes = bytes_of(system.f_bavail, system.f_frsize);
	room.keep_bytes = choose_keep(bytes_of(system.f_blocks, system.f_frsize), keep_bytes);
	return room;
}

bool disk_room_is_low(const struct disk_room *room)
{
	return room->free_bytes < room->keep_bytes;
}

void disk_room_tell(const struct disk_room *room, const char *name, const char *so)
{
	log_err("%s: %s free on its disk, less than the %s to keep free%s; free some space, name a "
		"file elsewhere or lower --keep-free",
		name, FORMAT_BYTES(room->free_bytes), FORMAT_BYTES(room->keep_bytes), so);
}

bool window_file_is_low(const struct window_file *file, uint64_t keep_free, struct disk_room *room)
{
	if (!file->output || !keep_free)
		return false;
	*room = disk_room_of(output__fd(file->output), keep_free);
	return disk_room_is_low(room);
}

/* Why output__commit failed, in a few words; output__commit has logged the details. */
static const char *commit_text(int err)
{
	switch (err) {
	case -ENOENT:
		return "it was removed";
	case -EEXIST:
		return "something else has that name";
	case -ESTALE:
		return "another user has replaced it";
	default:
		return strerror(-err);
	}
}

/*
 * The file's line in the report, for readers who have not seen stderr. NULL: no memory; the line is
 * left out.
 */
static char *new_line(const struct window_file *file, const char *end_reason, int err)
{
	const char *where = output__where(file->output);
	const char *reason = end_reason ? end_reason : commit_text(err);
	char *line = NULL;
	int size;

	if (!where)
		size = asprintf(&line, "%-8s %s (not there: %s)", file->name, file->path,
				end_reason || err ? reason : "nothing was written");
	else if (end_reason)
		size = asprintf(&line, "%-8s %s (ended early: %s)", file->name, where, reason);
	else if (err)
		size = asprintf(&line, "%-8s %s (not renamed: %s)", file->name, where, reason);
	else
		size = asprintf(&line, "%-8s %s", file->name, where);
	return size < 0 ? NULL : line;
}

int window_file_settle(struct window_file *file, const char *end_reason, bool is_whole)
{
	int err;

	if (!file->output)
		return 0;
	err = is_whole ? output__commit(file->output) : leave_partial(file->output);
	file->line = new_line(file, end_reason, err);
	return err;
}

void window_file_clear(struct window_file *file, void (*close_output)(struct output *output))
{
	close_output(file->output);
	free(file->path);
	free(file->line);
}

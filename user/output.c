/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "patient.h"
#include "place.h"

#define PARTIAL_SUFFIX ".partial"
#define BUFFER_BYTES   (256 * 1024)
#define RACE_RETRIES   8

struct output {
	char *path;
	struct place place;   /* all empty for one of our own descriptors */
	struct place partial; /* as place, with the temporary name; path NULL if there is none */
	FILE *file;
	int fd;	   /* the file's, or our own if file is NULL */
	bool made; /* by output__append; it was not there before */
};

static struct output *new_output(const char *path)
{
	struct output *output = calloc(1, sizeof(*output));

	if (!output)
		return NULL;
	output->fd = output->place.dir = output->partial.dir = -1;
	output->path = strdup(path);
	if (output->path)
		return output;
	free(output);
	return NULL;
}

static int open_own_fd(struct output *output, int fd)
{
	output->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return output->fd < 0 ? place_fail(output->path, errno) : 0;
}

/*
 * Removes a temporary file that a killed run left. A live one is locked by its writer. 0 or -errno,
 * logged.
 */
static int remove_stale(const struct output *output)
{
	int fd = -1;
	int err = place_open_existing(&output->partial, O_WRONLY, &fd);

	if (err)
		return err == -ENOENT ? 0 : err;
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		log_err("%s: is being written by another ferrum-bpftrace: wait for it or name "
			"another file",
			output->path);
		err = -EBUSY;
	} else if (unlinkat(output->partial.dir, output->partial.name, 0) && errno != ENOENT) {
		err = place_fail(output->partial.path, errno);
	}
	close(fd);
	return err;
}

static int create_partial(struct output *output)
{
	char *path = NULL;
	struct stat file;
	int err;

	if (asprintf(&path, "%s" PARTIAL_SUFFIX, output->path) < 0)
		return place_fail(output->path, ENOMEM);
	err = place_open(&output->partial, path);
	free(path);
	if (err)
		return err;
	for (int i = 0; i < RACE_RETRIES; i++) {
		err = place_create(&output->partial, O_WRONLY, &output->fd);
		if (err == -EEXIST)
			err = remove_stale(output);
		if (err)
			return err;
		if (output->fd < 0)
			continue;
		/* Before it was locked, another run may have taken it for a stale one. */
		if (!flock(output->fd, LOCK_EX | LOCK_NB) && !fstat(output->fd, &file) &&
		    file.st_nlink)
			return 0;
		close(output->fd);
		output->fd = -1;
	}
	return place_fail(output->path, EBUSY);
}

static int open_document(struct output *output)
{
	struct stat file;
	int err;

	err = place_open(&output->place, output->path);
	if (err)
		return err;
	err = place_stat(&output->place, &file);
	if (err)
		return err == -ENOENT ? create_partial(output) : err;
	err = place_check(&output->place, &file);
	if (err)
		return err;
	if (S_ISREG(file.st_mode))
		return create_partial(output);
	return place_open_existing(&output->place, O_WRONLY, &output->fd);
}

/* The document is open, or err says why not. */
static int finish_create(struct output **result, struct output *output, int err)
{
	if (!err) {
		/* A pipe that nobody reads must not hold a window open. */
		output->file = patient_may_wait(output->fd) ? patient_open(output->fd)
							    : fdopen(output->fd, "w");
		err = output->file ? 0 : place_fail(output->path, errno);
	}
	if (err) {
		output__free(output);
		return err;
	}
	(void)setvbuf(output->file, NULL, _IOFBF, BUFFER_BYTES);
	*result = output;
	return 0;
}

int output__create(struct output **result, const char *path)
{
	struct output *output = new_output(path);
	int own = place_find_own_fd(path);
	int err;

	if (!output)
		return place_fail(path, ENOMEM);
	err = own >= 0 ? open_own_fd(output, own) : open_document(output);
	return finish_create(result, output, err);
}

static int open_lines(struct output *output)
{
	const int flags = O_RDWR | O_APPEND; /* read: how the last line ends */
	int err = place_open(&output->place, output->path);

	if (err)
		return err;
	for (int i = 0; i < RACE_RETRIES; i++) {
		err = place_open_existing(&output->place, flags, &output->fd);
		if (err != -ENOENT)
			return err;
		err = place_create(&output->place, flags, &output->fd);
		output->made = !err;
		if (err != -EEXIST)
			return err;
	}
	return place_fail(output->path, EBUSY);
}

/* A run that was killed may have left a line without its end. */
static int end_last_line(const struct output *output)
{
	struct stat file;
	char last = '\n';

	if (fstat(output->fd, &file) || !S_ISREG(file.st_mode) || !file.st_size)
		return 0;
	if (pread(output->fd, &last, 1, file.st_size - 1) != 1 || last == '\n')
		return 0;
	return write(output->fd, "\n", 1) == 1 ? 0 : place_fail(output->path, errno);
}

static int open_new_document(struct output *output)
{
	struct stat file;
	char *path = NULL;
	int err = place_open(&output->place, output->path);

	if (err)
		return err;
	if (asprintf(&path, "%s" PARTIAL_SUFFIX, output->path) < 0)
		return place_fail(output->path, ENOMEM);
	err = place_open(&output->partial, path);
	free(path);
	if (!err)
		err = place_create(&output->partial, O_WRONLY, &output->fd);
	/* Another's: output__free would remove it, were it empty. */
	if (err)
		place_clear(&output->partial);
	else if (flock(output->fd, LOCK_EX | LOCK_NB))
		err = -EEXIST;
	else
		/* Only now: it got its name from the temporary one. */
		err = place_stat(&output->place, &file);
	return err == -ENOENT ? 0 : err ? err : -EEXIST;
}

int output__create_new(struct output **result, const char *path)
{
	struct output *output = new_output(path);
	int err = output ? open_new_document(output) : place_fail(path, ENOMEM);

	return finish_create(result, output, err);
}

int output__append_new(struct output **result, const char *path)
{
	struct output *output = new_output(path);
	int err = output ? place_open(&output->place, path) : place_fail(path, ENOMEM);

	if (!err)
		err = place_create(&output->place, O_RDWR | O_APPEND, &output->fd);
	if (err) {
		output__free(output);
		return err;
	}
	output->made = true;
	*result = output;
	return 0;
}

int output__append(struct output **result, const char *path)
{
	struct output *output = new_output(path);
	int own = place_find_own_fd(path);
	int err;

	if (!output)
		return place_fail(path, ENOMEM);
	err = own >= 0 ? open_own_fd(output, own) : open_lines(output);
	if (!err)
		err = end_last_line(output);
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

/* 0 or -errno of what was written so far; the lock is kept. */
static int flush_file(struct output *output)
{
	int copy;

	if (output->file && fflush(output->file))
		return -errno;
	/* Network file systems tell of a full disk when a descriptor is closed. */
	copy = fcntl(output->fd, F_DUPFD_CLOEXEC, 3);
	return copy < 0 || close(copy) ? -errno : 0;
}

/* The folder with all that is in it, or the file alone: what is written then is lost. */
static int check_still_there(const struct output *output)
{
	struct stat file;

	if (fstat(output->fd, &file) || !S_ISREG(file.st_mode) || file.st_nlink)
		return 0;
	/* Another's temporary file in its place is another story. */
	if (output->partial.path && place_stat(&output->partial, &file) != -ENOENT)
		return 0;
	log_err("%s: was removed while it was written: what was in it is lost; name a file in a "
		"folder that stays",
		output->path);
	return -ENOENT;
}

const char *output__where(const struct output *output)
{
	const struct place *partial = &output->partial;
	struct stat file, named;

	if (fstat(output->fd, &file) || !S_ISREG(file.st_mode))
		return output->path;
	if (!partial->path)
		return file.st_nlink ? output->path : NULL;
	/* An empty one is removed by output__free. */
	if (!file.st_size || place_stat(partial, &named) || named.st_dev != file.st_dev ||
	    named.st_ino != file.st_ino)
		return NULL;
	return partial->path;
}

/* Of a write that failed whoever wrote has told. */
int output__leave(struct output *output)
{
	const char *where;

	if (!output->partial.path)
		return -EIO;
	/* Now, while it can be told what came of it. */
	if (output->file)
		(void)fflush(output->file);
	where = output__where(output);
	if (where)
		log_err("%s: not complete; what was written is in %s", output->path, where);
	else
		log_err("%s: not complete, and no file is left of it", output->path);
	return -EIO;
}

/* Of a document that was not put in its place. */
static int fail_commit(const struct output *output, int err)
{
	const char *partial = output->partial.path;

	if (err == -ESTALE)
		log_err("%s: another user has put something else in place of %s: name a file in a "
			"folder that is yours alone",
			output->path, partial);
	else if (err == -EEXIST)
		log_err("%s: something else has come there meanwhile, and was left alone; what was "
			"written is in %s",
			output->path, partial);
	else
		log_err("%s: %s%s; what was written is in %s", output->path, strerror(-err),
			place_advice(-err), partial);
	return err;
}

int output__commit(struct output *output)
{
	const struct place *partial = &output->partial;
	int err;

	if (output->file && ferror(output->file))
		return output__leave(output);
	err = flush_file(output);
	if (!err && check_still_there(output))
		return -ENOENT;
	if (!partial->path)
		return err ? place_fail(output->path, -err) : 0;
	if (!err)
		err = place_rename(partial, &output->place, output->fd);
	if (err)
		return fail_commit(output, err);
	place_clear(&output->partial);
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
		(void)unlinkat(output->place.dir, output->place.name, 0);
	output__free(output);
}

void output__free(struct output *output)
{
	const struct place *partial;
	struct stat file;

	if (!output)
		return;
	partial = &output->partial;
	if (output->file)
		(void)fflush(output->file);
	if (partial->path && output->fd >= 0 && !fstat(output->fd, &file) && !file.st_size)
		(void)unlinkat(partial->dir, partial->name, 0);
	if (output->file)
		(void)fclose(output->file);
	else if (output->fd >= 0)
		close(output->fd);
	place_clear(&output->place);
	place_clear(&output->partial);
	free(output->path);
	free(output);
}

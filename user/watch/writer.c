/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "watch/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "watch/children.h"
#include "watch/slots.h"

/* At the lowest priority it may take long on a busy machine. */
#define TIME_MAX_NS (1800 * NS_PER_S)

/* If no process can be started: for a minute. */
#define RETRY_NS (5 * NS_PER_S)
#define TRIES	 12

struct writer {
	const char *dir;
	/* By enum rank. If pid is not 0, the first one is being written, whatever its rank. */
	VEC(struct dump_job) jobs;
	pid_t pid;
	uint64_t started_ns;
	uint32_t failures; /* to start one for the first job, in a row */
	uint64_t wait_ns;  /* none is started before */
	uint64_t written;
};

/* What is written first. */
enum rank {
	RANK_DUMP,
	RANK_CALLS,
	RANK_SAMPLE, /* only to compare with */
};

struct writer *writer__new(const char *dir)
{
	struct writer *writer = calloc(1, sizeof(*writer));

	if (writer)
		writer->dir = dir;
	return writer;
}

static void say_lost(const struct dump_job *job, const char *why)
{
	log_err("dump %s%s: not written: %s", job->stem, job->part, why);
}

void writer__free(struct writer *writer)
{
	if (!writer)
		return;
	/* A capture that is complete is kept: the rest can be made from it. */
	if (writer->pid) {
		kill(writer->pid, SIGKILL);
		(void)dumps_publish(writer->dir, writer->jobs.items[0].stem, true);
	}
	vec_for_each (job, &writer->jobs) {
		say_lost(job, "watch ends");
		close(job->fd);
	}
	vec_free(&writer->jobs);
	free(writer);
}

static enum rank rank_of(const struct dump_job *job)
{
	if (!*job->part)
		return RANK_DUMP;
	return strcmp(job->part, "_sample") ? RANK_CALLS : RANK_SAMPLE;
}

/* Dumps, or all their parts: a capture is in memory as long as it waits. */
static size_t count_waiting(const struct writer *writer, bool parts)
{
	size_t count = 0;

	vec_for_each (job, &writer->jobs)
		count += (rank_of(job) != RANK_DUMP) == parts;
	return count;
}

/* Whether there is room now for one of that rank: of parts, the last sample makes way for calls. */
static bool find_room(struct writer *writer, enum rank rank)
{
	const struct dump_job *last;

	if (count_waiting(writer, rank != RANK_DUMP) < SLOTS_MAX)
		return true;
	last = &writer->jobs.items[writer->jobs.count - 1];
	if (rank != RANK_CALLS || rank_of(last) != RANK_SAMPLE)
		return false;
	say_lost(last, "the calls of a later dump take its place");
	close(last->fd);
	writer->jobs.count--;
	return true;
}

void writer__take(struct writer *writer, const struct dump_job *job)
{
	enum rank rank = rank_of(job);
	size_t at;

	if (!find_room(writer, rank) || vec_push(&writer->jobs, *job)) {
		say_lost(job,
			 "too many are waiting: the disk is too slow, or --cooldown too short");
		close(job->fd);
		return;
	}
	for (at = writer->jobs.count - 1; at > (writer->pid != 0); at--) {
		if (rank_of(&writer->jobs.items[at - 1]) <= rank)
			break;
		writer->jobs.items[at] = writer->jobs.items[at - 1];
	}
	writer->jobs.items[at] = *job;
	/* They are those of the first job. */
	if (!at)
		writer->failures = 0;
}

static void end_job(struct writer *writer)
{
	close(writer->jobs.items[0].fd);
	writer->jobs.count--;
	memmove(writer->jobs.items, writer->jobs.items + 1,
		writer->jobs.count * sizeof(*writer->jobs.items));
	writer->failures = 0;
}

static struct dump_limits limits_of(const struct options *options)
{
	return (struct dump_limits){options->watch.max_dumps,
				    options->watch.max_disk ? options->watch.max_disk : UINT64_MAX,
				    options->windows.keep_free};
}

/* The files are compressed: together they take less than the capture in memory. */
static bool make_room(const struct writer *writer, const struct options *options,
		      const struct dump_job *job)
{
	const struct dump_limits limits = limits_of(options);
	struct dump_usage usage;
	int err = dumps_make_room(writer->dir, &limits, job->bytes + 1, job->stem, &usage);

	if (usage.deleted)
		log_debug("%" PRIu32 " old dumps were deleted", usage.deleted);
	if (err == -ENOSPC)
		say_lost(job, "it has no room in --max-disk");
	else if (err == -EDQUOT)
		say_lost(job, "its disk would have less free than --keep-free");
	else if (err)
		say_lost(job, "its directory cannot be read");
	return !err;
}

/* A machine that has no memory or no process left is often the one that a dump is about. */
static void try_later(struct writer *writer, const struct dump_job *job, uint64_t now_ns)
{
	writer->wait_ns = now_ns + RETRY_NS;
	if (++writer->failures < TRIES)
		return;
	writer->failures = 0;
	writer->wait_ns = 0;
	say_lost(job, "no process can be started for it");
	end_job(writer);
}

void writer__turn(struct writer *writer, const struct options *options, uint64_t now_ns)
{
	if (writer->pid) {
		if (now_ns - writer->started_ns > TIME_MAX_NS)
			kill(writer->pid, SIGKILL);
		return;
	}
	while (writer->jobs.count) {
		const struct dump_job *job = &writer->jobs.items[0];
		const struct writer_plan plan = {options, writer->dir, job->stem, job->part,
						 job->fd};

		if (now_ns < writer->wait_ns)
			return;
		if (!make_room(writer, options, job)) {
			end_job(writer);
			continue;
		}
		if (!children_start_writer(&plan, &writer->pid)) {
			writer->started_ns = now_ns;
			writer->failures = 0;
			return;
		}
		writer->pid = 0;
		try_later(writer, job, now_ns);
	}
}

static void tell(const struct writer *writer, const struct dump_job *job)
{
	if (*job->part)
		log_info("dump %s/%s%s.*: its system calls%s", writer->dir, job->stem, job->part,
			 strcmp(job->part, "_sample") ? " afterwards" : " before, to compare with");
	else
		log_info("dump %s/%s.*: %s; the last %s, %s steps%s", writer->dir, job->stem,
			 job->text, FORMAT_TIME(job->covers_ns), FORMAT_COUNT(job->steps),
			 job->crowded ? " (--memory has room for no more)" : "");
}

bool writer__reap(struct writer *writer, const struct options *options, pid_t pid, int status)
{
	const struct dump_limits limits = limits_of(options);
	const struct dump_job *job;
	struct dump_usage usage;
	int err;

	if (!writer->pid || pid != writer->pid)
		return false;
	writer->pid = 0;
	job = &writer->jobs.items[0];
	if (WIFEXITED(status) && !WEXITSTATUS(status)) {
		err = dumps_publish(writer->dir, job->stem, false);
		if (!err)
			tell(writer, job);
		writer->written += !*job->part;
	} else {
		log_err("dump %s%s: incomplete: its writer %s %d; if there is a .fbt.gz, --replay "
			"makes the rest",
			job->stem, job->part,
			WIFSIGNALED(status) ? "was killed by signal" : "has failed with status",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		err = dumps_publish(writer->dir, job->stem, true);
	}
	/* What could not be moved stays where it is. */
	if (!err)
		dumps_sweep(writer->dir, job->stem);
	(void)dumps_make_room(writer->dir, &limits, 0, job->stem, &usage);
	end_job(writer);
	return true;
}

bool writer__is_idle(const struct writer *writer)
{
	return !writer->jobs.count;
}

uint64_t writer__written(const struct writer *writer)
{
	return writer->written;
}

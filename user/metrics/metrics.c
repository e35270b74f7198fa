/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "metrics/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "metrics/catalog.h"
#include "metrics/otlp.h"
#include "metrics/prom.h"
#include "metrics/push.h"
#include "metrics/tally.h"
#include "output/file.h"
#include "output/safe_file.h"

#define FILE_MODE    0644
#define MESSAGE_SIZE 512
#define LOOK_NS	     NS_PER_S
/* By so much the clock is set, not slewed: a start that moves often looks like a reset of counters.
 */
#define CLOCK_SET_NS (60 * NS_PER_S)
#define SUFFIX	     ".prom"

struct metrics {
	struct metrics_options options;
	struct metrics_tally *tally;
	struct metrics_push *push; /* NULL: no collector */
	char tracer[METRICS_LABEL_MAX];
	char host[65];
	char *instance;		/* service.instance.id */
	uint64_t start_ns;	/* CLOCK_BOOTTIME, which is never set */
	uint64_t start_unix_ns; /* by the clock as it is now */
	uint64_t due_ns;
	uint64_t write_errors;
	bool is_failing;
};

/* The name of the file without folder and suffix: two of them in one folder differ in it. */
static void name_tracer(struct metrics *metrics)
{
	const char *path = metrics->options.path, *name = path ? strrchr(path, '/') : NULL;
	size_t length, suffix = strlen(SUFFIX);
	char stem[METRICS_LABEL_MAX];

	name = name ? name + 1 : path;
	if (!name)
		name = metrics->options.service ? metrics->options.service : "";
	length = strlen(name);
	if (length > suffix && !strcmp(name + length - suffix, SUFFIX))
		length -= suffix;
	snprintf(stem, sizeof(stem), "%.*s", (int)length, name);
	log_escape(metrics->tracer, sizeof(metrics->tracer), stem);
}

/*
 * No other tracer that runs has the same, and the next one of the same engine has it again as far
 * as that can be: a collector's exporter to Prometheus makes a label of it, and there must not be
 * ever more. Two tracers cannot keep one file; of those without a file, the PID is another.
 */
static char *make_instance(const struct metrics *metrics)
{
	const char *path = metrics->options.path, *given = metrics->options.instance;
	char *text = NULL, *here = path && *path != '/' ? getcwd(NULL, 0) : NULL;
	int size;

	if (path)
		size = asprintf(&text, "%s:%s%s%s", metrics->host, here ? here : "",
				here ? "/" : "", path);
	else if (given && *given)
		size = asprintf(&text, "%s:%s", metrics->host, given);
	else
		size = asprintf(&text, "%s:%d", metrics->host, getpid());
	free(here);
	return size < 0 ? NULL : text;
}

struct metrics *metrics__new(const struct metrics_options *options)
{
	struct metrics *metrics = calloc(1, sizeof(*metrics));
	struct utsname names;

	if (!metrics)
		return NULL;
	metrics->options = *options;
	metrics->start_ns = clock_ns(CLOCK_BOOTTIME);
	metrics->start_unix_ns = clock_ns(CLOCK_REALTIME);
	name_tracer(metrics);
	if (!uname(&names))
		snprintf(metrics->host, sizeof(metrics->host), "%s", names.nodename);
	metrics->instance = make_instance(metrics);
	metrics->tally = metrics_tally__new();
	if (options->collector)
		metrics->push = metrics_push__new(options->collector);
	if (!metrics->instance || !metrics->tally || (options->collector && !metrics->push)) {
		metrics__free(metrics);
		return NULL;
	}
	return metrics;
}

void metrics__free(struct metrics *metrics)
{
	if (!metrics)
		return;
	metrics_push__free(metrics->push);
	metrics_tally__free(metrics->tally);
	free(metrics->instance);
	free(metrics);
}

/* Without this the start would be in the future for hours after the clock was set back. */
static void follow_clock(struct metrics *metrics, uint64_t now_unix_ns)
{
	uint64_t age_ns = clock_ns(CLOCK_BOOTTIME) - metrics->start_ns;
	uint64_t start_ns = sub_saturating(now_unix_ns, age_ns);

	if (metrics->start_unix_ns > now_unix_ns ||
	    start_ns > add_saturating(metrics->start_unix_ns, CLOCK_SET_NS) ||
	    metrics->start_unix_ns > add_saturating(start_ns, CLOCK_SET_NS))
		metrics->start_unix_ns = start_ns;
}

static struct metrics_run collect_run(struct metrics *metrics, bool is_up)
{
	uint64_t now_unix_ns = clock_ns(CLOCK_REALTIME);
	struct metrics_run run = {
		.tracer = metrics->tracer,
		.now_unix_ns = now_unix_ns,
		.is_up = is_up,
		.write_errors = metrics->write_errors,
	};
	struct rusage usage;

	follow_clock(metrics, now_unix_ns);
	run.start_unix_ns = metrics->start_unix_ns;
	if (getrusage(RUSAGE_SELF, &usage))
		return run;
	run.cpu_ns = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_S +
		     (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NS_PER_US;
	run.memory_bytes = (uint64_t)usage.ru_maxrss * 1024;
	return run;
}

/* The first message of what is tried; it is told once for a row of failures. */
static void keep_message(void *ctx, enum log_level level, const char *message)
{
	char *text = ctx;

	if (!*text)
		snprintf(text, MESSAGE_SIZE, "%s", message);
}

static int write_document(const struct metrics *metrics, struct output *output,
			  const struct metrics_run *run)
{
	struct disk_room room = disk_room_of(output__fd(output), metrics->options.keep_free);
	FILE *file = output__file(output);
	struct stat status;

	if (disk_room_is_low(&room)) {
		disk_room_tell(&room, metrics->options.path, "");
		return -ENOSPC;
	}
	errno = 0;
	prom_write(file, metrics->tally, run);
	/* Before the commit, which would name a file that is not kept. */
	if (fflush(file) || ferror(file))
		return safe_file_fail(metrics->options.path, errno ? errno : EIO);
	if (!fstat(output__fd(output), &status) && S_ISREG(status.st_mode) &&
	    fchmod(output__fd(output), FILE_MODE)) {
		log_err("%s: %s", metrics->options.path, strerror(errno));
		return -EIO;
	}
	return output__commit(output);
}

/* A temporary file that is incomplete is of no use to anyone. */
static int write_file(const struct metrics *metrics, const struct metrics_run *run)
{
	struct output *output = NULL;
	int err = output__create(&output, metrics->options.path);

	if (err)
		return err;
	err = write_document(metrics, output, run);
	if (err)
		output__discard(output);
	else
		output__free(output);
	return err;
}

static int try_file(struct metrics *metrics, bool is_up)
{
	struct metrics_run run = collect_run(metrics, is_up);
	char message[MESSAGE_SIZE] = "";
	struct log_diversion before;
	int err;

	if (!metrics->options.path)
		return 0;
	before = log_divert((struct log_diversion){keep_message, message});
	err = write_file(metrics, &run);
	log_divert(before);
	if (err) {
		metrics->write_errors++;
		if (!metrics->is_failing)
			log_warn("metrics: %s%s", *message ? message : strerror(-err),
				 is_up ? ": tracing goes on, and it is tried again" : "");
	} else if (metrics->is_failing) {
		log_info("metrics: %s is written again", metrics->options.path);
	}
	metrics->is_failing = err;
	return err;
}

static void send(struct metrics *metrics, bool is_up)
{
	const struct otlp_metrics_source source = {metrics->options.service, metrics->host,
						   metrics->instance};
	struct metrics_run run = collect_run(metrics, is_up);
	char *body = NULL;
	size_t size = 0;
	struct json json = {0};
	bool failed;

	if (!metrics->push)
		return;
	json.out = open_memstream(&body, &size);
	if (!json.out)
		return;
	otlp_metrics_write(&json, metrics->tally, &run, &source);
	failed = ferror(json.out);
	if (fclose(json.out) || failed)
		free(body);
	else
		metrics_push__set(metrics->push, body, size);
}

void metrics__poll(struct metrics *metrics)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	if (metrics->options.is_replay)
		return;
	if (now_ns >= metrics->due_ns) {
		metrics->due_ns = now_ns + metrics->options.interval_ns;
		(void)try_file(metrics, true);
		send(metrics, true);
	}
	if (metrics->push)
		metrics_push__poll(metrics->push, now_ns);
}

bool metrics__is_sending(const struct metrics *metrics)
{
	return metrics->push && metrics_push__is_sending(metrics->push);
}

void metrics__set_cost(struct metrics *metrics, uint64_t call_ps, uint64_t probes_ns)
{
	metrics->tally->call_ps = call_ps;
	metrics->tally->probes_ns = probes_ns;
}

void metrics__close_window(struct metrics *metrics)
{
	metrics_tally__close(metrics->tally);
	metrics->due_ns = 0;
	metrics__poll(metrics);
}

int metrics__end(struct metrics *metrics)
{
	int err;

	metrics_tally__close(metrics->tally);
	err = try_file(metrics, false);
	send(metrics, false);
	if (metrics->push)
		metrics_push__finish(metrics->push);
	return err;
}

struct metrics_sink {
	struct sink sink;
	struct metrics *metrics;
	const struct window *window;
	uint64_t look_ns; /* when to look at it again */
	uint64_t alive;	  /* its processes in the tally */
	uint64_t skipped; /* its records that are counted there as skipped */
};

static struct metrics_tally *to_tally(struct sink *sink)
{
	return ((struct metrics_sink *)sink)->metrics->tally;
}

static int write_step(struct sink *sink, const struct window *window, const struct step *step)
{
	return metrics_tally__add_step(to_tally(sink), window, step);
}

static int write_escalation(struct sink *sink, const struct window *window, const struct step *step,
			    const struct escalation *escalation)
{
	return metrics_tally__add_escalation(to_tally(sink), window, step, escalation);
}

static int write_hang(struct sink *sink, const struct window *window, const struct fbt_hang *hang)
{
	return metrics_tally__add_hang(to_tally(sink), window, hang);
}

static int poll_window(struct sink *sink)
{
	struct metrics_sink *self = (struct metrics_sink *)sink;
	struct metrics_tally *tally = self->metrics->tally;
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), alive = 0;

	if (self->metrics->options.is_replay || now_ns < self->look_ns ||
	    !self->window->record.start_ns)
		return 0;
	self->look_ns = now_ns + LOOK_NS;
	metrics_tally__see(tally, self->window, &self->skipped, now_ns);
	vec_for_each (process, &self->window->processes)
		alive += !(*process)->exit_ns;
	tally->processes += alive - self->alive;
	self->alive = alive;
	return 0;
}

static int finish(struct sink *sink, const struct window *window,
		  const struct classifier *classifier)
{
	struct metrics_sink *self = (struct metrics_sink *)sink;

	metrics_tally__see(self->metrics->tally, window, &self->skipped, window->end_ns);
	return 0;
}

static void free_sink(struct sink *sink)
{
	free(sink);
}

struct sink *metrics__sink(struct metrics *metrics, const struct window *window)
{
	struct metrics_sink *self = calloc(1, sizeof(*self));

	if (!self)
		return NULL;
	self->sink = (struct sink){
		.name = "metrics",
		.write_step = write_step,
		.write_escalation = write_escalation,
		.write_hang = write_hang,
		.poll = poll_window,
		.finish = finish,
		.free = free_sink,
	};
	self->metrics = metrics;
	self->window = window;
	return &self->sink;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "trace/flight.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "base/memfd.h"
#include "judge/verdict.h"
#include "recorder/flight.h"
#include "recorder/segments.h"

#define BEAT_NS	  NS_PER_S
#define TOTALS_NS (10 * NS_PER_S)
#define LOOK_NS	  (50 * NS_PER_MS)
/* At the end of the targets, for a dump that watch does not take: 2 s. */
#define END_TRIES 40

struct flight {
	int fd;
	struct segments *segments;
	uint64_t last_ns; /* of a dump */
	uint64_t beat_ns; /* when the next ones are due */
	uint64_t totals_ns;
	uint64_t look_ns;
	uint64_t steps;
	bool told;    /* that it is ready */
	bool pending; /* something was told of, and not dumped yet */

	/* A dump that watch has not taken yet; dump.type is 0: none. */
	struct flight_message dump;
	int dump_fd; /* -1: it could not be made */
};

int flight__new(struct flight **result, const struct options *options)
{
	const struct segments_options limits = {
		.bytes = options->watch.memory,
		.span_ns = options->watch.last_ns,
	};
	struct flight *flight;
	int err;

	*result = NULL;
	if (!options->watch.flight_fd)
		return 0;
	flight = calloc(1, sizeof(*flight));
	if (!flight)
		return -ENOMEM;
	flight->fd = options->watch.flight_fd;
	flight->last_ns = options->watch.last_ns;
	flight->dump_fd = -1;
	err = segments__new(&flight->segments, &limits);
	if (err) {
		free(flight);
		return err;
	}
	*result = flight;
	return 0;
}

void flight__free(struct flight *flight)
{
	if (!flight)
		return;
	if (flight->dump_fd >= 0)
		close(flight->dump_fd);
	segments__free(flight->segments);
	free(flight);
}

/* Tells of escalations and hangs. */
struct trigger_sink {
	struct sink sink;
	struct flight *flight;
};

static void tell(struct flight *flight, struct flight_message *message)
{
	int err;

	message->type = FLIGHT_TRIGGER;
	message->steps = flight->steps;
	err = flight_send(flight->fd, message, -1);
	flight->pending |= !err;
	if (err && err != -EPIPE)
		log_warn("flight recorder: watch does not take a message: %s", strerror(-err));
}

static int write_escalation(struct sink *sink, const struct window *window, const struct step *step,
			    const struct escalation *escalation)
{
	const struct trigger_sink *self = (const struct trigger_sink *)sink;
	bool manual = escalation->fired & 1u << ESCALATION_MANUAL;
	struct flight_message message = {
		.reason = manual ? FLIGHT_MANUAL : FLIGHT_ESCALATION,
		.tgid = step->record.tgid,
		.time_ns = step->record.end_ns,
	};

	/* What happens again, and what is as usual, is in the dump of the first one. */
	if (!manual && !escalation_is_shown(escalation))
		return 0;
	snprintf(message.text, sizeof(message.text), "%s %s, %s",
		 window__kind_name(window, step->record.kind), FORMAT_TIME(step_total_ns(step)),
		 escalation_reason_text(escalation->result.reason));
	tell(self->flight, &message);
	return 0;
}

static int write_hang(struct sink *sink, const struct window *window, const struct fbt_hang *hang)
{
	const struct trigger_sink *self = (const struct trigger_sink *)sink;
	struct flight_message message = {
		.reason = FLIGHT_HANG,
		.tgid = hang->tgid,
		.time_ns = hang->time_ns,
	};

	snprintf(message.text, sizeof(message.text), "%s hangs for %s",
		 window__kind_name(window, hang->kind),
		 FORMAT_TIME(hang->time_ns - hang->step_start_ns));
	tell(self->flight, &message);
	return 0;
}

static int count_step(struct sink *sink, const struct window *window, const struct step *step)
{
	const struct trigger_sink *self = (const struct trigger_sink *)sink;

	self->flight->steps++;
	return 0;
}

static void free_sink(struct sink *sink)
{
	free(sink);
}

static struct sink *new_trigger(struct flight *flight)
{
	struct trigger_sink *self = calloc(1, sizeof(*self));

	if (!self)
		return NULL;
	self->sink = (struct sink){
		.name = "flight recorder's messages",
		.write_step = count_step,
		.write_escalation = write_escalation,
		.write_hang = write_hang,
		.free = free_sink,
	};
	self->flight = flight;
	return &self->sink;
}

int flight__add_sinks(void *ctx, struct outputs *outputs)
{
	struct flight *flight = ctx;
	int err;

	if (!flight)
		return 0;
	err = outputs__add_sink(outputs, sink_segments__new(flight->segments));
	if (!err)
		err = outputs__add_sink(outputs, new_trigger(flight));
	if (err)
		log_err("flight recorder: %s", strerror(-err));
	return err;
}

/* Writes the capture to a memory file. Its descriptor, or -errno. */
static int make_dump(struct flight *flight, const char *tag, struct segments_written *written)
{
	const struct segments_cut cut = {
		.tag = tag,
		.last_ns = flight->last_ns ? flight->last_ns : UINT64_MAX,
		.end_ns = clock_ns(CLOCK_MONOTONIC),
		.realtime_ns = clock_ns(CLOCK_REALTIME),
	};
	int fd = memfd_make("ferrum-dump"), copy, err;
	FILE *file;

	if (fd < 0)
		return -errno;
	copy = dup(fd);
	file = copy < 0 ? NULL : fdopen(copy, "we");
	if (!file) {
		err = -errno;
		if (copy >= 0)
			close(copy);
		close(fd);
		return err;
	}
	err = segments__write(flight->segments, file, &cut, written);
	if (fclose(file) && !err)
		err = -errno;
	if (err)
		close(fd);
	return err ? err : fd;
}

/*
 * Sends the dump that waits; watch is told as well if there is none, since it waits for an answer.
 * false: watch does not read, so it is to be tried again.
 */
static bool send_dump(struct flight *flight)
{
	int err = 0;

	if (!flight->dump.type)
		return true;
	err = flight_send(flight->fd, &flight->dump, flight->dump_fd);
	if (err && err != -EAGAIN && err != -EPIPE && flight->dump_fd >= 0) {
		log_err("flight recorder: no dump: %s", strerror(-err));
		err = flight_send(flight->fd, &flight->dump, -1);
	}
	if (err == -EAGAIN)
		return false;
	if (flight->dump_fd >= 0)
		close(flight->dump_fd);
	flight->dump_fd = -1;
	flight->dump.type = 0;
	return true;
}

static void dump(struct flight *flight, struct session *session, const char *tag)
{
	struct segments_written written = {0};
	int fd;

	/* One that still waits is of a request that watch has given up. */
	if (flight->dump_fd >= 0)
		close(flight->dump_fd);
	session__send_totals(session);
	fd = make_dump(flight, tag, &written);
	if (fd < 0)
		log_err("flight recorder: no dump: %s", strerror(-fd));
	flight->dump_fd = fd < 0 ? -1 : fd;
	flight->dump = (struct flight_message){
		.type = FLIGHT_DUMP,
		.time_ns = written.start_ns,
		.steps = written.steps,
		.crowded = written.crowded,
	};
	flight->pending = false;
	send_dump(flight);
}

static void beat(struct flight *flight, uint64_t now_ns)
{
	const struct flight_message message = {
		.type = FLIGHT_BEAT,
		.time_ns = now_ns,
		.steps = flight->steps,
		.bytes = segments__figures(flight->segments).bytes,
	};

	/* If watch is stopped, it does not read: the next beat may come through. */
	(void)flight_send(flight->fd, &message, -1);
	segments__turn(flight->segments, now_ns);
	flight->beat_ns = now_ns + BEAT_NS;
}

/* false: watch has ended. */
static bool take_orders(struct flight *flight, struct session *session, const char *tag)
{
	struct flight_message message;
	int passed, got;

	while ((got = flight_receive(flight->fd, &message, &passed))) {
		if (passed >= 0)
			close(passed);
		if (got < 0 && got != -EBADMSG)
			return false;
		if (got > 0 && message.type == FLIGHT_WANTED)
			dump(flight, session, tag);
	}
	return true;
}

bool flight__turn(struct flight *flight, struct session *session, const char *tag)
{
	const struct flight_message ready = {.type = FLIGHT_READY};
	uint64_t now_ns;

	if (!flight)
		return true;
	now_ns = clock_ns(CLOCK_MONOTONIC);
	if (now_ns < flight->look_ns)
		return true;
	flight->look_ns = now_ns + LOOK_NS;
	if (!flight->told && session__is_attached(session))
		flight->told = !flight_send(flight->fd, &ready, -1);
	/* So that a dump says what the tool has cost in its time. */
	if (now_ns >= flight->totals_ns) {
		session__send_totals(session);
		flight->totals_ns = now_ns + TOTALS_NS;
	}
	(void)send_dump(flight);
	if (now_ns >= flight->beat_ns)
		beat(flight, now_ns);
	return take_orders(flight, session, tag);
}

void flight__end(struct flight *flight, struct session *session, const char *tag)
{
	const struct timespec pause = clock_timespec(LOOK_NS);

	if (!flight)
		return;
	if (flight->pending)
		dump(flight, session, tag);
	/* watch reads several times a second, unless it is stopped itself. */
	for (int i = 0; i < END_TRIES && !send_dump(flight); i++)
		nanosleep(&pause, NULL);
}

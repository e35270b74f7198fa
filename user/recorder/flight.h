/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What `watch` and a tracer that it has started tell each other, over a socket that keeps the
 * bounds of messages (SOCK_SEQPACKET). Both are this program, of one version.
 */
#ifndef FBT_RECORDER_FLIGHT_H
#define FBT_RECORDER_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

enum flight_type {
	FLIGHT_READY = 1,   /* to watch: all probes are attached */
	FLIGHT_BEAT = 2,    /* to watch, about once a second: the tracer is alive */
	FLIGHT_TRIGGER = 3, /* to watch: something that is worth a dump */
	FLIGHT_DUMP = 4, /* to watch, the answer to FLIGHT_WANTED: a capture, in the descriptor that
			    comes with it; without one it could not be made */
	FLIGHT_WANTED = 5, /* to the tracer: send a dump now */
	FLIGHT_TYPES = 6,
};

enum flight_reason {
	FLIGHT_ESCALATION = 0,
	FLIGHT_HANG = 1,
	FLIGHT_MANUAL = 2,
	FLIGHT_REASONS = 3,
};

struct flight_message {
	uint32_t type;	  /* enum flight_type */
	uint32_t reason;  /* enum flight_reason; FLIGHT_TRIGGER */
	uint32_t tgid;	  /* of the step; the same */
	uint32_t crowded; /* FLIGHT_DUMP: it is shorter than asked for (segments_written) */
	uint64_t time_ns; /* CLOCK_MONOTONIC: of the step's end; where a dump begins */
	uint64_t steps;	  /* seen so far; those in a dump */
	uint64_t bytes;	  /* of segments; of a dump */
	char text[256];	  /* FLIGHT_TRIGGER: for people */
};

/* "escalation", "hang", "manual": as in the names of files. */
const char *flight_reason_name(uint32_t reason);

/* Both ends, which programs that are started do not inherit. 0 or -errno. */
int flight_pair(int ends[2]);

/*
 * Sends a message, with a descriptor if passed is not -1. Never waits: -EAGAIN, the other side does
 * not read; -EPIPE, it has ended; or another -errno.
 */
int flight_send(int fd, const struct flight_message *message, int passed);

/*
 * Takes the next message, without waiting, and the descriptor that came with it, or -1. 1; 0: there
 * is none; -EPIPE: the other side has ended; -EBADMSG: it is none of ours, and was dropped.
 */
int flight_receive(int fd, struct flight_message *message, int *passed);

#endif

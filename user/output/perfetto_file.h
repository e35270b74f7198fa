/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The packets of a trace in Perfetto's format: the sequences that they belong to, their clocks, and
 * the texts and stacks that are written once and then have a number. Numbers of fields, and what a
 * reader makes of them, are those of protos/perfetto/trace in the Perfetto repository.
 *
 * A sequence of packets has its own clock, which counts on from packet to packet (is_incremental),
 * its own default track, and its own numbers. Times that lie before the last one are of a second
 * clock, which counts from the begin of the window.
 */
#ifndef FBT_OUTPUT_PERFETTO_FILE_H
#define FBT_OUTPUT_PERFETTO_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "base/proto.h"
#include "base/vec.h"
#include "fbt_event.h"
#include "model/window.h"

/* Fields of a packet that a caller writes. */
enum perfetto_packet { PERFETTO_TRACK_EVENT = 11, PERFETTO_TRACK_DESCRIPTOR = 60 };

/* What has numbers of its own. */
enum perfetto_text {
	PERFETTO_NAME,
	PERFETTO_CATEGORY,
	PERFETTO_KEY,
	PERFETTO_VALUE,
	PERFETTO_FUNCTION,
	PERFETTO_SOURCE,
	PERFETTO_PATH,
	PERFETTO_BUILD_ID, /* as hexadecimal digits; the file has the bytes */
	PERFETTO_MAPPING,  /* made of the two before */
	PERFETTO_FRAME,
	PERFETTO_CALLSTACK, /* made of frames */
	PERFETTO_TEXTS,
};

/* Beyond these, texts are written out each time, and stacks are left out. */
#define PERFETTO_TEXTS_MAX	65536 /* of each */
#define PERFETTO_TEXT_BYTES_MAX (32u << 20)

/* Texts that have a number: the same one in each sequence. */
struct perfetto_texts {
	void *tree; /* by text; see tsearch(3) */
	uint64_t count;
};

struct perfetto_sequence {
	uint32_t id;			     /* 1, 2, … */
	bool begun;			     /* its clock and defaults are written */
	uint64_t track;			     /* the default one; 0: none */
	uint64_t last_ns;		     /* of its clock */
	VEC(uint64_t) known[PERFETTO_TEXTS]; /* a bit for each number that it has defined */
};

struct perfetto_file {
	FILE *out; /* borrowed */
	struct proto packet;
	struct proto interned; /* what the packet is the first to use */
	struct proto head;
	struct perfetto_texts texts[PERFETTO_TEXTS];
	size_t text_bytes;
	VEC(struct perfetto_sequence) sequences;
	size_t current;	      /* index of the sequence of the packet */
	uint64_t lost_stacks; /* left out, see above */
};

/* out is borrowed. 0 or -ENOMEM; clear it in any case. */
int perfetto_file_init(struct perfetto_file *file, FILE *out);
void perfetto_file_clear(struct perfetto_file *file);

/* A sequence whose events are on track, if they name no other. Its index, or -ENOMEM. */
int perfetto_file_add(struct perfetto_file *file, uint64_t track);

/*
 * Begins a packet in a sequence, without a time; the caller writes to file->packet. 0 or -ENOMEM. A
 * new sequence gets its first packet before.
 */
int perfetto_file_begin(struct perfetto_file *file, const struct window *window, size_t sequence);

/*
 * The time of the packet that was begun, in nanoseconds since the window began. The sequence's
 * clock is set to it if it is not behind it and moves_clock. Times that are not later than later
 * ones are shortest, so what comes out of order should not move the clock.
 */
void perfetto_file_time(struct perfetto_file *file, uint64_t ns, bool moves_clock);

/* Writes the packet. 0 or -ENOMEM; errors of out are left to ferror. */
int perfetto_file_end(struct perfetto_file *file);

/*
 * The number of a text, which the packet defines if it is the first of its sequence with it. 0: too
 * many, or no memory.
 */
uint64_t perfetto_file_text(struct perfetto_file *file, enum perfetto_text kind, const char *text);

/*
 * The number of a stack, as for texts. The outermost function comes first. What is not known of it
 * is a function of its own: [cut off], [caller not found], [by frame pointers], and [not joined]
 * between those of a script and native ones that do not fit.
 */
uint64_t perfetto_file_stack(struct perfetto_file *file, const struct window *window,
			     const struct fbt_stack *stack);

/*
 * For perfetto_file_stack. The number of what text stands for; *is_new: this sequence must define
 * it with perfetto_file_define. 0 as above.
 */
uint64_t perfetto_file_number(struct perfetto_file *file, enum perfetto_text kind, const char *text,
			      bool *is_new);
/* Begins the definition of a number; proto_end(&file->interned, …) ends it. */
size_t perfetto_file_define(struct perfetto_file *file, enum perfetto_text kind, uint64_t number);

#endif

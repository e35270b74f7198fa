/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The events of a trace file in any format that this program writes, one after the other, in
 * bounded memory. The file may hold anything.
 */
#ifndef FBT_MERGE_SOURCE_H
#define FBT_MERGE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/json_read.h"

enum source_format { SOURCE_FERRUM, SOURCE_KINETO, SOURCE_PERFETTO };

/* The year 2096: so that sums and differences of times fit. */
#define SOURCE_BASE_MAX 4000000000000000000

/* What is known of a file after it was read. */
struct source_facts {
	enum source_format format;
	uint64_t base_ns; /* CLOCK_REALTIME of time 0; 0: not known */
	bool has_rank;
	uint32_t rank;
	uint64_t events;
	bool is_cut; /* with -EBADMSG: it ends within a packet of Perfetto's format */
};

/*
 * An event in the form of the Trace Event Format. name and cat are "" if it has none. All is
 * borrowed until take returns.
 */
struct source_event {
	char phase; /* X: a slice; M: a name; s, f: an arrow; or any other */
	const char *name;
	const char *cat;
	bool has_time; /* else ts_ns is 0 */
	int64_t ts_ns;
	int64_t dur_ns;
	int64_t pid;
	int64_t tid;
	struct json_object *whole; /* all members, ts as it stands in the file */
};

/* take returns 0 or -errno, which ends reading and is returned. */
struct source_taker {
	int (*take)(void *ctx, const struct source_event *event);
	void *ctx;
};

#define SOURCE_ERROR 256

/*
 * Reads a file to its end; .gz is decompressed. 0; -EBADMSG: error says what is wrong with it; or
 * -errno. facts->base_ns of a file without a clock comes from its name, if that is one that we make
 * (ferrum_trace_pid7_1764108000000.json).
 */
int source_read(const char *path, const struct source_taker *taker, struct source_facts *facts,
		char error[SOURCE_ERROR]);

/* The same for a file in Perfetto's format that is open. */
int source_read_perfetto(FILE *in, const struct source_taker *taker, struct source_facts *facts,
			 char error[SOURCE_ERROR]);

/* Whether a file that was just opened is in Perfetto's format; rewinds it. */
bool source_is_perfetto(FILE *in);

#endif

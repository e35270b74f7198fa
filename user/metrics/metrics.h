/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The metrics of one run of the tool: fed by a sink of each export, written to a file and sent to a
 * collector every interval while the tool runs and once at its end. Counters begin at 0 with the
 * tool and only grow until it ends, over all windows.
 *
 * The file is replaced as a whole, and everyone may read it (0644), because node_exporter runs as a
 * user of its own. If it cannot be written, that is one line, tracing goes on, and it is tried
 * again at the next interval.
 */
#ifndef FBT_METRICS_METRICS_H
#define FBT_METRICS_METRICS_H

#include <stdbool.h>
#include <stdint.h>
#include "otlp/otlp_endpoint.h"
#include "output/sink.h"

struct metrics;

struct metrics_options {
	const char *path;		       /* NULL: no file */
	const struct otlp_endpoint *collector; /* NULL: none */
	const char *service;		       /* OTEL_SERVICE_NAME, or NULL */
	const char *instance;		       /* in service.instance.id without a file; NULL: our
						  PID */
	uint64_t interval_ns;
	uint64_t keep_free; /* see disk_room_of */
	bool is_replay;	    /* written at the end only */
};

/* options are copied, and what they point to is borrowed. NULL: -ENOMEM. */
struct metrics *metrics__new(const struct metrics_options *options);
void metrics__free(struct metrics *metrics);

/* A sink that feeds them, for one more export of that window. Both are borrowed. NULL: -ENOMEM. */
struct sink *metrics__sink(struct metrics *metrics, const struct window *window);

/*
 * Writes and sends what is due. Call every few milliseconds; between windows less often, unless
 * metrics__is_sending.
 */
void metrics__poll(struct metrics *metrics);
bool metrics__is_sending(const struct metrics *metrics);

/* What the probes of the open window have cost by now: each call, and all steps together. */
void metrics__set_cost(struct metrics *metrics, uint64_t call_ps, uint64_t probes_ns);

/* A window was closed. */
void metrics__close_window(struct metrics *metrics);

/*
 * Writes and sends the last values, and waits for the collector for some seconds. 0, or -errno,
 * logged: the file was not written.
 */
int metrics__end(struct metrics *metrics);

#endif

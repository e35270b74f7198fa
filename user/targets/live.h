/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The parts of a window over live processes, which the files of trace/ share. */
#ifndef FBT_TRACE_LIVE_H
#define FBT_TRACE_LIVE_H

#include "kernel/loader.h"
#include "stream/stream.h"
#include "kernel/traced.h"
#include "model/event.h"
#include "options.h"

struct engine_tree;
struct late_engines;
struct step_sites;
struct steps_found;

/* Owned by the session, borrowed by all others. */
struct live {
	const struct options *options;
	const struct record_output *output;
	bool quiet;	 /* the user has already been told about the targets */
	bool may_inject; /* the tool is not confined yet, and processes are searched for the first
			    time */
	bool is_open;	 /* the window is open, so the tool may be confined */
	struct loader *loader;
	struct traced_set *traced;
	struct steps_found *found;
	struct engine_tree *tree;
	struct late_engines *late;
	struct step_sites *sites;
	struct stream *stream;
};

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * An output. The functions borrow what they are given and keep no pointer to it. They return 0 or
 * -errno; after a failure only free is called, and what was written before stays valid.
 */
#ifndef FBT_SINK_H
#define FBT_SINK_H

#include "step.h"
#include "window.h"

struct sink {
	const char *name; /* for messages: "trace", "profile", "report" */
	int (*write_step)(struct sink *sink, const struct window *window, const struct step *step);
	/* A call outside any step (--detail all). May be NULL. */
	int (*write_call)(struct sink *sink, const struct window *window,
			  const struct fbt_call *call);
	/* The window has ended; its figures are final. */
	int (*finish)(struct sink *sink, const struct window *window);
	void (*free)(struct sink *sink);
};

#endif

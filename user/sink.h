/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * An output. The functions borrow what they are given and keep no pointer to it. They return 0 or
 * -errno; after a failure only free is called, and what was written before stays valid.
 */
#ifndef FBT_SINK_H
#define FBT_SINK_H

#include "classify.h"
#include "gpu_step.h"
#include "step.h"
#include "window.h"

struct sink {
	const char *name; /* for messages: "trace", "profile", "report" */
	int (*write_step)(struct sink *sink, const struct window *window, const struct step *step);
	/*
	 * The step that was just written is escalated, or would be but for the rate limit
	 * (escalation->suppressed). May be NULL.
	 */
	int (*write_escalation)(struct sink *sink, const struct window *window,
				const struct step *step, const struct escalation *escalation);
	/* The calls of a step that was written before are evidence (evidence.h). May be NULL. */
	int (*write_calls)(struct sink *sink, const struct window *window, const struct step *step);
	/* A call outside any step (--detail all). May be NULL. */
	int (*write_call)(struct sink *sink, const struct window *window,
			  const struct fbt_call *call);
	/* GPU records; those of a step behind it, and behind its escalation and calls. May be NULL.
	 */
	int (*write_gpu)(struct sink *sink, const struct window *window,
			 const struct gpu_batch *batch);
	/* Now and then, so that work in the background goes on. May be NULL. */
	int (*poll)(struct sink *sink);
	/* The window has ended; its figures, and the classifier's, are final. */
	int (*finish)(struct sink *sink, const struct window *window,
		      const struct classifier *classifier);
	/* What others have to answer is waited for, a few seconds: no file is. May be NULL. */
	void (*wait)(struct sink *sink);
	void (*free)(struct sink *sink);
};

#endif

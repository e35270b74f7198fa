/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * An output. The functions borrow their arguments and keep no pointers to them. They return 0 or
 * -errno. After a failure only free is called, and what was written before remains valid. All but
 * name and free may be NULL.
 *
 * A sink that writes text of the target without the functions that escape it for a terminal is
 * named in tests/lint/terminal.sh, with the reason why that is harmless.
 */
#ifndef FBT_OUTPUT_SINK_H
#define FBT_OUTPUT_SINK_H

#include "judge/classify.h"
#include "model/gpu.h"
#include "model/step.h"
#include "model/window.h"
#include "ranks/iterations.h"

struct sink {
	const char *name; /* for messages: "trace", "profile", "report" */
	bool is_file;	  /* finished before the report, because that names the files */
	bool is_document; /* the file is valid only after finish, which may come early */
	/* Whole raw records, as they came, before they are decoded. */
	int (*write_records)(struct sink *sink, const void *data, size_t size);
	int (*write_step)(struct sink *sink, const struct window *window, const struct step *step);
	/*
	 * The step that was just written is escalated. Outputs for people show it only if
	 * escalation_is_shown; those that are read by programs have all.
	 */
	int (*write_escalation)(struct sink *sink, const struct window *window,
				const struct step *step, const struct escalation *escalation);
	/* A step hangs. The step itself comes when it has ended, or the window has. */
	int (*write_hang)(struct sink *sink, const struct window *window,
			  const struct fbt_hang *hang);
	/* The calls of a step that was written before are evidence (evidence.h). */
	int (*write_calls)(struct sink *sink, const struct window *window, const struct step *step);
	/* A call outside any step (--detail all). */
	int (*write_call)(struct sink *sink, const struct window *window,
			  const struct fbt_call *call);
	/*
	 * An iteration of a Python engine. Its steps were written before, and some later ones.
	 */
	int (*write_iteration)(struct sink *sink, const struct window *window,
			       const struct iteration *iteration);
	/* GPU records. Those of a step come after the step, its escalation and its calls. */
	int (*write_gpu)(struct sink *sink, const struct window *window,
			 const struct gpu_batch *batch);
	/* Called every few milliseconds, for background work. */
	int (*poll)(struct sink *sink);
	/* The window has ended; its figures and the classifier's are final. */
	int (*finish)(struct sink *sink, const struct window *window,
		      const struct classifier *classifier);
	/* Waits a few seconds for a remote party's answers; no file needs it. */
	void (*wait)(struct sink *sink);
	void (*free)(struct sink *sink);
};

#endif

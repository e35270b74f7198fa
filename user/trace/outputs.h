/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* One export: the files, sinks and pipeline that the options ask for. */
#ifndef FBT_TRACE_OUTPUTS_H
#define FBT_TRACE_OUTPUTS_H

#include "model/event.h"
#include "model/metadata.h"
#include "metrics/metrics.h"
#include "options.h"
#include "otlp/otlp.h"
#include "output/sink.h"

struct outputs;

/*
 * Opens what the options ask for. tag is part of the default file names; NULL (replay): there are
 * no default files. All are borrowed. metrics: what this export feeds, or NULL. 0 or -errno,
 * logged, and no files are left. -EEXIST is not logged: files with that tag exist, so try another
 * tag.
 */
int outputs__open(struct outputs **outputs, const struct options *options,
		  const struct metadata *metadata, const char *tag, struct otlp_health *health,
		  struct metrics *metrics);

/* Takes size bytes of whole records. */
void outputs__push(struct outputs *outputs, const void *data, size_t size);

/* outputs__push as a struct record_output. */
struct record_output outputs__records(struct outputs *outputs);

/* Tells of each escalation, shown or not. 0 or -ENOMEM, logged. */
int outputs__watch(struct outputs *outputs,
		   void (*on_escalation)(void *ctx, const struct step *step,
					 const struct escalation *escalation),
		   void *ctx);

/* Adds a sink, which is outputs' from now on, even on failure. NULL: -ENOMEM. 0 or -ENOMEM. */
int outputs__add_sink(struct outputs *outputs, struct sink *sink);

const struct window *outputs__window(const struct outputs *outputs);

/* Other windows are open too, so that messages must say of which process they are. */
void outputs__name_process(struct outputs *outputs);

/* Does background work and checks the disks. Call every few milliseconds. */
void outputs__poll(struct outputs *outputs);

/* Shows the status line. Call once a second. */
void outputs__show_status(struct outputs *outputs, uint64_t now_ns);

/*
 * What PyTorch's profiler has exported, before outputs__finish: two open memory files, which are
 * outputs' from now on.
 */
void outputs__take_torch(struct outputs *outputs, int execution_fd, int kineto_fd);

/* Ends the window and puts the files in place. 0, or the first error; all are logged. */
int outputs__finish(struct outputs *outputs);

/*
 * After outputs__finish: waits for a collector, for some seconds. The files are already in place.
 */
void outputs__wait(struct outputs *outputs);
void outputs__free(struct outputs *outputs);

/* outputs__free if no window began: leaves no files. */
void outputs__discard(struct outputs *outputs);

#endif

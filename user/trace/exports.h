/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The results of a window: one export for all its processes, or one for each. An export is what the
 * options ask for: files named by a tag, a report (outputs.h).
 */
#ifndef FBT_TRACE_EXPORTS_H
#define FBT_TRACE_EXPORTS_H

#include <stddef.h>
#include "model/event.h"
#include "options.h"
#include "otlp/otlp.h"
#include "output/sink.h"
#include "python/torch.h"

struct env_host;
struct metrics;
struct outputs;
struct exports;

/*
 * Number of processes that have an export of their own. All others share one, with the tag of
 * process 0.
 */
#define EXPORTS_MAX 64

/* What exports of several windows share. */
struct exports_shared {
	const struct options *options;
	const struct env_host *host; /* as for metadata_for_target */
	struct otlp_health health;   /* of the collector */
	struct metrics *metrics;     /* which they feed, or NULL */
	/* Is told of each escalation, shown or not; on_escalation may be NULL. */
	void (*on_escalation)(void *ctx, const struct step *step,
			      const struct escalation *escalation);
	void *ctx;
	/* Adds further sinks to an export; or NULL. 0 or -errno, logged. */
	int (*add_sinks)(void *ctx, struct outputs *outputs);
	void *sinks_ctx;
};

/*
 * One export for the process tgid and all others that are traced; 0: for no particular process. Its
 * files are opened now. shared is borrowed. 0, or -errno, logged, and no files are left.
 */
int exports__open_one(struct exports **exports, struct exports_shared *shared, uint32_t tgid);

/*
 * One export for each process, opened when the process comes under trace (FBT_EVENT_TARGET). If one
 * cannot be opened, that is logged and exports__finish fails; the others continue. 0, -ENOMEM, or
 * -ENOSPC, logged: there is no room for their files.
 */
int exports__open_each(struct exports **exports, struct exports_shared *shared);

/* Where the records of the window go, one at a time. */
struct record_output exports__records(struct exports *exports);

/* The tag of the single export, pidPID_MS. */
const char *exports__tag(const struct exports *exports);

/*
 * The window's start as Unix time in milliseconds. Tags have this time, or a later one if files
 * with that tag existed.
 */
uint64_t exports__unix_ms(const struct exports *exports);

/* Does background work. Call every few milliseconds. */
void exports__poll(struct exports *exports);

/* Shows the status line of the first export. Call once a second. */
void exports__show_status(struct exports *exports, uint64_t now_ns);

/* What PyTorch's profiler has exported in a process; ctx: the exports. Its files are theirs now. */
void exports__take_torch(void *ctx, const struct torch_export *export);

/*
 * Of the single export: another sink, owned by the exports from now on, even on failure; 0 or
 * -ENOMEM. Its window, its metadata, and its process.
 */
int exports__add_sink(struct exports *exports, struct sink *sink);
const struct window *exports__window(const struct exports *exports);
const struct metadata *exports__metadata(const struct exports *exports);
uint32_t exports__tgid(const struct exports *exports);

/* Ends all exports: 0, or the first error of any; all are logged. */
int exports__finish(struct exports *exports);
void exports__free(struct exports *exports);

/* exports__free if no window began: leaves no files. */
void exports__discard(struct exports *exports);

#endif

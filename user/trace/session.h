/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * One window over live processes: finds the processes and their step functions, attaches, makes one
 * stream of records from what the kernel side leaves in rings and tables, and ends the stream.
 */
#ifndef FBT_TRACE_SESSION_H
#define FBT_TRACE_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include "kernel/traced.h"
#include "model/event.h"
#include "options.h"
#include "python/torch.h"

struct child;
struct session;

/*
 * Loads the programs, finds the targets (starts COMMAND, stopped) and their step functions. Does
 * not change the targets yet. options and output are borrowed. cost: from loading_measure; NULL:
 * session__start measures it, which takes 20 ms. quiet: log only errors, because everything else
 * has been logged before. 0, or -errno with one line logged.
 */
int session__open(struct session **session, const struct options *options,
		  const struct record_output *output, const struct fbt_cost *cost, bool quiet);

/*
 * Call before a session__start that comes long after session__open: searches what the targets have
 * mapped since, and forgets those that have ended or that the options no longer name.
 */
void session__refresh(struct session *session);

/* Whether there is room for the threads that the targets have by now. */
bool session__has_room(const struct session *session);

/* Whether several processes are traced, or may be. */
bool session__has_several(const struct session *session);

/* The process that the tag names; 0 with -a. */
uint32_t session__main_tgid(const struct session *session);

/* Attaches, and begins the window. On failure nothing stays attached. 0 or -errno, logged. */
int session__start(struct session *session, const char *tag);

/*
 * Whether all probes are attached. With COMMAND, that is some time after session__start, but before
 * its own first instruction.
 */
bool session__is_attached(const struct session *session);

/* Sends what has come since the last call. Call every few milliseconds. */
void session__poll(struct session *session);

/* What the tool costs, by what it has measured so far: as session__finish sends it. */
void session__cost(const struct session *session, struct fbt_cost *cost);

/* Escalates the next step that ends. Call during the window. */
void session__escalate(struct session *session);

/* A step of this window was escalated; it may be one of some seconds ago. */
void session__note_escalation(struct session *session, const struct step *step,
			      const struct escalation *escalation);

/* Sends what the tool has cost so far, of which later records have higher totals. */
void session__send_totals(struct session *session);

/* Whether all targets have ended, or the last wanted step was seen. */
bool session__is_over(const struct session *session);

/*
 * Detaches, sends the rest and the final tables, and ends the stream. 0; or -ENOENT, logged: --gpu
 * require was not met.
 */
int session__finish(struct session *session);

/* After session__finish, once: the exports of PyTorch's profiler; their files are take's. */
void session__give_torch(struct session *session,
			 void (*take)(void *ctx, const struct torch_export *export), void *ctx);

/* After session__finish: COMMAND, owned by the caller from now on; NULL: there is none. */
struct child *session__take_command(struct session *session);
void session__free(struct session *session);

/*
 * Intervals are steps of fixed length, used if no step function is known. The first one of a
 * process begins at start_ns, and has all calls that are counted from then on. is_part: it began
 * between two boundaries, so that interval is cut off at its begin.
 */
void interval_begin(struct traced *traced, uint64_t start_ns, bool is_part);

/*
 * Sends the step of a process from its last boundary to now_ns; of a process whose first interval
 * has not begun it only sets the boundary. truncated: the end of the window cuts the step off. 0 or
 * -ENOMEM.
 */
int interval_send(struct traced_set *set, struct traced *traced, uint64_t now_ns, bool truncated,
		  const struct record_output *output);

/* The intervals of a window. */
struct intervals {
	uint64_t length_ns;
	uint64_t next_ns; /* next boundary; 0: no intervals, because a step function is probed */
	uint64_t steps;	  /* number sent */
};

/* What probes cost while the window is open: each call, and all steps by now. */
uint64_t session__call_ps(const struct session *session);
uint64_t session__probes_ns(const struct session *session);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * One window over live processes: finds them and their step functions, attaches, turns what the
 * kernel side left in rings and tables into one stream of records, and ends it.
 */
#ifndef FBT_SESSION_H
#define FBT_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include "options.h"
#include "record.h"

struct session;

/*
 * Loads the programs, finds the targets (starts COMMAND, stopped) and their step functions; changes
 * nothing in them yet. options and output are borrowed. cost: what loading_measure found; NULL: it
 * is measured when the window begins, which makes that 20 ms later. 0, or -errno with one line
 * logged.
 */
int session__open(struct session **session, const struct options *options,
		  const struct record_output *output, const struct fbt_cost *cost);

/*
 * Before session__start, if that comes long after session__open: looks for what the targets have
 * mapped since, and forgets those that are gone or that options name no more.
 */
void session__refresh(struct session *session);

/* Whether the targets have not grown too many threads since session__open. */
bool session__has_room(const struct session *session);

/* The process the tag is made of; 0 with -a. */
uint32_t session__main_tgid(const struct session *session);

/* Attaches and begins the window. On failure nothing stays attached. 0 or -errno, logged. */
int session__start(struct session *session, const char *tag);

/* Sends what came since the last call; every few milliseconds. */
void session__poll(struct session *session);

/* Asks for the next step that ends to be escalated; in the window. */
void session__escalate(struct session *session);

/* All targets have ended, or the last step wanted was seen. */
bool session__is_over(const struct session *session);

/*
 * Detaches, sends the rest and the final tables, ends the stream. 0, or -ENOENT, logged: --gpu
 * require was not met.
 */
int session__finish(struct session *session);
void session__free(struct session *session);

#endif

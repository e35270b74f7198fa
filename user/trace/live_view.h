/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The command top: a live view of a window (top/top.h), and dumps of its last minute. */
#ifndef FBT_TRACE_LIVE_VIEW_H
#define FBT_TRACE_LIVE_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include "options.h"
#include "trace/exports.h"
#include "trace/loop.h"
#include "trace/session.h"

struct live_view;

/*
 * *view is NULL if the options do not ask for it; all functions take that. options are borrowed.
 * Call before anything is attached. 0 or -errno, logged.
 */
int live_view__new(struct live_view **view, const struct options *options);

/* After the exports are gone. */
void live_view__free(struct live_view *view);

/* Takes what the window sends. The exports must be gone before the view. 0 or -errno, logged. */
int live_view__attach(struct live_view *view, struct exports *exports);

/* Takes the terminal. Call before the tool is confined. 0 or -errno, logged. */
int live_view__open(struct live_view *view, struct loop *loop);

/* Call each turn with what loop__wait returned. false: the user has quit. */
bool live_view__turn(struct live_view *view, unsigned int news, struct session *session,
		     uint64_t now_ns);

/* Completes a dump, and gives the terminal back. Call before messages about the end are logged. */
void live_view__close(struct live_view *view);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Which steps of a profile are those of its last window. Windows of several processes may be open
 * at the same time (--flag), and then their lines interleave: a step belongs to the next
 * window_prof that names its process. The steps of a run that was killed have no window_prof.
 */
#ifndef FBT_PROFILE_LAST_WINDOW_H
#define FBT_PROFILE_LAST_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

struct last_window;

struct last_window *last_window__new(void); /* NULL: -ENOMEM */
void last_window__free(struct last_window *window);

/*
 * The steps and window_prof of the file, in its order. pids: "7,8"; NULL: it names none, so it has
 * all steps before it. 0 or -ENOMEM.
 */
int last_window__add_step(struct last_window *window, uint32_t tgid);
int last_window__add_end(struct last_window *window, const char *pids);

/* How many windows there are, with the one that has no end. */
uint64_t last_window__count(const struct last_window *window);

/* Whether the event at position, from 1, is the end of the last window, or a step of it. */
bool last_window__ends_at(const struct last_window *window, uint64_t position);
bool last_window__has_step(const struct last_window *window, uint64_t position, uint32_t tgid);

#endif

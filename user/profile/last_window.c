/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "profile/last_window.h"

#include <errno.h>
#include <stdlib.h>

#include "base/arith.h"
#include "base/id_map.h"

/* Positions are from 1, so that a map can hold them as pointers that are not NULL. */
struct last_window {
	uint64_t position; /* of the last event */
	uint64_t ends_count;
	uint64_t end;		/* position of the last window_prof */
	uint64_t all_end;	/* of the last one that names no process; 0: none */
	uint64_t all_begin;	/* of the last window, if its end names no process; else 0 */
	struct tid_map *ends;	/* by process: the last window_prof that names it */
	struct tid_map *begins; /* by process of the last window: where its steps begin */
	bool is_open;
};

struct last_window *last_window__new(void)
{
	struct last_window *window = calloc(1, sizeof(*window));

	if (!window)
		return NULL;
	window->ends = tid_map__new();
	window->begins = tid_map__new();
	if (window->ends && window->begins)
		return window;
	last_window__free(window);
	return NULL;
}

void last_window__free(struct last_window *window)
{
	if (!window)
		return;
	tid_map__free(window->ends);
	tid_map__free(window->begins);
	free(window);
}

static uint64_t get_position(const struct tid_map *map, uint64_t tgid)
{
	return (uintptr_t)tid_map__get(map, tgid);
}

static int set_position(struct tid_map *map, uint64_t tgid, uint64_t position)
{
	return tid_map__set(map, tgid, (void *)(uintptr_t)position);
}

static int begin_window(struct last_window *window)
{
	struct tid_map *begins = tid_map__new();

	if (!begins)
		return -ENOMEM;
	tid_map__free(window->begins);
	window->begins = begins;
	window->all_begin = 0;
	return 0;
}

/* A window has those steps of a process that the process's window before it has not. */
static int name_process(struct last_window *window, uint64_t tgid)
{
	if (get_position(window->begins, tgid))
		return 0;
	return set_position(window->begins, tgid,
			    max_u64(get_position(window->ends, tgid), window->all_end) + 1);
}

int last_window__add_step(struct last_window *window, uint32_t tgid)
{
	int err = 0;

	window->position++;
	if (!window->is_open)
		err = begin_window(window);
	window->is_open = true;
	return err ? err : name_process(window, tgid);
}

static int name_processes(struct last_window *window, const char *pids)
{
	uint64_t tgid;
	char *rest;
	int err = 0;

	while (!err) {
		tgid = strtoull(pids, &rest, 10);
		if (rest == pids)
			break;
		err = name_process(window, tgid);
		if (!err)
			err = set_position(window->ends, tgid, window->position);
		pids = *rest ? rest + 1 : rest;
	}
	return err;
}

int last_window__add_end(struct last_window *window, const char *pids)
{
	uint64_t before = window->end;
	int err = begin_window(window);

	window->position++;
	window->ends_count++;
	window->end = window->position;
	window->is_open = false;
	if (err || pids)
		return err ? err : name_processes(window, pids);
	window->all_begin = before + 1;
	window->all_end = window->end;
	return 0;
}

uint64_t last_window__count(const struct last_window *window)
{
	return window->ends_count + window->is_open;
}

bool last_window__ends_at(const struct last_window *window, uint64_t position)
{
	return !window->is_open && position == window->end;
}

bool last_window__has_step(const struct last_window *window, uint64_t position, uint32_t tgid)
{
	uint64_t begin = window->all_begin ? window->all_begin : get_position(window->begins, tgid);

	return begin && position >= begin && (window->is_open || position < window->end);
}

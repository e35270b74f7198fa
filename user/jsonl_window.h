/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* window_prof: what was traced, what was lost, what it cost. */
#ifndef FBT_JSONL_WINDOW_H
#define FBT_JSONL_WINDOW_H

#include "classify.h"
#include "json.h"
#include "window.h"

#define JSONL_KEY_SIZE 64

struct jsonl_window {
	struct json_fields shape; /* points into this struct and the window */
	struct json_fields stage_us;
	char lost_keys[FBT_LOST_COUNT][JSONL_KEY_SIZE];
	char *pids;
	char *functions;
	struct {
		char *pids;
		char *status;
		char *detail;
		char version[32];
	} gpu;
};

/* 0, to be cleared, or -ENOMEM. event must not be moved. */
int jsonl_window_fill(struct jsonl_window *event, const struct window *window,
		      const struct classify_counts *counts);
void jsonl_window_clear(struct jsonl_window *event);

#endif

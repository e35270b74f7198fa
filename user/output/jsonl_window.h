/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* window_prof: what was traced, what was lost, and what tracing cost. */
#ifndef FBT_OUTPUT_JSONL_WINDOW_H
#define FBT_OUTPUT_JSONL_WINDOW_H

#include "base/json.h"
#include "judge/classify.h"
#include "model/window.h"
#include "output/slice.h"

#define JSONL_KEY_SIZE 64

/*
 * Version of the members that are not in ferrum's schema. Raised when a member changes its meaning.
 * Version 1 has no parts of a step.
 */
#define JSONL_SCHEMA 3

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
		char count_keys[GPU_WINDOW_COUNTS][JSONL_KEY_SIZE];
		char flush_keys[GPU_FLUSH_COUNTS][JSONL_KEY_SIZE];
	} gpu;
};

/* 0, and the caller clears event; or -ENOMEM. event must not be moved. */
int jsonl_window_fill(struct jsonl_window *event, const struct window *window,
		      const struct classify_counts *counts);
void jsonl_window_clear(struct jsonl_window *event);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What keys do to the view. Pure. */
#ifndef FBT_TOP_KEYS_H
#define FBT_TOP_KEYS_H

#include <stdbool.h>
#include <stdint.h>
#include "top/model.h"

/* Keys that are no character. */
enum top_key_code {
	TOP_KEY_UP = 0x110000, /* beyond Unicode */
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_ENTER,
	TOP_KEY_ESCAPE,
	TOP_KEY_BACKSPACE,
};

enum top_page { TOP_PAGE_MAIN, TOP_PAGE_STEP, TOP_PAGE_TRUST, TOP_PAGE_HELP };

enum top_sort { TOP_BY_TIME, TOP_BY_RATE, TOP_BY_P99, TOP_BY_WAIT, TOP_SORTS };

enum top_action { TOP_NOTHING, TOP_QUIT, TOP_DUMP };

#define TOP_FILTER_MAX 32

struct top_state {
	enum top_page page;
	enum top_sort sort;
	bool slowest_first; /* the list of slow steps; else newest first */
	bool paused;
	uint32_t kind;	   /* of the steps that are shown, or TOP_ALL_KINDS */
	uint64_t selected; /* sequence of a slow step; 0: none */
	bool typing;	   /* of the filter */
	char filter[TOP_FILTER_MAX];
	int scroll; /* of the pages but the main one */
};

void top_state_init(struct top_state *state);

/* The slow steps that are shown, in their order. Returns how many. */
size_t top_list(const struct top_state *state, const struct top_model *model,
		const struct top_slow *list[TOP_SLOW]);

/* A pause holds the model's slow steps. */
enum top_action top_press(struct top_state *state, struct top_model *model, uint32_t key);

#endif

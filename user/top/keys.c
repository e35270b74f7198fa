/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "top/keys.h"

#include <stdlib.h>
#include <string.h>

void top_state_init(struct top_state *state)
{
	*state = (struct top_state){.kind = TOP_ALL_KINDS};
}

static bool is_wanted(const struct top_state *state, const struct top_slow *slow)
{
	char words[CAUSE_WORDS_SIZE];

	if (state->kind != TOP_ALL_KINDS && slow->key.kind != state->kind)
		return false;
	return !*state->filter || strcasestr(slow->kind, state->filter) ||
	       strcasestr(cause_words(slow->cause, words), state->filter) ||
	       strcasestr(slow->evidence, state->filter) ||
	       strcasestr(slow->stack, state->filter) ||
	       strcasestr(slow->waker_stack, state->filter) ||
	       strcasestr(slow->holder_stack, state->filter) ||
	       strcasestr(slow->others, state->filter);
}

static int compare_lengths(const void *left, const void *right)
{
	const struct top_slow *const *a = left, *const *b = right;

	if ((*a)->total_ns != (*b)->total_ns)
		return (*a)->total_ns < (*b)->total_ns ? 1 : -1;
	return (*a)->sequence < (*b)->sequence ? 1 : -1;
}

size_t top_list(const struct top_state *state, const struct top_model *model,
		const struct top_slow *list[TOP_SLOW])
{
	const struct top_slow *slow;
	size_t count = 0;

	for (size_t i = 0; (slow = top_model__slow(model, i)); i++) {
		if (is_wanted(state, slow))
			list[count++] = slow;
	}
	if (state->slowest_first)
		qsort(list, count, sizeof(*list), compare_lengths);
	return count;
}

/* Moves the cursor; without one, to the first step. */
static void move(struct top_state *state, const struct top_model *model, int by)
{
	const struct top_slow *list[TOP_SLOW];
	size_t count = top_list(state, model, list), at = 0;
	long to;

	if (!count)
		return;
	while (at < count && list[at]->sequence != state->selected)
		at++;
	to = at == count ? 0 : (long)at + by;
	to = to < 0 ? 0 : to >= (long)count ? (long)count - 1 : to;
	state->selected = list[to]->sequence;
	state->scroll = 0;
}

static void type(struct top_state *state, uint32_t key)
{
	size_t length = strlen(state->filter);

	if (key == TOP_KEY_ENTER) {
		state->typing = false;
	} else if (key == TOP_KEY_ESCAPE) {
		state->typing = false;
		*state->filter = '\0';
	} else if (key == TOP_KEY_BACKSPACE) {
		if (length)
			state->filter[length - 1] = '\0';
	} else if (key >= ' ' && key < 0x7f && length < TOP_FILTER_MAX - 1) {
		state->filter[length] = (char)key;
		state->filter[length + 1] = '\0';
	}
}

static void show(struct top_state *state, enum top_page page)
{
	state->page = state->page == page ? TOP_PAGE_MAIN : page;
	state->scroll = 0;
}

static void pause(struct top_state *state, struct top_model *model)
{
	state->paused = !state->paused && top_model__hold(model) == 0;
	if (!state->paused)
		top_model__release(model);
}

static void expand(struct top_state *state, const struct top_model *model)
{
	if (!state->selected)
		move(state, model, 0);
	if (state->selected)
		show(state, TOP_PAGE_STEP);
}

static void go(struct top_state *state, const struct top_model *model, uint32_t key)
{
	bool scrolls = state->page == TOP_PAGE_TRUST || state->page == TOP_PAGE_HELP;
	int by = key == TOP_KEY_UP || key == 'k'     ? -1
		 : key == TOP_KEY_DOWN || key == 'j' ? 1
		 : key == TOP_KEY_PAGE_UP	     ? -10
						     : 10;

	if (!scrolls && !(state->page == TOP_PAGE_STEP && (by > 1 || by < -1))) {
		move(state, model, by);
		return;
	}
	state->scroll += by;
	state->scroll = state->scroll < 0 ? 0 : state->scroll;
}

static void close_page(struct top_state *state)
{
	if (state->page == TOP_PAGE_MAIN)
		state->selected = 0;
	state->page = TOP_PAGE_MAIN;
	state->scroll = 0;
}

enum top_action top_press(struct top_state *state, struct top_model *model, uint32_t key)
{
	if (state->typing) {
		type(state, key);
		return TOP_NOTHING;
	}
	switch (key) {
	case 'q':
		return TOP_QUIT;
	case 'd':
		return TOP_DUMP;
	case 'p':
	case ' ':
		pause(state, model);
		break;
	case 's':
		state->sort = (state->sort + 1) % TOP_SORTS;
		break;
	case 'o':
		state->slowest_first = !state->slowest_first;
		break;
	case 'f':
	case '/':
		state->typing = true;
		break;
	case 'h':
	case '?':
		show(state, TOP_PAGE_HELP);
		break;
	case 'w':
		show(state, TOP_PAGE_TRUST);
		break;
	case 'e':
	case TOP_KEY_ENTER:
		expand(state, model);
		break;
	case TOP_KEY_ESCAPE:
		close_page(state);
		break;
	case TOP_KEY_UP:
	case TOP_KEY_DOWN:
	case TOP_KEY_PAGE_UP:
	case TOP_KEY_PAGE_DOWN:
	case 'j':
	case 'k':
		go(state, model, key);
		break;
	default:
		if (key >= '1' && key <= '9')
			state->kind = state->kind == key - '0' ? TOP_ALL_KINDS : key - '0';
		else if (key == '0')
			state->kind = TOP_ALL_KINDS;
	}
	return TOP_NOTHING;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "tally/explained_tally.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/arith.h"
#include "judge/frames.h"

/* The place for a taker with a new name, if there is one. */
static struct fbt_taker *take_place(struct explained_tally *tally, uint64_t ns)
{
	struct fbt_taker *least = &tally->takers[0];

	if (tally->count < EXPLAINED_TAKERS)
		return &tally->takers[tally->count++];
	for (uint32_t i = 1; i < tally->count; i++)
		if (tally->takers[i].ns < least->ns)
			least = &tally->takers[i];
	if (least->ns >= ns)
		return NULL;
	tally->others_ns = add_saturating(tally->others_ns, least->ns);
	return least;
}

static void set_taker(struct explained_tally *tally, struct fbt_taker *place,
		      const struct fbt_taker *taker)
{
	*place = *taker;
	tally->mixed &= ~(1u << (place - tally->takers));
}

/* One that took little has no name of its cgroup. */
static void add_cgroup(struct explained_tally *tally, struct fbt_taker *known,
		       const struct fbt_taker *taker)
{
	uint32_t bit = 1u << (known - tally->takers);

	if (!*taker->cgroup || tally->mixed & bit)
		return;
	if (!*known->cgroup) {
		memcpy(known->cgroup, taker->cgroup, sizeof(known->cgroup));
	} else if (strcmp(known->cgroup, taker->cgroup) != 0) {
		known->cgroup[0] = '\0';
		tally->mixed |= bit;
	}
}

/* Several processes with one name have no pid either. */
static bool is_together(const struct fbt_taker *known, const struct fbt_taker *taker)
{
	bool known_is_group = taker_is_group(known) && !*known->comm;

	if (taker_is_group(taker))
		return known_is_group && !strcmp(known->cgroup, taker->cgroup);
	return !known_is_group && !strcmp(known->comm, taker->comm);
}

static void add_taker(struct explained_tally *tally, const struct fbt_taker *taker)
{
	struct fbt_taker *known = NULL;

	if (taker->tid)
		return;
	for (uint32_t i = 0; i < tally->count && !known; i++)
		if (is_together(&tally->takers[i], taker))
			known = &tally->takers[i];
	if (!known) {
		known = take_place(tally, taker->ns);
		if (known)
			set_taker(tally, known, taker);
		else
			tally->others_ns = add_saturating(tally->others_ns, taker->ns);
		return;
	}
	known->ns = add_saturating(known->ns, taker->ns);
	if (taker_is_group(taker))
		return;
	if (known->tgid != taker->tgid)
		known->tgid = 0;
	add_cgroup(tally, known, taker);
}

static void add_waker(struct explained_tally *tally, const struct fbt_woken *woken)
{
	if (!woken_has_waker(woken)) {
		tally->interrupts++;
		return;
	}
	for (int i = 0; i < EXPLAINED_WAKERS; i++) {
		struct explained_waker *waker = &tally->wakers[i];
		bool is_own = woken->waker_tgid == woken->tgid;

		if (waker->steps &&
		    (waker->is_own != is_own || strcmp(waker->comm, woken->comm) != 0))
			continue;
		waker->is_own = is_own;
		if (!waker->steps) {
			memcpy(waker->comm, woken->comm, sizeof(waker->comm));
			waker->tgid = woken->waker_tgid;
		}
		if (waker->tgid != woken->waker_tgid)
			waker->tgid = 0;
		waker->is_perhaps |= woken->context == FBT_WOKEN_WHILE_SENDING;
		waker->steps++;
		return;
	}
}

static void add_function(struct explained_tally *tally, const char *name, uint64_t ns)
{
	char cut[EXPLAINED_NAME];

	snprintf(cut, sizeof(cut), "%s", name);
	for (int i = 0; i < EXPLAINED_FUNCTIONS; i++) {
		struct explained_function *function = &tally->functions[i];

		if (function->steps && strcmp(function->name, cut) != 0)
			continue;
		memcpy(function->name, cut, sizeof(cut));
		function->steps++;
		function->ns = add_saturating(function->ns, ns);
		return;
	}
}

static void add_grown(struct explained_tally *tally, const struct window *window,
		      const struct cause *cause)
{
	char name[FRAMES_NAME];

	for (uint32_t i = 0; i < cause->grown_count; i++)
		add_function(tally,
			     frames_name(window__code(window, cause->grown[i].codes[0]), name),
			     cause->grown[i].ns);
}

void explained_tally_add(struct explained_tally *tally, const struct window *window,
			 const struct cause *cause)
{
	const struct fbt_taken *taken = &cause->taken;
	enum fbt_explain kind;
	bool is_explained;

	if (!cause_explained_by(cause, &kind, &is_explained))
		return;
	tally->steps++;
	tally->missed += !is_explained;
	tally->kind = kind;
	if (kind == FBT_EXPLAIN_WAKES && is_explained)
		add_waker(tally, &cause->woken);
	if (kind == FBT_EXPLAIN_SAMPLES && is_explained)
		add_grown(tally, window, cause);
	if (kind != FBT_EXPLAIN_SWITCHES || !is_explained)
		return;
	tally->waited_ns = add_saturating(tally->waited_ns, taken->waited_ns);
	tally->own_ns = add_saturating(tally->own_ns, taken->own_ns);
	tally->idle_ns = add_saturating(tally->idle_ns, taken->idle_ns);
	tally->others_ns = add_saturating(tally->others_ns, taken->other_ns);
	for (uint32_t i = 0; i < taken->count; i++)
		add_taker(tally, &taken->takers[i]);
}

int explained_tally_most(const struct explained_tally *tally, uint32_t skip)
{
	int most = -1;

	for (uint32_t i = 0; i < tally->count; i++)
		if (!(skip >> i & 1) && (most < 0 || tally->takers[i].ns > tally->takers[most].ns))
			most = (int)i;
	return most;
}

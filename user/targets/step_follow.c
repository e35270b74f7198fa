/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "targets/step_follow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel/step_probes.h"
#include "steps/follow.h"
#include "targets/steps_found.h"

/* Targets of pointers: looking for one takes up to some ms. */
#define TARGETS_MAX 64

/* Most places where each is a perf uprobe, which takes some 50 ms to remove. */
#define PLACES_MAX_PERF 16

/* A place that is probed. */
struct known_place {
	uint32_t tgid; /* 0: in all processes */
	uint64_t device;
	uint64_t inode;
	uint64_t offset;
};

struct followed_kind {
	VEC(struct known_place) places;
	uint32_t count; /* of places, each once for all processes, also those that have ended */
	char reason[FOLLOW_REASON_BYTES];
	bool told;
};

struct step_follow {
	const struct live *live;
	struct followed_kind kinds[FBT_KIND_COUNT];
	VEC(struct fbt_site_key) jumps; /* that were told */
};

struct step_follow *step_follow__new(const struct live *live)
{
	struct step_follow *follow = calloc(1, sizeof(*follow));

	if (follow)
		follow->live = live;
	return follow;
}

void step_follow__free(struct step_follow *follow)
{
	if (!follow)
		return;
	for (uint32_t kind = 0; kind < FBT_KIND_COUNT; kind++)
		vec_free(&follow->kinds[kind].places);
	vec_free(&follow->jumps);
	free(follow);
}

/* Whether it is probed in the same processes; or, with any, in others. */
static bool is_known(const struct followed_kind *row, const struct known_place *place, bool any)
{
	vec_for_each (known, &row->places) {
		if ((any || known->tgid == place->tgid) && known->device == place->device &&
		    known->inode == place->inode && known->offset == place->offset)
			return true;
	}
	return false;
}

/* Leaves only places that are not probed yet in what was found, and notes them. */
static int note_new(struct followed_kind *row, struct follow *found, uint32_t tgid)
{
	size_t kept = 0;
	int err = 0;

	vec_for_each (place, &found->places) {
		const struct follow_file *file = &found->files.items[place->file];
		struct known_place added = {tgid, file->device, file->inode, place->offset};

		if (err || is_known(row, &added, false))
			continue;
		row->count += !is_known(row, &added, true);
		err = vec_push(&row->places, added);
		found->places.items[kept++] = *place;
	}
	found->places.count = kept;
	return err;
}

/* Probes what was found and is new. */
static int attach_found(struct step_follow *follow, struct traced *traced, uint32_t kind,
			struct follow *found)
{
	const struct live *live = follow->live;
	const struct step_probe probe = {.function = steps_found__function(live->found, kind),
					 .kind = kind};
	uint32_t tgid = steps_found__probes_all(live->found) ? 0 : traced->tgid;
	struct uprobes *links = steps_found__links(live->found, traced);
	struct followed_kind *row = &follow->kinds[kind];
	size_t places = row->places.count;
	uint32_t count = row->count;
	int err;

	if (!links)
		return -ENOMEM;
	err = note_new(row, found, tgid);
	uprobes__set_quiet(links, log_level() < LOG_DEBUG);
	for (uint32_t i = 0; i < found->files.count && !err; i++)
		err = step_probes_attach_followed(links, loader__step_program(live->loader), found,
						  i, &probe,
						  steps_found__link_tgid(live->found, traced));
	uprobes__set_quiet(links, false);
	/* Else they would be taken for probed where another jump leads to them. */
	if (err) {
		row->places.count = places;
		row->count = count;
	}
	return err;
}

int step_follow__attach(struct step_follow *follow, struct traced *traced, uint32_t kind)
{
	const struct step_function *function = steps_found__function(follow->live->found, kind);
	struct followed_kind *row = &follow->kinds[kind];
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);
	struct follow found;
	int err = follow_exits(&found, traced->tgid, function);

	snprintf(row->reason, sizeof(row->reason), "%s", found.reason);
	if (!err && found.places.count > PLACES_MAX_PERF &&
	    !loader__has_multi(follow->live->loader)) {
		snprintf(row->reason, sizeof(row->reason), "too many returns for this kernel");
		err = -ENOTSUP;
	}
	if (!err)
		err = attach_found(follow, traced, kind, &found);
	log_debug("%s: process %u: its jumps lead to %u functions, %u jumps are not followed, "
		  "%zu places are new, %.1f ms%s%s%s%s",
		  function->name, traced->tgid, found.functions, found.jumps, found.places.count,
		  (double)(clock_ns(CLOCK_MONOTONIC) - start_ns) / 1e6, err ? ": " : "",
		  err ? strerror(-err) : "", *found.reason ? ": " : "", found.reason);
	follow_clear(&found);
	return err;
}

/* That a process has ended in the meantime, or has no such file any more, is not an error. */
int step_follow__attach_all(struct step_follow *follow, uint32_t kind)
{
	struct traced *traced;
	size_t attached = 0;
	int err = 0;

	for (size_t i = 0; (traced = traced_set__at(follow->live->traced, i)) && !err; i++) {
		bool has = false;

		vec_for_each (own, &traced->kinds)
			has |= *own == kind;
		if (!has)
			continue;
		err = step_follow__attach(follow, traced, kind);
		attached += !err;
		if (err == -ESRCH || err == -ENOENT)
			err = 0;
	}
	return err || attached ? err : -ESRCH;
}

const char *step_follow__reason(const struct step_follow *follow, uint32_t kind)
{
	return follow->kinds[kind].reason;
}

uint32_t step_follow__places(const struct step_follow *follow, uint32_t kind)
{
	return follow->kinds[kind].count;
}

void step_follow__drop(struct step_follow *follow, uint32_t kind)
{
	size_t kept = 0;

	follow->kinds[kind].places.count = 0;
	follow->kinds[kind].count = 0;
	vec_for_each (key, &follow->jumps) {
		if ((key->jump_kind & ~FBT_SITE_TARGET) == kind)
			loader__forget_site(follow->live->loader, key);
		else
			follow->jumps.items[kept++] = *key;
	}
	follow->jumps.count = kept;
}

static void warn_of_jump(struct step_follow *follow, uint32_t kind)
{
	struct followed_kind *row = &follow->kinds[kind];

	if (row->told)
		return;
	row->told = true;
	log_warn("%s: calls that leave it by a jump which cannot be followed (%s) are not traced. "
		 "Name the function that it jumps to by --step, or use --interval",
		 steps_found__function(follow->live->found, kind)->name,
		 *row->reason ? row->reason : "its code cannot be read");
}

/* Follows the jumps of a kind again, or what a pointer has led to. 0 if that is followed now. */
static int follow_on(struct step_follow *follow, struct traced *traced,
		     const struct fbt_ring_site *jump)
{
	struct followed_kind *row = &follow->kinds[jump->kind];
	bool is_target = jump->jump_kind & FBT_SITE_TARGET;
	struct follow found;
	int err = is_target ? follow_entry(&found, traced->tgid, jump->address)
			    : follow_exits(&found, traced->tgid,
					   steps_found__function(follow->live->found, jump->kind));

	if (err || !is_target)
		snprintf(row->reason, sizeof(row->reason), "%s", found.reason);
	vec_for_each (place, &found.places) {
		if (!is_target && place->kind == FOLLOW_JUMP && place->address == jump->address)
			err = -ENOTSUP;
	}
	if (!err)
		err = attach_found(follow, traced, jump->kind, &found);
	follow_clear(&found);
	return err;
}

static uint32_t count_targets(const struct step_follow *follow, const struct fbt_ring_site *jump)
{
	uint32_t count = 0;

	vec_for_each (key, &follow->jumps)
		count +=
			key->tgid == jump->tgid && key->jump_kind == (jump->kind | FBT_SITE_TARGET);
	return count;
}

void step_follow__take(struct step_follow *follow, const struct fbt_ring_site *jump)
{
	struct fbt_site_key key = {jump->address, jump->tgid, jump->jump_kind};
	struct traced *traced = traced_set__find(follow->live->traced, jump->tgid);
	int err = count_targets(follow, jump) >= TARGETS_MAX ? -E2BIG : 0;

	if (!traced || !follow->kinds[jump->kind].places.count || vec_push(&follow->jumps, key)) {
		/* It will be told again. */
		loader__forget_site(follow->live->loader, &key);
		return;
	}
	err = err ? err : follow_on(follow, traced, jump);
	loader__set_site(follow->live->loader, &key, err ? FBT_SITE_REFUSED : FBT_SITE_PROBED);
	if (err)
		warn_of_jump(follow, jump->kind);
}

void step_follow__forget(struct step_follow *follow, uint32_t tgid)
{
	size_t kept = 0;

	vec_for_each (key, &follow->jumps) {
		if (key->tgid == tgid)
			loader__forget_site(follow->live->loader, key);
		else
			follow->jumps.items[kept++] = *key;
	}
	follow->jumps.count = kept;
	for (uint32_t kind = 0; kind < FBT_KIND_COUNT; kind++) {
		struct followed_kind *row = &follow->kinds[kind];

		kept = 0;
		vec_for_each (place, &row->places) {
			if (place->tgid != tgid)
				row->places.items[kept++] = *place;
		}
		row->places.count = kept;
	}
}

/* What it jumps to is the function to name instead, if that has a name. */
void step_follow_warn(const struct step_function *function, const char *why_not)
{
	struct ways_out ways = step_function_ways_out(function);
	const char *other = ways.names[0] && strncmp(ways.names[0], "0x", 2) ? ways.names[0] : NULL;
	char text[FORMAT_WAYS_MAX];

	log_warn(
		"%s: no probe can be attached where it is called from, and it leaves by jumps to "
		"other functions (%s)%s%s: those steps are not traced. Name %s by --step%s, or use "
		"--interval",
		function->name, format_ways_out(text, &ways),
		why_not ? " which are not followed: " : "", why_not ? why_not : "",
		other ? other : "another function",
		other ? "" : " (--list-steps -p PID shows candidates)");
}

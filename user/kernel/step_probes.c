/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "kernel/step_probes.h"

#include <errno.h>

#include "base/vec.h"
#include "fbt_shared.h"

typedef VEC(struct uprobe_place) place_vec;

static int add_place(place_vec *places, uint64_t offset, uint64_t ref_ctr, uint64_t cookie)
{
	struct uprobe_place place = {.offset = offset, .ref_ctr = ref_ctr, .cookie = cookie};

	return vec_push(places, place);
}

static bool is_same_file(const struct step_function *a, const struct step_function *b)
{
	return a->device == b->device && a->inode == b->inode;
}

/* The functions that are probed together. */
struct group {
	const struct step_probe *probes;
	size_t count;
};

static bool jumps_to(const struct step_function *function, const struct step_function *other)
{
	if (!other->address || other == function || !is_same_file(function, other))
		return false;
	vec_for_each (target, &function->exit_targets) {
		if (*target == other->address)
			return true;
	}
	return false;
}

bool step_probes_are_joined(const struct step_function *a, const struct step_function *b)
{
	return jumps_to(a, b) || jumps_to(b, a);
}

/* Whether an exit is a tail call to another function of the group, in which the step continues. */
static bool is_tail(const struct group *group, const struct step_function *function, size_t exit)
{
	uint64_t target = function->exit_targets.count ? function->exit_targets.items[exit] : 0;

	for (size_t i = 0; target && i < group->count; i++) {
		const struct step_function *other = group->probes[i].function;

		if (other != function && other->address == target && is_same_file(other, function))
			return true;
	}
	return false;
}

static int add_exits(const struct group *group, const struct step_function *function,
		     uint64_t cookie, place_vec *places)
{
	int err = 0;

	for (size_t i = 0; i < function->exit_offsets.count && !err; i++)
		err = add_place(places, function->exit_offsets.items[i], function->end_ref_ctr,
				cookie | FBT_PROBE_END |
					(is_tail(group, function, i) ? FBT_PROBE_TAIL : 0));
	return err;
}

/* Adds the places of a function; that of a uretprobe to returns, as it needs its own link. */
static int add_function(const struct group *group, const struct step_probe *probe,
			place_vec *places, place_vec *returns)
{
	const struct step_function *function = probe->function;
	uint64_t cookie = probe->kind | (function->usdt ? FBT_PROBE_NO_SP : 0);
	int err = 0;

	if (!function->usdt)
		err = add_place(places, function->begin_offset, 0,
				cookie | (function->uretprobe ? FBT_PROBE_RETURN : 0) |
					(function->keeps_frame ? FBT_PROBE_FRAME : 0));
	vec_for_each (begin, &function->usdt_begins) {
		if (!err)
			err = add_place(places, *begin, function->begin_ref_ctr, cookie);
	}
	if (!err)
		err = add_exits(group, function, cookie, places);
	if (!err && function->uretprobe)
		err = add_place(returns, function->begin_offset, 0,
				cookie | FBT_PROBE_END | FBT_PROBE_RETURN);
	return err;
}

static int attach_function(struct uprobes *uprobes, const struct bpf_program *program,
			   const struct group *group, size_t index, uint32_t tgid)
{
	const struct step_function *function = group->probes[index].function;
	place_vec places = {0}, returns = {0};
	int err = add_function(group, &group->probes[index], &places, &returns);

	/* Return probes first: a begin without an end would open a step that never ends. */
	if (!err && returns.count)
		err = uprobes__attach(uprobes, program, function->fd, function->path, returns.items,
				      returns.count, tgid, true);
	if (!err && places.count)
		err = uprobes__attach(uprobes, program, function->fd, function->path, places.items,
				      places.count, tgid, false);
	vec_free(&places);
	vec_free(&returns);
	return err;
}

void step_probes_detach(struct uprobes *uprobes, uint32_t kind)
{
	uprobes__detach(uprobes, FBT_PROBE_KIND, kind);
}

int step_probes_attach(struct uprobes *uprobes, const struct bpf_program *program,
		       const struct step_probe *probes, size_t count, uint32_t tgid)
{
	struct group group = {probes, count};
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		err = attach_function(uprobes, program, &group, i, tgid);
	for (size_t i = 0; i < count && err; i++)
		step_probes_detach(uprobes, probes[i].kind);
	return err;
}

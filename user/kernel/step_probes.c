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

/* Markers of a Python step are nops, and one of them is passed by exceptions only. */
static uint64_t marker_cookie(const struct step_function *function, size_t exit)
{
	if (!function->is_python)
		return 0;
	return FBT_PROBE_EMULATED |
	       (function->exit_offsets.items[exit] == function->raised_offset ? FBT_PROBE_RAISED
									      : 0);
}

static int add_exits(const struct step_function *function, uint64_t cookie, place_vec *places)
{
	int err = 0;

	for (size_t i = 0; i < function->exit_offsets.count && !err; i++)
		err = add_place(places, function->exit_offsets.items[i], function->end_ref_ctr,
				cookie | FBT_PROBE_END | marker_cookie(function, i));
	return err;
}

/* The cookie of the entry, for a function that is no USDT probe. */
static uint64_t begin_cookie(const struct step_function *function, uint64_t kind)
{
	uint64_t cookie = kind | (uint64_t)function->begin_sp << FBT_PROBE_SP_SHIFT;

	if (function->uretprobe)
		cookie |= FBT_PROBE_RETURN;
	if (function->keeps_frame)
		cookie |= FBT_PROBE_FRAME;
	if (function->begin_emulated)
		cookie |= FBT_PROBE_EMULATED;
	if (function->has_sites && !function->exit_offsets.count)
		cookie |= FBT_PROBE_TAILS | (function->may_repeat ? FBT_PROBE_SELF : 0);
	return cookie;
}

static int add_begins(const struct step_function *function, uint64_t kind, place_vec *places)
{
	int err = 0;

	if (!function->usdt)
		return add_place(places, function->begin_offset, 0, begin_cookie(function, kind));
	vec_for_each (begin, &function->usdt_begins) {
		if (!err)
			err = add_place(places, *begin, function->begin_ref_ctr,
					kind | FBT_PROBE_NO_SP);
	}
	return err;
}

static int add_ends(const struct step_probe *probe, place_vec *places)
{
	const struct step_function *function = probe->function;

	if (function->uretprobe)
		return add_place(places, function->begin_offset, 0,
				 probe->kind | FBT_PROBE_END | FBT_PROBE_RETURN);
	if (probe->without_exits)
		return 0;
	return add_exits(function, probe->kind | (function->usdt ? FBT_PROBE_NO_SP : 0), places);
}

/*
 * The ends first: a begin without an end would open a step that never ends. They have a link of
 * their own where they can be detached alone, and where they are return probes.
 */
static int attach_function(struct uprobes *uprobes, const struct bpf_program *program,
			   const struct step_probe *probe, uint32_t tgid)
{
	const struct step_function *function = probe->function;
	place_vec begins = {0}, ends = {0};
	place_vec *apart = function->uretprobe || function->has_sites ? &ends : &begins;
	int err = add_begins(function, probe->kind, &begins);

	if (!err)
		err = add_ends(probe, apart);
	if (!err && ends.count)
		err = uprobes__attach(uprobes, program, function->fd, function->path, ends.items,
				      ends.count, tgid, function->uretprobe);
	if (!err)
		err = uprobes__attach(uprobes, program, function->fd, function->path, begins.items,
				      begins.count, tgid, false);
	vec_free(&begins);
	vec_free(&ends);
	return err;
}

int step_probes_attach_exits(struct uprobes *uprobes, const struct bpf_program *program,
			     const struct step_probe *probe, uint32_t tgid)
{
	const struct step_function *function = probe->function;
	place_vec ends = {0};
	int err = add_exits(function, probe->kind, &ends);

	if (!err && ends.count)
		err = uprobes__attach(uprobes, program, function->fd, function->path, ends.items,
				      ends.count, tgid, false);
	vec_free(&ends);
	return err;
}

void step_probes_detach_exits(struct uprobes *uprobes, uint32_t kind)
{
	/* A window is open, and its rings are to be read meanwhile. */
	uprobes__detach_later(uprobes, FBT_PROBE_KIND | FBT_PROBE_END | FBT_PROBE_SITE,
			      kind | FBT_PROBE_END);
}

static struct uprobe_place place_of_site(const struct step_site *site, uint32_t kind)
{
	return (struct uprobe_place){
		.offset = site->offset,
		.cookie = kind | FBT_PROBE_END | FBT_PROBE_SITE |
			  (site->emulated ? FBT_PROBE_EMULATED : 0) |
			  (uint64_t)site->sp << FBT_PROBE_SP_SHIFT,
	};
}

int step_probes_attach_sites(struct uprobes *uprobes, const struct bpf_program *program,
			     const struct step_site *const *sites, size_t count, uint32_t kind,
			     uint32_t tgid)
{
	place_vec places = {0};
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		err = vec_push(&places, place_of_site(sites[i], kind));
	if (!err && count)
		err = uprobes__attach(uprobes, program, sites[0]->fd, sites[0]->path, places.items,
				      places.count, tgid, false);
	vec_free(&places);
	return err;
}

int step_probes_attach_site(struct uprobes *uprobes, const struct bpf_program *program,
			    const struct step_site *site, uint32_t kind, uint32_t tgid)
{
	return step_probes_attach_sites(uprobes, program, &site, 1, kind, tgid);
}

static uint64_t cookie_of_place(const struct follow *follow, const struct follow_place *place,
				const struct step_probe *probe)
{
	const struct follow_file *file = &follow->files.items[place->file];
	const struct step_function *function = probe->function;
	uint64_t cookie = probe->kind | FBT_PROBE_END;

	if (place->kind == FOLLOW_OWN)
		return cookie;
	if (place->kind == FOLLOW_RETURN)
		return cookie | FBT_PROBE_FOLLOWED;
	if (place->offset == function->begin_offset && file->device == function->device &&
	    file->inode == function->inode)
		cookie |= FBT_PROBE_AT_BEGIN;
	return cookie | FBT_PROBE_JUMP | (uint64_t)place->operand << FBT_PROBE_SP_SHIFT;
}

int step_probes_attach_followed(struct uprobes *uprobes, const struct bpf_program *program,
				const struct follow *follow, uint32_t file,
				const struct step_probe *probe, uint32_t tgid)
{
	const struct follow_file *at = &follow->files.items[file];
	place_vec places = {0};
	int err = 0;

	vec_for_each (place, &follow->places) {
		if (place->file == file && !err)
			err = add_place(&places, place->offset, 0,
					cookie_of_place(follow, place, probe));
	}
	if (!err && places.count)
		err = uprobes__attach(uprobes, program, at->fd, at->path, places.items,
				      places.count, tgid, false);
	vec_free(&places);
	return err;
}

void step_probes_detach_sites(struct uprobes *uprobes, uint32_t kind)
{
	uprobes__detach(uprobes, FBT_PROBE_KIND | FBT_PROBE_SITE, kind | FBT_PROBE_SITE);
}

void step_probes_detach(struct uprobes *uprobes, uint32_t kind)
{
	uprobes__detach(uprobes, FBT_PROBE_KIND, kind);
}

int step_probes_attach(struct uprobes *uprobes, const struct bpf_program *program,
		       const struct step_probe *probes, size_t count, uint32_t tgid)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		err = attach_function(uprobes, program, &probes[i], tgid);
	for (size_t i = 0; i < count && err; i++)
		step_probes_detach(uprobes, probes[i].kind);
	return err;
}

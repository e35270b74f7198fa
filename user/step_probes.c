/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <errno.h>
#include "fbt_shared.h"
#include "step_probes.h"
#include "vec.h"

typedef VEC(struct uprobe_place) place_vec;

static int add_place(place_vec *places, uint64_t offset, uint64_t ref_ctr, uint64_t cookie)
{
	struct uprobe_place place = {.offset = offset, .ref_ctr = ref_ctr, .cookie = cookie};

	return vec_push(places, place);
}

/* A uretprobe is a link of its own, so its place goes to returns. */
static int add_function(const struct step_function *function, uint64_t kind, place_vec *places,
			place_vec *returns)
{
	uint64_t cookie = kind | (function->usdt ? FBT_PROBE_NO_SP : 0);
	int err = 0;

	if (!function->usdt)
		err = add_place(places, function->begin_offset, 0, cookie);
	vec_for_each (begin, &function->usdt_begins) {
		if (!err)
			err = add_place(places, *begin, function->begin_ref_ctr, cookie);
	}
	vec_for_each (offset, &function->exit_offsets) {
		if (!err)
			err = add_place(places, *offset, function->end_ref_ctr,
					cookie | FBT_PROBE_END);
	}
	if (!err && function->uretprobe)
		err = add_place(returns, function->begin_offset, 0,
				cookie | FBT_PROBE_END | FBT_PROBE_RETURN);
	return err;
}

static bool is_same_file(const struct step_function *a, const struct step_function *b)
{
	return a->device == b->device && a->inode == b->inode;
}

static int attach_file(struct uprobes *uprobes, const struct bpf_program *program,
		       struct step_function *const *functions, size_t count, size_t first,
		       uint32_t first_kind, uint32_t tgid)
{
	const struct step_function *file = functions[first];
	place_vec places = {0}, returns = {0};
	int err = 0;

	for (size_t i = first; i < count && !err; i++) {
		if (is_same_file(functions[i], file))
			err = add_function(functions[i], first_kind + i, &places, &returns);
	}
	/* The return probes first: a begin without its end would be a step that never closes. */
	if (!err && returns.count)
		err = uprobes__attach(uprobes, program, file->fd, file->path, returns.items,
				      returns.count, tgid, true);
	if (!err && places.count)
		err = uprobes__attach(uprobes, program, file->fd, file->path, places.items,
				      places.count, tgid, false);
	vec_free(&places);
	vec_free(&returns);
	return err;
}

int step_probes_attach(struct uprobes *uprobes, const struct bpf_program *program,
		       struct step_function *const *functions, size_t count, uint32_t first_kind,
		       uint32_t tgid)
{
	for (size_t i = 0; i < count; i++) {
		bool done = false;
		int err;

		for (size_t j = 0; j < i && !done; j++)
			done = is_same_file(functions[j], functions[i]);
		if (done)
			continue;
		err = attach_file(uprobes, program, functions, count, i, first_kind, tgid);
		if (err)
			return err;
	}
	return 0;
}

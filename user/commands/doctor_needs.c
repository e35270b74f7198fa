/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "commands/doctor_needs.h"

#include <unistd.h>

#include "inject/python_use.h"
#include "proc/process.h"
#include "python/guest.h"
#include "python/tree.h"
#include "shim/ring.h"

static bool has_shim(uint32_t tgid)
{
	struct gpu_memfd found;
	int fd = gpu_memfd_open(tgid, &found);

	if (fd < 0)
		return false;
	close(fd);
	return found.header.phase == FBT_GPU_DORMANT || found.header.phase == FBT_GPU_WORKING;
}

static bool has_python(const struct options *options, uint32_t tgid)
{
	unsigned int minor;

	return (options->python == PYTHON_INJECT ? python_use_is_there(tgid)
						 : python_guest_is_there(tgid)) &&
	       python_use_is_supported(tgid, &minor);
}

static void look(struct doctor_needs *needs, const struct options *options, uint32_t tgid)
{
	if (options->gpu.mode == GPU_REQUIRE && !needs->has_shim)
		needs->has_shim = has_shim(tgid);
	if (options->python != PYTHON_OFF && !needs->has_python)
		needs->has_python = has_python(options, tgid);
}

static void look_below(struct doctor_needs *needs, const struct options *options)
{
	process_vec processes = {0};

	if (processes_list(&processes)) {
		vec_free(&processes);
		return;
	}
	vec_for_each (process, &processes) {
		if (processes_descends(&processes, process->tgid, options->pids.items,
				       options->pids.count))
			look(needs, options, process->tgid);
	}
	vec_free(&processes);
}

bool doctor_wants_python(const struct options *options)
{
	vec_for_each (spec, &options->specs) {
		if (spec->form != STEP_SPEC_PYTHON)
			return false;
	}
	return options->python != PYTHON_OFF;
}

/* As a trace does: of the tree of a process, only those that may have Python steps are taken. */
static void look_around(struct doctor_needs *needs, const struct options *options, uint32_t tgid)
{
	process_vec others = {0};

	look(needs, options, tgid);
	if (doctor_wants_python(options) && !python_tree_list(tgid, &others)) {
		vec_for_each (other, &others) {
			if (has_python(options, other->tgid))
				look(needs, options, other->tgid);
		}
	}
	vec_free(&others);
}

void doctor_needs_read(struct doctor_needs *needs, const struct options *options)
{
	*needs = (struct doctor_needs){.has_shim = false};
	if (options->follow) {
		look_below(needs, options);
		return;
	}
	vec_for_each (pid, &options->pids)
		look_around(needs, options, *pid);
}

struct options doctor_needs_ease(const struct doctor_needs *needs, const struct options *options)
{
	struct options eased = *options;

	if (eased.gpu.mode == GPU_REQUIRE && needs->has_shim)
		eased.gpu.mode = GPU_AUTO;
	if (eased.python == PYTHON_REQUIRE && needs->has_python)
		eased.python = PYTHON_AUTO;
	return eased;
}

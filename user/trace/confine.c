/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "trace/confine.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/vec.h"
#include "inject/cuda_use.h"
#include "inject/inject.h"
#include "kernel/uprobes.h"
#include "output/safe_file.h"
#include "python/guest.h"
#include "python/inject.h"
#include "sandbox/broker.h"
#include "sandbox/capabilities.h"
#include "sandbox/filter.h"
#include "sandbox/privilege.h"
#include "shim/library.h"
#include "shim/ring.h"
#include "search/hint.h"

typedef VEC(char *) folder_vec;

/* The data with which the broker is forked. */
struct plan {
	const struct options *options;
	struct sandbox_works works;
	struct inject_service shim, python;
};

static void give_up(const void *ctx)
{
	const struct plan *plan = ctx;
	int err = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;

	/* The reader of --ready-fd may wait for end of file. */
	if (plan->options->ready_fd)
		close(plan->options->ready_fd);
	if (!err)
		err = sandbox_keep(sandbox_wanted_by_broker, &plan->works);
	if (!err && !plan->works.injects)
		err = sandbox_broker_filter_apply(false);
	if (err && err != -ENOSYS)
		log_warn("broker: keeps more privileges than it needs: %s", strerror(-err));
}

/* Continues even if it cannot give up its rights: the user wants to know the candidates. */
static void look_for_candidates(const void *ctx, const struct broker_order *order, int output)
{
	const struct plan *plan = ctx;

	(void)sandbox_keep(sandbox_wanted_to_look, &plan->works);
	(void)sandbox_broker_filter_apply(true);
	hint_run(plan->options, order, output);
}

/* Reads the libraries that may be put into processes while the window is open. */
static void open_services(struct plan *plan)
{
	const struct options *options = plan->options;
	char *shim = options->gpu.mode == GPU_INJECT ? gpu_shim_path() : NULL;
	char *python = options->python == PYTHON_INJECT ? python_library_path() : NULL;
	const struct inject_load loads[] = {inject_load_shim(shim), python_inject_load(python)};

	if (shim)
		(void)inject_service_open(&plan->shim, &loads[0], options->gpu.inject_timeout_ns);
	if (python)
		(void)inject_service_open(&plan->python, &loads[1], options->gpu.inject_timeout_ns);
	free(shim);
	free(python);
}

static bool admin_events(const struct options *options)
{
	return options->perf_uprobes || !uprobes_have_multi() || sandbox_events_need_admin();
}

void confine_broker_start(const struct options *options)
{
	bool gpu = options->gpu.mode != GPU_OFF;
	bool python = options->python != PYTHON_OFF;
	struct plan plan = {
		.options = options,
		.works =
			{
				.injects = options->gpu.mode == GPU_INJECT ||
					   options->python == PYTHON_INJECT,
				.appends = options->windows.flag && options->profile,
				.admin_events = admin_events(options),
			},
	};
	const struct broker_task tasks[BROKER_WORKS] = {
		[BROKER_HINT] = {.run = look_for_candidates, .ctx = &plan},
		[BROKER_INJECT] = {.run = options->gpu.mode == GPU_INJECT ? inject_serve : NULL,
				   .ctx = &plan.shim},
		[BROKER_INJECT_PYTHON] = {.run = options->python == PYTHON_INJECT ? inject_serve
										  : NULL,
					  .ctx = &plan.python},
		[BROKER_LOOK] = {.open = gpu ? cuda_use_serve : NULL},
		[BROKER_APPEND] = {.open = plan.works.appends ? safe_file_append_serve : NULL,
				   .ctx = options->profile,
				   .may_wait = true},
		[BROKER_MEMFD] = {.open = gpu ? gpu_memfd_serve : NULL},
		[BROKER_PYTHON] = {.open = python ? python_memfd_serve : NULL},
	};

	open_services(&plan);
	(void)broker_start(tasks, give_up, &plan);
	inject_service_clear(&plan.shim);
	inject_service_clear(&plan.python);
}

static int add_folder(folder_vec *folders, const char *path)
{
	char *copy = strdup(path);
	int err = copy ? vec_push(folders, copy) : -ENOMEM;

	if (err)
		free(copy);
	return err;
}

/* Adds the folder of a file. A device or one of our own descriptors needs no folder. */
static int add_file(folder_vec *folders, const char *path)
{
	char *copy;
	struct stat file;
	int err;

	if (!path || !strcmp(path, "none") || safe_file_find_own_fd(path) >= 0 ||
	    (!lstat(path, &file) && !S_ISREG(file.st_mode)))
		return 0;
	copy = strdup(path);
	err = copy ? add_folder(folders, dirname(copy)) : -ENOMEM;
	free(copy);
	return err;
}

static int collect_folders(const struct options *options, folder_vec *folders)
{
	const char *const files[] = {options->trace, options->profile, options->record,
				     options->html,  options->folded,  options->metrics};
	int err = 0;

	for (size_t i = 0; i < sizeof(files) / sizeof(*files) && !err; i++)
		err = add_file(folders, files[i]);
	if (!err && (!options->trace || !options->profile || options->windows.flag || options->top))
		err = add_folder(folders, options->windows.dir);
	return err;
}

static void tell_rights(const struct sandboxed_rights *confined, unsigned int uid)
{
	char names[256] = "";
	size_t used = 0;

	for (unsigned int i = 0; i < 64; i++) {
		const char *name = confined->kept & 1ull << i ? privilege_name(i) : NULL;

		if (name && used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
						 used ? " " : "", name);
	}
	log_debug("capabilities that stay: %s", used ? names : "none");
	if (confined->as_user)
		log_debug("files are written as user %u", uid);
}

static void give_up_rights(const struct options *options, const folder_vec *folders)
{
	struct sandboxed_rights confined;
	struct sandbox_rights rights = {
		.folders = (const char *const *)folders->items,
		.folder_count = folders->count,
		.makes_files = options->windows.flag || options->metrics || options->top,
		.command = options->command,
		.admin_events = admin_events(options),
	};

	rights.has_user = safe_file_find_user(&rights.uid, &rights.gid) && rights.uid;
	if (sandbox_capabilities(&rights, &confined))
		log_warn("capabilities cannot be dropped: the tool keeps those that it has");
	else
		tell_rights(&confined, rights.uid);
}

static void filter_calls(const struct options *options)
{
	struct sandbox_calls calls = {
		.windows = options->windows.flag,
		.network = options->otlp,
		.creates = options->metrics || options->top,
		.command = options->command,
		.explains = options->explain != EXPLAIN_OFF,
		.terminal = options->top,
		.loads = options->perf_uprobes || !uprobes_have_multi(),
	};
	int err = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;

	if (!err)
		err = sandbox_filter_apply(&calls);
	if (err == -ENOSYS)
		log_debug("system calls are not filtered: this kernel or build has no filters");
	else if (err)
		log_warn("system calls are not filtered: %s", strerror(-err));
	else
		log_debug("system calls are filtered");
}

void confine(const struct options *options)
{
	folder_vec folders = {0};
	int err;

	if (!broker_is_there()) {
		log_warn("privileges are kept while tracing: there is no broker");
		return;
	}
	err = collect_folders(options, &folders);
	if (!err)
		give_up_rights(options, &folders);
	else
		log_warn("capabilities are not dropped: %s", strerror(-err));
	vec_for_each (folder, &folders)
		free(*folder);
	vec_free(&folders);
	filter_calls(options);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "confine.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "broker.h"
#include "confine_broker.h"
#include "confine_capabilities.h"
#include "confine_filter.h"
#include "log.h"
#include "owner.h"
#include "place.h"
#include "privilege.h"
#include "uprobes.h"
#include "vec.h"

typedef VEC(char *) folder_vec;

void confine_prepare(const struct options *options)
{
	(void)confine_broker_start(options);
}

void confine_finish(void)
{
	broker_stop();
}

static int add_folder(folder_vec *folders, const char *path)
{
	char *copy = strdup(path);
	int err = copy ? vec_push(folders, copy) : -ENOMEM;

	if (err)
		free(copy);
	return err;
}

/* What is no file, or a descriptor of ours, is open by now and stays where it is. */
static int add_file(folder_vec *folders, const char *path)
{
	char *copy;
	struct stat file;
	int err;

	if (!path || !strcmp(path, "none") || place_find_own_fd(path) >= 0 ||
	    (!lstat(path, &file) && !S_ISREG(file.st_mode)))
		return 0;
	copy = strdup(path);
	err = copy ? add_folder(folders, dirname(copy)) : -ENOMEM;
	free(copy);
	return err;
}

static int collect_folders(const struct options *options, folder_vec *folders)
{
	int err = add_file(folders, options->trace);

	if (!err)
		err = add_file(folders, options->profile);
	if (!err)
		err = add_file(folders, options->record);
	if (!err && (!options->trace || !options->profile || options->windows.flag))
		err = add_folder(folders, options->windows.dir);
	return err;
}

static void tell_rights(const struct confined_rights *confined, unsigned int uid)
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
	struct confined_rights confined;
	struct confine_rights rights = {
		.folders = (const char *const *)folders->items,
		.folder_count = folders->count,
		.makes_files = options->windows.flag,
		.command = options->command,
		.statistics = options->bpf_stats && options->windows.flag,
		.perf_probes = options->perf_uprobes || !uprobes_have_multi(),
	};
	uid_t uid = 0;
	gid_t gid = 0;

	rights.has_user = owner_find_user(&uid, &gid) && uid;
	rights.uid = uid;
	rights.gid = gid;
	if (confine_capabilities(&rights, &confined))
		log_warn("capabilities could not be given up: what the kernel allows to us, it "
			 "goes on to allow");
	else
		tell_rights(&confined, uid);
}

static void filter_calls(const struct options *options)
{
	struct confine_calls calls = {
		.windows = options->windows.flag,
		.network = options->otlp,
		.command = options->command,
		.loads = options->perf_uprobes || !uprobes_have_multi(),
	};
	int err = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;

	if (!err)
		err = confine_filter_apply(&calls);
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
		log_warn("we keep our rights while we trace: there is no process that could use "
			 "them for us");
		return;
	}
	err = collect_folders(options, &folders);
	if (!err)
		give_up_rights(options, &folders);
	else
		log_warn("capabilities are not given up: %s", strerror(-err));
	vec_for_each (folder, &folders)
		free(*folder);
	vec_free(&folders);
	filter_calls(options);
}

void confine_report(void)
{
	confine_filter_report();
}

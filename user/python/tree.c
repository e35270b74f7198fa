/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "python/tree.h"

#include <stdio.h>
#include <string.h>

#include "inject/python_use.h"
#include "proc/open.h"
#include "proc/status.h"

static const char *const helpers[] = {
	"from multiprocessing.resource_tracker import main",
	"from multiprocessing.forkserver import main",
	"from multiprocessing.semaphore_tracker import main",
};

static bool has_helper_argument(const struct process_strings *arguments)
{
	for (size_t i = 0; i < arguments->count; i++) {
		for (size_t k = 0; k < sizeof(helpers) / sizeof(helpers[0]); k++) {
			if (!strncmp(arguments->items[i], helpers[k], strlen(helpers[k])))
				return true;
		}
	}
	return false;
}

bool python_tree_is_helper(uint32_t tgid)
{
	struct process_strings arguments = {0};
	struct thread_stat stat;
	bool found;

	/* A fork server's children have its command line, and are what they were made for. */
	if (thread_stat_read(&stat, (struct proc_ref){.tgid = tgid}) ||
	    stat.flags & THREAD_FORKED || process_strings_read(&arguments, tgid, "cmdline"))
		return false;
	found = has_helper_argument(&arguments);
	process_strings_clear(&arguments);
	return found;
}

static bool runs_the_same(uint32_t parent, uint32_t child)
{
	struct statx above, below;
	struct thread_status owner, own;

	return proc_exe_stat(processes_ref(parent), &above) &&
	       proc_exe_stat(processes_ref(child), &below) &&
	       above.stx_dev_major == below.stx_dev_major &&
	       above.stx_dev_minor == below.stx_dev_minor && above.stx_ino == below.stx_ino &&
	       !thread_status_read(&owner, processes_ref(parent)) &&
	       !thread_status_read(&own, processes_ref(child)) && owner.uid == own.uid;
}

uint32_t python_tree_top(const process_vec *processes, uint32_t tgid,
			 bool (*is_same)(uint32_t parent, uint32_t child))
{
	/* The list is not a snapshot and may contain a loop, so the height is limited. */
	for (size_t height = 0; height < processes->count; height++) {
		uint32_t parent = processes_parent(processes, tgid);

		if (!parent || !is_same(parent, tgid))
			break;
		tgid = parent;
	}
	return tgid;
}

int python_tree_members(uint32_t tgid, process_vec *members)
{
	process_vec processes = {0};
	int err = processes_list(&processes);
	uint32_t top = err ? 0 : python_tree_top(&processes, tgid, runs_the_same);

	vec_for_each (process, &processes) {
		if (!err && processes_descends(&processes, process->tgid, &top, 1))
			err = vec_push(members, *process);
	}
	vec_free(&processes);
	return err;
}

int python_tree_list(uint32_t tgid, process_vec *others)
{
	process_vec members = {0};
	int err = python_use_is_there(tgid) ? python_tree_members(tgid, &members) : 0;

	vec_for_each (member, &members) {
		if (!err && member->tgid != tgid && python_use_is_there(member->tgid) &&
		    !python_tree_is_helper(member->tgid))
			err = vec_push(others, *member);
	}
	vec_free(&members);
	return err;
}

void python_tree_title(uint32_t tgid, char title[PYTHON_TITLE_MAX])
{
	struct process_strings arguments = {0};
	char comm[32];

	proc_comm(processes_ref(tgid), comm, sizeof(comm));
	snprintf(title, PYTHON_TITLE_MAX, "%s", comm);
	if (!*comm || process_strings_read(&arguments, tgid, "cmdline"))
		return;
	/* A thread's name is a title's first 15 bytes. */
	if (arguments.count && !strncmp(arguments.items[0], comm, strlen(comm)))
		snprintf(title, PYTHON_TITLE_MAX, "%s", arguments.items[0]);
	process_strings_clear(&arguments);
}

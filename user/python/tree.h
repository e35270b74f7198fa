/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * An engine in Python is a tree of processes: an API server, the engine, its workers. From any of
 * them to all of them, as /proc shows it.
 */
#ifndef FBT_PYTHON_TREE_H
#define FBT_PYTHON_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include "proc/process.h"

/*
 * Appends the other processes that run Python in the tree of tgid: its top is the highest process
 * that is reached from parent to parent while each runs the same interpreter for the same user.
 * Helpers (python_tree_is_helper) are left out. None if tgid does not run Python. 0 or -errno,
 * logged.
 */
int python_tree_list(uint32_t tgid, process_vec *others);

/* The same with all its processes, tgid too, whatever they run. */
int python_tree_members(uint32_t tgid, process_vec *members);

/*
 * Whether the process is a tracker or server that multiprocessing starts for itself, by its command
 * line: it calls no step.
 */
bool python_tree_is_helper(uint32_t tgid);

/* The top of the tree, by the parents in processes; is_same tells whether two belong together. */
uint32_t python_tree_top(const process_vec *processes, uint32_t tgid,
			 bool (*is_same)(uint32_t parent, uint32_t child));

#define PYTHON_TITLE_MAX 64

/*
 * How a process calls itself: its title where it has set one (setproctitle: "VLLM::EngineCore"),
 * else the name of its first thread.
 */
void python_tree_title(uint32_t tgid, char title[PYTHON_TITLE_MAX]);

#endif

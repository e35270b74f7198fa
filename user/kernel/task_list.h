/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The threads of a process with their registers, read from outside (bpf/look.bpf.c). */
#ifndef FBT_KERNEL_TASK_LIST_H
#define FBT_KERNEL_TASK_LIST_H

#include <stdint.h>
#include "base/vec.h"
#include "fbt_shared.h"

typedef VEC(struct fbt_look_task) task_vec;

struct task_list;

/*
 * Loads the program, for which the tool must have its privileges still. 0, or -errno without a
 * message: the kernel has no such iterator, or refuses it.
 */
int task_list__new(struct task_list **list);
void task_list__free(struct task_list *list);

/*
 * Replaces tasks by the threads of a process, max at most. 0, also if there are none; or -errno.
 * Linux 6.1 and newer passes over its threads only; an older one over those of the machine.
 */
int task_list__read(struct task_list *list, uint32_t tgid, task_vec *tasks, size_t max);

#endif

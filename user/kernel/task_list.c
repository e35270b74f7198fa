/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "kernel/task_list.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "look.skel.h"

/* What the kernel hands out at once: its buffer has 32 KiB. */
#define READ_TASKS 64

struct task_list {
	struct look_bpf *skel;
	bool is_old; /* the kernel cannot be told which process is wanted */
	struct fbt_look_task room[READ_TASKS];
};

int task_list__new(struct task_list **result)
{
	struct task_list *list = calloc(1, sizeof(*list));
	int err = -ENOMEM;

	*result = NULL;
	if (!list)
		return err;
	list->skel = look_bpf__open();
	if (list->skel)
		err = look_bpf__load(list->skel);
	if (err) {
		task_list__free(list);
		return err;
	}
	*result = list;
	return 0;
}

void task_list__free(struct task_list *list)
{
	if (!list)
		return;
	look_bpf__destroy(list->skel);
	free(list);
}

/* A descriptor from which one pass over the threads is read, or -errno. */
static int begin_pass(struct task_list *list, uint32_t tgid)
{
	union bpf_iter_link_info info = {.task.pid = tgid};
	LIBBPF_OPTS(bpf_link_create_opts, options);
	int program = bpf_program__fd(list->skel->progs.list_thread), link, pass;

	if (!list->is_old) {
		options.iter_info = &info;
		options.iter_info_len = sizeof(info);
	}
	list->skel->bss->wanted_tgid = (int)tgid;
	link = bpf_link_create(program, 0, BPF_TRACE_ITER, &options);
	if ((link == -E2BIG || link == -EINVAL) && !list->is_old) {
		list->is_old = true;
		return begin_pass(list, tgid);
	}
	if (link < 0)
		return link;
	pass = bpf_iter_create(link);
	close(link);
	return pass;
}

static int take(const struct task_list *list, size_t count, task_vec *tasks, size_t max)
{
	int err = 0;

	for (size_t i = 0; i < count && tasks->count < max && !err; i++)
		err = vec_push(tasks, list->room[i]);
	return err;
}

int task_list__read(struct task_list *list, uint32_t tgid, task_vec *tasks, size_t max)
{
	int pass = begin_pass(list, tgid), err = 0;
	size_t left = 0;
	ssize_t got = 0;

	tasks->count = 0;
	if (pass < 0)
		return pass;
	while (!err && tasks->count < max) {
		got = read(pass, (char *)list->room + left, sizeof(list->room) - left);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (got <= 0)
			break;
		left += (size_t)got;
		err = take(list, left / sizeof(list->room[0]), tasks, max);
		/* A read may end within a thread. */
		memmove(list->room, (char *)list->room + left - left % sizeof(list->room[0]),
			left % sizeof(list->room[0]));
		left %= sizeof(list->room[0]);
	}
	if (got < 0)
		err = -errno;
	close(pass);
	explicit_bzero(list->room, sizeof(list->room));
	return err;
}

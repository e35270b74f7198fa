/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A process that was forked before we gave our rights up (confine.h), and does for us what then
 * takes them: a few kinds of work, of a process that we name by its id. What it does of them was
 * settled when it started, so that whoever takes us over can have no more from it than that.
 *
 * There is one for a process, as there is one filter. Where there is none, whoever asks does the
 * work itself: nothing has been given up. One that does not answer (what it was to look at is on a
 * file system that does not) is given up: it is still there, and all that is asked of it fails.
 */
#ifndef FBT_BROKER_H
#define FBT_BROKER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum broker_work {
	BROKER_HINT,   /* hint_run */
	BROKER_INJECT, /* inject_serve */
	BROKER_MEMFD,  /* gpu_memfd_serve */
	BROKER_LOOK,   /* cuda_use_serve */
	BROKER_APPEND, /* place_append_serve */
	BROKER_WORKS,
};

struct broker_order {
	uint32_t work; /* enum broker_work */
	uint32_t tgid;
	uint32_t number;     /* BROKER_MEMFD: of a descriptor of that process */
	char path[PATH_MAX]; /* BROKER_LOOK */
};

/* One of run and open, or none: refused. ctx is borrowed, and is as it was at broker_start. */
struct broker_task {
	/* In a process of its own, which writes to output; its standard files are /dev/null. It
	 * never returns. */
	void (*run)(const void *ctx, const struct broker_order *order, int output);
	/* In the broker: a descriptor or -errno. */
	int (*open)(const void *ctx, const struct broker_order *order);
	bool may_wait; /* open waits for whom the user has named, for as long as that takes */
	const void *ctx;
};

/*
 * Before any thread. give_up, which may be NULL, is called with ctx in the broker, before the first
 * order and with our standard error: it keeps there what the tasks take. 0 or -errno, logged.
 */
int broker_start(const struct broker_task tasks[BROKER_WORKS], void (*give_up)(const void *ctx),
		 const void *ctx);

/* It ends; what it started goes on. One that does not answer is not waited for. */
void broker_stop(void);

bool broker_is_there(void);

/*
 * Starts what run does: *pid is a child of ours, to be waited for. output stays ours. 0 or -errno;
 * -EAGAIN: too many of them run.
 */
int broker_run(enum broker_work work, uint32_t tgid, int output, pid_t *pid);

/* SIGKILL to what broker_run started: our own right may be gone. Without a broker it is our own. */
void broker_kill(pid_t pid);

/*
 * What open makes: a descriptor or -errno. path may be NULL. -ETIMEDOUT, logged, if it does not
 * answer, and -EPIPE from then on.
 */
int broker_open(enum broker_work work, uint32_t tgid, uint32_t number, const char *path);

#endif

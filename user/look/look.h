/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A look from outside at a process in which a step's call is open for long: what the waiting thread
 * is in, which thread holds the lock that it waits for, what that one does, and so on; at a hang
 * what all threads are in. Nothing is stopped, and nothing is written.
 *
 * All that is seen may be over a moment later: the threads are listed once more afterwards, and
 * the words of the locks are read again. What has changed is thrown away.
 */
#ifndef FBT_LOOK_LOOK_H
#define FBT_LOOK_LOOK_H

#include <stdbool.h>
#include "look/task.h"
#include "model/event.h"

/* What the look is for. */
struct look_wait {
	uint32_t tgid;
	uint32_t tid;	   /* the thread whose step it is */
	uint64_t start_ns; /* of its call; at a hang of the step */
	uint64_t now_ns;
	bool is_hang;
	/*
	 * It waits for the lock of its interpreter, which is a row of short calls: start_ns is that
	 * of the first one.
	 */
	bool is_gil;
	/* It spins, which is a row of short calls too: the thread runs while it is looked at. */
	bool is_spin;
	uint64_t step_ns; /* of such waits: when the step began */
	uint64_t lock;	  /* of one for the lock of an interpreter: its address */
};

/* The call that the last thread of a chain is in: it may wait for another process. */
struct look_held {
	uint32_t tid;
	uint32_t nr;
	uint64_t call_ns; /* when the call began */
	uint64_t args[2];
};

struct look_source {
	/* Replaces tasks by the threads of a process, FBT_SLOTS_MAX at most. 0 or -errno. */
	int (*list)(void *ctx, uint32_t tgid, look_task_vec *tasks);
	/* Whether what the look is for is still open. */
	bool (*is_open)(void *ctx, const struct look_wait *wait);
	/* A thread will be named in a record. */
	void (*name)(void *ctx, uint32_t tgid, uint32_t tid);
	/* A thread that holds a lock is in that call. */
	void (*held)(void *ctx, const struct look_wait *wait, const struct look_held *held);
	void *ctx;
};

struct look;
struct stacks;

/* stacks and output are borrowed. NULL: -ENOMEM. */
struct look *look__new(struct stacks *stacks, const struct record_output *output,
		       const struct look_source *source);
void look__free(struct look *look);

/* A thread of the chain has gone on meanwhile: what it was in is not known, all else is. */
#define LOOK_IS_PARTIAL 1

/*
 * Looks, and sends an FBT_EVENT_LOOK_THREAD of each thread of the chain: the one that waits, and up
 * to FBT_LOOK_HOLDERS that hold locks. Then one of each group of the other threads,
 * FBT_LOOK_OTHERS at most; at a hang of each group of all threads, and an FBT_EVENT_LOOK. 0 or
 * LOOK_IS_PARTIAL; -EAGAIN: nothing was sent, because it was over; or another -errno, and what is
 * known without the memory of the process was sent.
 */
int look__take(struct look *look, const struct look_wait *wait);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A process that is forked before the tool gives up its privileges, and does the few kinds of work
 * that still need them, each on a process that is named by its PID. What the broker may do is fixed
 * when it starts, so an attacker who takes over the tool gets no more than that from it.
 *
 * A process has at most one broker, as it has at most one filter. If there is no broker, no
 * privileges were given up, and the caller does the work itself. A broker that does not answer,
 * because it waits for a file system that does not respond, is abandoned: it stays, and all further
 * requests fail.
 */
#ifndef FBT_SANDBOX_BROKER_H
#define FBT_SANDBOX_BROKER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum broker_work {
	BROKER_HINT,	      /* hint_run */
	BROKER_INJECT,	      /* inject_serve, of the shim */
	BROKER_INJECT_PYTHON, /* inject_serve, of libferrum_python.so */
	BROKER_MEMFD,	      /* gpu_memfd_serve */
	BROKER_LOOK,	      /* cuda_use_serve */
	BROKER_APPEND,	      /* safe_file_append_serve */
	BROKER_PYTHON,	      /* python_memfd_serve */
	BROKER_WORKS,
};

/* BROKER_MEMFD, BROKER_PYTHON: the file where it is mapped, instead of a descriptor. */
#define BROKER_MAPPED UINT32_MAX

struct broker_order {
	uint32_t work; /* enum broker_work */
	uint32_t tgid;
	/* BROKER_MEMFD, BROKER_PYTHON: a descriptor of that process, or BROKER_MAPPED */
	uint32_t number;
	char path[PATH_MAX]; /* BROKER_LOOK */
};

/*
 * What the broker does for one kind of work: run or open; with neither, the work is refused. ctx is
 * borrowed, and is as it was at broker_start.
 */
struct broker_task {
	/*
	 * Runs in a process of its own, whose standard files are /dev/null. Writes to output, and
	 * never returns.
	 */
	void (*run)(const void *ctx, const struct broker_order *order, int output);
	/* Runs in the broker. Returns a descriptor or -errno. */
	int (*open)(const void *ctx, const struct broker_order *order);
	/* The call of open may wait without limit: the user named what it waits for. */
	bool may_wait;
	/* Otherwise: how long an answer is waited for, in turns of 100 ms (default: 50). */
	int answer_turns;
	const void *ctx;
};

/*
 * Starts the broker. Call before any thread is created. give_up (NULL: none) is called with ctx in
 * the broker before the first order, while the broker still has our standard error. It drops all
 * privileges that the tasks do not need. 0 or -errno, logged.
 */
int broker_start(const struct broker_task tasks[BROKER_WORKS], void (*give_up)(const void *ctx),
		 const void *ctx);

/*
 * Ends the broker. What it has started continues. A broker that does not answer is not waited for.
 */
void broker_stop(void);

bool broker_is_there(void);

/*
 * Starts the work's run in a child of ours, *pid, which the caller waits for. output stays the
 * caller's. 0 or -errno; -EAGAIN: too many children are running.
 */
int broker_run(enum broker_work work, uint32_t tgid, int output, pid_t *pid);

/* Sends SIGKILL to a child of broker_run. The tool itself may no longer be allowed to. */
void broker_kill(pid_t pid);

/*
 * Has the broker call the work's open. Returns a descriptor or -errno. path may be NULL.
 * -ETIMEDOUT, logged: the broker does not answer. From then on -EPIPE.
 */
int broker_open(enum broker_work work, uint32_t tgid, uint32_t number, const char *path);

#endif

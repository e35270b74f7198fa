/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The processes that watch starts: tracers, and writers of dumps. Both are this program. */
#ifndef FBT_WATCH_CHILDREN_H
#define FBT_WATCH_CHILDREN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "options.h"

/* A tracer; it gets fd as its descriptor 3. */
struct tracer_plan {
	const struct options *options; /* borrowed, as all pointers here */
	uint32_t tgid;
	bool follows;	   /* its descendants too */
	unsigned int slot; /* from 1 on: names its file of metrics */
	uint64_t calls_ns; /* 0: times steps and keeps a flight recorder, fd is its socket;
			      else: traces system calls for so long, and fd takes the capture */
	int fd;
};

/* 0, or -errno, logged. */
int children_start_tracer(const struct tracer_plan *plan, pid_t *pid);

/*
 * A tracer asks again to end when watch does: where the program has capabilities of its own
 * (setcap), execve has made the kernel forget it. Nothing in a process that watch has not started.
 */
void children_follow_watch(void);

/* A writer, which runs at the lowest priority, with no right but to write files. */
struct writer_plan {
	const struct options *options;
	const char *dir;
	const char *stem;
	const char *part; /* "", "_calls", "_sample" */
	int fd;		  /* a memory file with a capture */
};

/*
 * The writer copies the capture to a file, and replays it to a trace, a profile and a page, all in
 * DUMPS_FOLDER. Its exit status is 0 if all of them were written.
 */
int children_start_writer(const struct writer_plan *plan, pid_t *pid);

#endif

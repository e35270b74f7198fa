/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A step that does not end, in words. Pure. */
#ifndef FBT_JUDGE_HANG_H
#define FBT_JUDGE_HANG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "fbt_look.h"
#include "judge/look.h"
#include "model/window.h"

/* Room for the description; a longer one is cut. */
#define HANG_TEXT_SIZE 1536

/* Hangs of an hour that are told one by one: a window may be open for weeks. */
#define HANGS_TOLD_MAX 32

/* How many there were lately. All zero at first. */
struct hang_limit {
	uint64_t since_ns; /* when the present hour began */
	uint64_t count;	   /* of that hour, with the present one */
};

/* Counts a hang of that time (CLOCK_MONOTONIC); whether it is to be told. */
bool hang_limit_take(struct hang_limit *limit, uint64_t time_ns);

/* Whether the latest hang was the first one that is not to be told. */
bool hang_limit_begins(const struct hang_limit *limit);

/*
 * One line: "llama_decode has not returned for 10.0 s on thread 7331 "node" of process 7300: in
 * futex for 9.98 s, lock at 0x7f…", and who holds that lock, if a look has shown it. Control
 * characters of names and paths are escaped.
 */
void hang_describe(const struct fbt_hang *hang, const struct window *window,
		   char text[HANG_TEXT_SIZE]);

/* The groups of threads of its process, from 0 on; NULL after the last one. */
const struct fbt_look_thread *hang_group(const struct fbt_hang *hang, const struct window *window,
					 size_t number);

/*
 * The first groups as look_describe_group has them, "; " between them, and how many threads are in
 * others. "" without a look.
 */
#define HANG_THREADS_SIZE (LOOK_GROUPS_SHOWN * (LOOK_GROUP_SIZE + 2) + 64)
void hang_describe_threads(const struct fbt_hang *hang, const struct window *window,
			   char text[HANG_THREADS_SIZE]);

/* Where the thread of the step itself was seen; NULL: it was not. */
const struct fbt_look_thread *hang_own_thread(const struct fbt_hang *hang,
					      const struct window *window);

/* Threads of its process that are in no group. */
uint32_t hang_left_out(const struct fbt_hang *hang, const struct window *window);

/* Threads of its process that are in none of the first groups; 0 without a look. */
uint32_t hang_others(const struct fbt_hang *hang, const struct window *window);

#endif

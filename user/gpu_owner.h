/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Which step of a process something belongs to: to that of its thread; if there is none, to the one
 * that was open then and began last. A thread that has steps is taken to be in one behind the last
 * that is known: the record of a step comes when it ends.
 */
#ifndef FBT_GPU_OWNER_H
#define FBT_GPU_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include "step.h"

/* A thread without a step for so long, while others had some, is not waited for any more. */
#define OWNER_IDLE_NS 10000000000ull

struct gpu_owner;

/* strict: only what the thread of a step did is the step's. NULL: -ENOMEM. */
struct gpu_owner *gpu_owner__new(bool strict);
void gpu_owner__free(struct gpu_owner *owner);

/* A step has ended. 0 or -ENOMEM: then nothing is known of it. */
int gpu_owner__add(struct gpu_owner *owner, const struct step *step);

/* Turns to a step that was added: what the next functions speak of. 0 or -ENOMEM. */
int gpu_owner__select(struct gpu_owner *owner, const struct step *step);

/* All of the step that is selected has come, it is said: what comes of it now is late. */
void gpu_owner__seal(struct gpu_owner *owner);

/* What a thread began at a time is of a step on it that was sealed so. */
bool gpu_owner__is_late(const struct gpu_owner *owner, uint32_t tid, uint64_t time_ns);

/* What a thread (0: not known which) began at a time is that step's. */
bool gpu_owner__has(const struct gpu_owner *owner, uint32_t tid, uint64_t time_ns);

/* … by its own thread's right: no other step could claim it. */
bool gpu_owner__has_alone(const struct gpu_owner *owner, uint32_t tid, uint64_t time_ns);

/*
 * A step that is yet to come begins at this time or later, as far as can be told; 0 before the
 * first step.
 */
uint64_t gpu_owner__next_start(const struct gpu_owner *owner);

/* Forgets steps that ended by a time, those that begin first out first. */
void gpu_owner__forget(struct gpu_owner *owner, uint64_t until_ns);

#endif

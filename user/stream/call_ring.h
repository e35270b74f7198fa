/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Reads the per-CPU call rings as one stream, ordered by time of return. Also sends the records of
 * the files that calls name.
 */
#ifndef FBT_KERNEL_CALL_RING_H
#define FBT_KERNEL_CALL_RING_H

#include <stdbool.h>
#include "fbt_shared.h"
#include "kernel/shared.h"
#include "model/event.h"

struct call_ring;
struct file_names;

typedef void (*call_fn)(void *ctx, const struct fbt_call *call);

/* shared is borrowed. NULL: -ENOMEM. */
struct call_ring *call_ring__new(struct shared *shared);
void call_ring__free(struct call_ring *ring);

/*
 * Calls on_call for each call that returned up to cutoff_ns, which is the present, or UINT64_MAX in
 * the last drain, and frees its place. The calls of a thread come in order even if it changes CPUs,
 * because all calls that returned before cutoff_ns are in a ring by now. Returns the number of
 * calls.
 */
uint64_t call_ring__drain(struct call_ring *ring, uint64_t cutoff_ns, call_fn on_call, void *ctx);

/* Calls that found the ring of their CPU full. */
uint64_t call_ring__lost(const struct call_ring *ring);
void call_ring__reset_lost(struct call_ring *ring);

/* Size of the longest path that file_path_write() writes, with the NUL. */
#define FILE_PATH_BYTES (FBT_PATH_BYTES + FBT_NAME_BYTES + 64)

/*
 * Writes the path as the process sees it, in the form of /proc/PID/fd: "/dev/null",
 * "/tmp/x (deleted)", "socket:[123]", "pipe:[7]", "anon_inode:[eventfd]", "/memfd:NAME"; "" if the
 * file has no name. The path begins with "…/" if the BPF side did not reach the root. Its bytes are
 * untrusted: the target chooses them.
 */
void file_path_write(const struct fbt_ring_file *file, char path[FILE_PATH_BYTES]);

/* Remembers which file records were sent. NULL: -ENOMEM. */
struct file_names *file_names__new(void);
void file_names__free(struct file_names *names);

/* Sends the FBT_EVENT_FILE record of an fbt_ring_file. 0, -EBADMSG if it is invalid, or -ENOMEM. */
int file_names__send(struct file_names *names, const struct fbt_header *event,
		     const struct record_output *output);

/* Whether the record of that file was sent. Only then a call may name the file. */
bool file_names__has(const struct file_names *names, uint32_t id);

#endif

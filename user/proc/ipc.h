/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * By what processes can wait for each other: memory that several of them map, pipes, and Unix
 * sockets. As /proc shows it; nothing is opened but its files.
 */
#ifndef FBT_PROC_IPC_H
#define FBT_PROC_IPC_H

#include <stdbool.h>
#include <stdint.h>
#include "base/vec.h"
#include "proc/memory.h"

/* A mapping that is shared and writable: of a file, of /dev/shm, of a memfd, or anonymous. */
struct shared_memory {
	uint64_t start;
	uint64_t end;
	uint64_t inode;
	uint32_t device_major;
	uint32_t device_minor;
};

typedef VEC(struct shared_memory) shared_memory_vec;

/* More mappings of a process are ignored, and so are more of its descriptors. */
#define SHARED_MEMORY_MAX 512
#define DESCRIPTORS_MAX	  4096

/*
 * Appends the shared memory of a process. Mappings of devices are left out, and those of what all
 * users of one driver have in common. False: it cannot be read.
 */
bool shared_memory_read(uint32_t tgid, shared_memory_vec *memory);

/* The mapping that has the address; NULL: none. */
const struct shared_memory *shared_memory_at(const shared_memory_vec *memory, uint64_t address);

/* Whether the process maps one of count objects, shared and writable. */
bool shared_memory_is_mapped(uint32_t tgid, const struct shared_memory *memory, size_t count);

/* The other end of what a descriptor is, as /proc/PID/fd names it. */
struct far_end {
	bool is_pipe; /* else a socket */
	uint64_t inode;
};

/*
 * The far end of a descriptor of the process from which it may read: a pipe is its own far end, for
 * whoever may write to it; of a Unix socket the one that it is connected to, which diag tells.
 * False: it is neither, or that is not known.
 */
bool far_end_find(uint32_t tgid, uint32_t fd, int diag, struct far_end *end);

/* Whether the process has a descriptor of one of these ends, of a pipe one to write to. */
bool far_ends_are_held(uint32_t tgid, const struct far_end *ends, size_t count);

/* The descriptors, at most count, that an epoll of the process watches. Returns how many. */
size_t epoll_watched(uint32_t tgid, uint32_t epoll, uint32_t *fds, size_t count);

/*
 * Those of an array of struct pollfd in its memory, which may hold anything. Returns how many; none
 * if the memory does not come in time.
 */
size_t poll_watched(struct memory *memory, uint32_t tgid, uint64_t address, uint64_t length,
		    uint32_t *fds, size_t count);

/*
 * A socket that asks the kernel which Unix sockets are connected: of this network namespace, so
 * those of other containers are not known. -1: there is none.
 */
int unix_diag_open(void);

/* The inode of the peer of a Unix socket; 0: not known. */
uint64_t unix_diag_peer(int diag, uint64_t inode);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Finds the place of the stub (cupti/stub/) in a process, and the addresses of the libc functions
 * that the stub calls. The place is the unused zero bytes between the end of an executable segment
 * and the end of its last page, in libc if possible. The stub is written once and never changed,
 * because a helper thread may be running in it.
 */
#ifndef FBT_INJECT_PLACE_H
#define FBT_INJECT_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_inject.h"
#include "inject/point.h"
#include "proc/maps.h"
#include "elf/elf_file.h"

struct inject_libc {
	const struct mapping *mapping; /* of libc's code, in the vector that was searched */
	char version[16];	       /* "2.36"; "" if the file does not say */
	const char *missing;	       /* with -ENOENT: name of a function, static */
	uint64_t functions[FBT_INJECT_FUNCTION_COUNT];
};

/*
 * Finds the functions of FBT_INJECT_FUNCTION_NAMES. Logs nothing. 0; -ESRCH no libc.so.6 is mapped,
 * and mapping is NULL; -EEXIST two are mapped; -ENOENT a function is missing, as before glibc 2.34;
 * -EBADMSG, -ENOEXEC, -errno the file cannot be read.
 */
int inject_libc_find(struct inject_libc *libc, uint32_t thread, const mapping_vec *maps);

/*
 * Finds the functions that a file exports by these names, in their default version. addresses:
 * their ELF virtual addresses; 0: the file lacks the function. 0, -EBADMSG, or -ENOENT: it exports
 * nothing.
 */
int inject_exports_find(struct elf_file *file, const char *const *names, size_t count,
			uint64_t *addresses);

/* Upper bound on the size of the stub. */
#define INJECT_STUB_MAX 4096

struct inject_place {
	uint64_t stub; /* address in the process */
	uint32_t size;
	bool written;			/* this stub is in the process */
	uint8_t bytes[INJECT_STUB_MAX]; /* the stub */
	char file[64]; /* name of the file whose code the stub follows, for messages */
};

/* Makes the stub with these addresses. Returns its size; 0: there is no stub for this processor. */
uint32_t inject_stub_build(uint8_t bytes[INJECT_STUB_MAX],
			   const uint64_t functions[FBT_INJECT_FUNCTION_COUNT]);

/*
 * Finds the stub in a process, or room for it; writes nothing. A stub that a tool left half written
 * when it died counts as room for the same bytes. 0; -ENOSPC no file has enough room; -EEXIST there
 * is a stub of another version or with other functions; -ENOEXEC there is no stub for this
 * processor; -errno of /proc.
 */
int inject_place_find(struct inject_place *place, struct proc_ref process, const mapping_vec *maps,
		      const uint64_t functions[FBT_INJECT_FUNCTION_COUNT]);

/*
 * Writes the stub through /proc/TGID/task/THREAD/mem, unless it is there, and reads it back. The
 * head is written last. Bytes without a head do not count as a stub, so no thread is sent there.
 * hook (NULL: none) is called at INJECT_AT_STUB_PART.
 *
 * 0, and written is set; -EAGAIN the place is no longer free; -EACCES the kernel forbids the write
 * (proc_mem.force_override), and nothing was changed; -ESRCH the process has ended or called
 * execve; -errno.
 */
int inject_place_write(struct inject_place *place, struct proc_ref process,
		       const struct inject_hook *hook);

#endif

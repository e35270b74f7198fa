/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Syscall numbers: names, and the seed's categories (cbtop types.rs, add_syscall). */
#ifndef FBT_SYSCALLS_H
#define FBT_SYSCALLS_H

#include <stdint.h>
#include "fbt_shared.h"

/* The architecture this program was built for. */
enum fbt_arch syscalls_arch(void);

/* Name of a syscall, or NULL if the number has none there. Static memory. */
const char *syscall_name(enum fbt_arch arch, uint32_t nr);

/* As syscall_name, but "syscall_NR", written to buffer, for an unknown number. */
const char *syscall_label(enum fbt_arch arch, uint32_t nr, char buffer[24]);

/* By exact name, as the seed does: everything it does not list is FBT_OTHER. */
enum fbt_category syscall_category(enum fbt_arch arch, uint32_t nr);

/* FBT_FD_* of a syscall: whether it takes a descriptor, and returns one; 0 if it does neither. */
uint32_t syscall_descriptors(enum fbt_arch arch, uint32_t nr);

/* "mmap", "futex", "ioctl", "read", "write", "other". */
const char *category_name(enum fbt_category category);

#endif

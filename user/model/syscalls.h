/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Names of syscalls, and their categories in ferrum (cbtop, types.rs, add_syscall). */
#ifndef FBT_MODEL_SYSCALLS_H
#define FBT_MODEL_SYSCALLS_H

#include <stdint.h>
#include "fbt_shared.h"

/* The architecture this program was built for. */
enum fbt_arch syscalls_arch(void);

/* Name of a syscall on that architecture, or NULL if the number is unknown. Static memory. */
const char *syscall_name(enum fbt_arch arch, uint32_t nr);

/* The same; for an unknown number "syscall_NR", which is written to buffer. */
const char *syscall_label(enum fbt_arch arch, uint32_t nr, char buffer[24]);

/* By exact name, as in ferrum; a syscall that ferrum does not list is FBT_OTHER. */
enum fbt_category syscall_category(enum fbt_arch arch, uint32_t nr);

/* The FBT_FD_* of a syscall (enum fbt_descriptor); 0 if it neither takes nor returns one. */
uint32_t syscall_descriptors(enum fbt_arch arch, uint32_t nr);

/* All that the kernel side knows of a call by its number: see enum fbt_trait. */
uint16_t syscall_traits(enum fbt_arch arch, uint32_t nr);

/* "mmap", "futex", "ioctl", "read", "write", "other". */
const char *category_name(enum fbt_category category);

#endif

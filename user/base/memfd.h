/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Files in memory that the tool makes for itself. */
#ifndef FBT_BASE_MEMFD_H
#define FBT_BASE_MEMFD_H

/*
 * Like memfd_create(2) with MFD_CLOEXEC: a descriptor, or -1 and errno. Nothing in the file can be
 * run where the kernel knows MFD_NOEXEC_SEAL.
 */
int memfd_make(const char *name);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Whose files are ours: those of the user we run as and of the user behind sudo. */
#ifndef FBT_OWNER_H
#define FBT_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

/* The user behind sudo, to whom outputs are given; false: we are not root, or there is none. */
bool owner_find_user(uid_t *uid, gid_t *gid);

/* We run as uid, or it is the user behind sudo (SUDO_UID, SUDO_GID; taken from root alone). */
bool owner_is_us(uid_t uid);

/* That, or root: whose folders and links lead where they should. */
bool owner_is_trusted(uid_t uid);

/*
 * Gives what is behind fd to the user behind sudo, if there is one. It must be what we have just
 * made, known by its descriptor: a name may be another's by now. path is for -v.
 */
void owner_give(int fd, const char *path);

#endif

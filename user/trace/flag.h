/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The file whose presence opens a window. The tool never opens it and never follows it as a link,
 * since anyone may create it in /tmp. inotify on its folder tells when to look. If inotify fails or
 * the folder does not exist, looks are more frequent.
 */
#ifndef FBT_TRACE_FLAG_H
#define FBT_TRACE_FLAG_H

#include <stdint.h>

struct flag;

/*
 * path is borrowed. 0; or, logged: -EINVAL path names a folder or a symbolic link, which cannot be
 * flags; another -errno: the file cannot be examined.
 */
int flag__new(struct flag **flag, const char *path);
void flag__free(struct flag *flag);

/* Readable after an event in the folder, until flag__look. -1: there is none. */
int flag__fd(const struct flag *flag);

/* How often to look if flag__fd does not become readable. */
uint64_t flag__turn_ns(const struct flag *flag);

/*
 * 0: the flag is not present. Otherwise the number of times that it has appeared; a flag that was
 * replaced between two looks has a new number. A flag that came and went between two looks is
 * logged. A folder or symbolic link with its name does not count, and is warned of.
 */
uint64_t flag__look(struct flag *flag);

#endif

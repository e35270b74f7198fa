/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The file whose presence opens a window. It is looked at, never opened and never followed: anyone
 * may make it in /tmp. inotify on its folder tells when to look; where that fails, or the folder is
 * not there, one has to look more often.
 */
#ifndef FBT_FLAG_H
#define FBT_FLAG_H

#include <stdint.h>

struct flag;

/*
 * 0; -EINVAL if path names a folder or a symbolic link, which are no flags, or another -errno if
 * it cannot be looked at: logged. path is borrowed.
 */
int flag__new(struct flag **flag, const char *path);
void flag__free(struct flag *flag);

/* Readable when there is news of the folder, until flag__look; -1: never. */
int flag__fd(const struct flag *flag);

/* How often to look though flag__fd says nothing. */
uint64_t flag__turn_ns(const struct flag *flag);

/*
 * 0: it is not there. Else the number of this time that it is: a flag that went and came between
 * two looks has another one. One that came and went between them is told of in the log. A folder or
 * symbolic link in its place is warned of, and no flag.
 */
uint64_t flag__look(struct flag *flag);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The folder of a path, entered as root though others may write to what is on the way:
 * fs.protected_* (proc(5)) may be off. A symbolic link is followed if root, we or the user behind
 * sudo made it, and nowhere below a link of /proc (that is another's root). In a folder that
 * everyone may write to, a folder is entered if it belongs to one of those.
 */
#ifndef FBT_FOLDER_H
#define FBT_FOLDER_H

#include <stdbool.h>

/*
 * Opens (O_PATH) the folder of path, and sets *name, to be freed, to what is behind its last slash.
 * Missing folders are made, 0755, and belong to the user behind sudo. The descriptor, or -errno;
 * *told: it was logged why.
 */
int folder_open_parent(const char *path, char **name, bool *told);

#endif

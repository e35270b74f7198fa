/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The folder of a path, entered as root though others may write to what is on the way:
 * fs.protected_* (proc(5)) may be off. A symbolic link is followed if root, we or the user behind
 * sudo made it, and nowhere below a link of /proc (that is another's root). In a folder that
 * everyone may write to, a folder is entered if it belongs to one of those.
 *
 * In a folder that a group may write to (ACLs show as that), folders of its members are entered:
 * /srv/traces, 2775 root:llm, is made for them. But any member may have put one there, under
 * whatever name, with the sticky bit too: what lies in it may be anyone's, and is neither replaced
 * nor appended to. New files are root's own, made where there is none (place.h), wherever that is.
 */
#ifndef FBT_FOLDER_H
#define FBT_FOLDER_H

#include <stdbool.h>

/*
 * Opens (O_PATH) the folder of path, and sets *name, to be freed, to what is behind its last slash.
 * Missing folders are made, 0755, and belong to the user behind sudo. *is_foreign: a member of some
 * group may have put it there. The descriptor, or -errno; *told: it was logged why.
 */
int folder_open_parent(const char *path, char **name, bool *is_foreign, bool *told);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A name in a folder that others may write to as well: how output.c opens files safely as root. All
 * functions return 0 or -errno, logged as "PATH: reason: what to do" but where it says otherwise.
 */
#ifndef FBT_PLACE_H
#define FBT_PLACE_H

#include <stdbool.h>
#include <sys/stat.h>

struct broker_order;

struct place {
	char *path; /* as given, for messages */
	char *name; /* last component, within dir */
	int dir;
	bool is_foreign; /* see folder.h: what its owner has there may be anyone's */
};

/* Makes missing folders: see folder_open_parent. To be freed with place_clear. */
int place_open(struct place *place, const char *path);
void place_clear(struct place *place);

/* What is there, its links not followed; -ENOENT is not logged. */
int place_stat(const struct place *place, struct stat *file);

/* Whether it may be written to or replaced. */
int place_check(const struct place *place, const struct stat *file);

/* Opens what is there, checked before and after; -ENOENT is not logged. */
int place_open_existing(const struct place *place, int flags, int *fd);

/*
 * Where a broker opens for us what is there and is appended to (struct broker_task): path, and no
 * other. Our own filter cannot tell that from the memory of a process.
 */
int place_append_serve(const void *path, const struct broker_order *nothing);

/* Makes a file, mode 0600, owned by the user behind sudo; -EEXIST is not logged. */
int place_create(const struct place *place, int flags, int *fd);

/*
 * Gives the file fd, which is at from, the name to in the same folder. 0, or without a message:
 * -EEXIST something is there by now that may not be replaced, and is as it was; -ESTALE another has
 * put something else in fd's place; -errno.
 */
int place_rename(const struct place *from, const struct place *to, int fd);

/* N of /dev/fd/N, /dev/stdout and their other names; -1 if path is none of them. */
int place_find_own_fd(const char *path);

/* Logs what err (positive) means for path and returns -err. */
int place_fail(const char *path, int err);

/* ": free some space …", or "". */
const char *place_advice(int err);

#endif

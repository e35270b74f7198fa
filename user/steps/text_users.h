/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Finds the functions whose code refers to a constant text. A stripped program has no names, but
 * messages that only one function writes tell which function that is.
 */
#ifndef FBT_STEPS_TEXT_USERS_H
#define FBT_STEPS_TEXT_USERS_H

#include "base/vec.h"
#include "steps/image.h"

/* Shorter texts are in too many places. */
#define TEXT_BYTES_MIN 6
#define TEXT_BYTES_MAX 1024

struct text_user {
	uint64_t address;
	uint64_t size;
};

typedef VEC(struct text_user) text_user_vec; /* sorted by address, each function once */

/*
 * Finds the functions of an image, for which image_read() was called, that refer to text, which a
 * constant of the file begins with. The code may refer to it directly, to a pointer to it, or to an
 * entry of the GOT for such a pointer. The unwind table gives the extents of functions; a piece
 * that a compiler split off counts as the function that jumps to it.
 *
 * 0, also if there are none; -E2BIG if the text is in more than 256 places; -EBADMSG if the file
 * cannot be read; or -ENOMEM. Without a message. The caller frees users, also after an error.
 */
int text_users_find(text_user_vec *users, const struct image *image, const char *text,
		    uint64_t deadline_ns);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A growable array. VEC(type) declares one inline; zero-initialised is empty.
 *
 *	VEC(uint64_t) durations = {0};
 *	err = vec_push(&durations, value);	// 0 or -ENOMEM
 *	vec_shrink(&durations, 1024);		// if it holds little of what it has room for
 *	vec_free(&durations);
 */
#ifndef FBT_VEC_H
#define FBT_VEC_H

#include <errno.h>
#include <stdlib.h>

#define VEC(type)                                                                                  \
	struct {                                                                                   \
		type *items;                                                                       \
		size_t count;                                                                      \
		size_t capacity;                                                                   \
	}

/* Makes room for one more item of size bytes: 0, or -ENOMEM with the array unchanged. */
static inline int vec_grow(void **items, size_t count, size_t *capacity, size_t size)
{
	size_t larger = *capacity ? *capacity * 2 : 8;
	void *moved;

	if (count < *capacity)
		return 0;
	moved = reallocarray(*items, larger, size);
	if (!moved)
		return -ENOMEM;
	*items = moved;
	*capacity = larger;
	return 0;
}

#define vec_push(vec, value)                                                                       \
	({                                                                                         \
		int vec_err = vec_grow((void **)&(vec)->items, (vec)->count, &(vec)->capacity,     \
				       sizeof(*(vec)->items));                                     \
		if (!vec_err)                                                                      \
			(vec)->items[(vec)->count++] = (value);                                    \
		vec_err;                                                                           \
	})

/*
 * Gives memory back that a burst needed: where there is room for more than spare items, and at most
 * a quarter of it is in use. Without memory to do so the array stays as it is.
 */
static inline void vec_give_back(void **items, size_t count, size_t *capacity, size_t size,
				 size_t spare)
{
	void *moved;

	if (*capacity <= spare || *capacity / 4 < count)
		return;
	if (!count) {
		free(*items);
		*items = NULL;
		*capacity = 0;
		return;
	}
	moved = reallocarray(*items, count, size);
	if (!moved)
		return;
	*items = moved;
	*capacity = count;
}

#define vec_shrink(vec, spare)                                                                     \
	vec_give_back((void **)&(vec)->items, (vec)->count, &(vec)->capacity,                      \
		      sizeof(*(vec)->items), spare)

#define vec_free(vec)                                                                              \
	do {                                                                                       \
		free((vec)->items);                                                                \
		(vec)->items = NULL;                                                               \
		(vec)->count = (vec)->capacity = 0;                                                \
	} while (0)

/*
 * Not typeof(items): in a const vector that pointer is const, what it points to is not. count is
 * asked first because NULL + 0 is undefined in C.
 */
#define vec_for_each(item, vec)                                                                    \
	for (typeof(*(vec)->items) *item = (vec)->items;                                           \
	     (vec)->count && item < (vec)->items + (vec)->count; item++)

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A growable array. VEC(type) declares one inline; zero-initialised is empty.
 *
 *	VEC(uint64_t) durations = {0};
 *	err = vec_push(&durations, value);	// 0 or -ENOMEM
 *	vec_shrink(&durations, 1024);		// if it holds little of what it has room for
 *	vec_free(&durations);
 */
#ifndef FBT_BASE_VEC_H
#define FBT_BASE_VEC_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* Puts value in front of the item at index, or at the end: 0 or -ENOMEM. */
#define vec_insert(vec, index, value)                                                              \
	({                                                                                         \
		size_t vec_at = (index);                                                           \
		int vec_insert_err = vec_push(vec, value);                                         \
		if (!vec_insert_err) {                                                             \
			typeof(*(vec)->items) vec_new = (vec)->items[(vec)->count - 1];            \
			memmove(&(vec)->items[vec_at + 1], &(vec)->items[vec_at],                  \
				((vec)->count - 1 - vec_at) * sizeof(vec_new));                    \
			(vec)->items[vec_at] = vec_new;                                            \
		}                                                                                  \
		vec_insert_err;                                                                    \
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
 * Binary search: the first index in [0, count) for which the condition on i holds, count if there
 * is none. The condition must hold for all later ones too.
 */
#define first_index(i, count, condition)                                                           \
	({                                                                                         \
		size_t first_low = 0, first_high = (count);                                        \
		while (first_low < first_high) {                                                   \
			size_t i = first_low + (first_high - first_low) / 2;                       \
			if (condition)                                                             \
				first_high = i;                                                    \
			else                                                                       \
				first_low = i + 1;                                                 \
		}                                                                                  \
		first_low;                                                                         \
	})

/*
 * Index of the first item whose key is not less than wanted, in an array that is sorted by it.
 * item_key is an expression of item, a pointer: vec_lower_bound(&threads, item->tid, tid).
 */
#define vec_lower_bound(vec, item_key, wanted)                                                     \
	first_index(vec_i, (vec)->count, ({                                                        \
			    const typeof(*(vec)->items) *item = &(vec)->items[vec_i];              \
			    (item_key) >= (wanted);                                                \
		    }))

/* qsort with a comparison of items. */
#define vec_sort(vec, compare)                                                                     \
	do {                                                                                       \
		if ((vec)->count)                                                                  \
			qsort((vec)->items, (vec)->count, sizeof(*(vec)->items), compare);         \
	} while (0)

/*
 * Not typeof(items): in a const vector that pointer is const, what it points to is not. count is
 * asked first because NULL + 0 is undefined in C.
 */
#define vec_for_each(item, vec)                                                                    \
	for (typeof(*(vec)->items) *item = (vec)->items;                                           \
	     (vec)->count && item < (vec)->items + (vec)->count; item++)

#endif

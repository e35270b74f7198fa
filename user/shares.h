/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Time by key: which lock, file, command or number took most of it. Begin with shares_clear. Keys
 * that come after SHARES_MAX different ones are left out.
 */
#ifndef FBT_SHARES_H
#define FBT_SHARES_H

#include <stdint.h>

#define SHARES_MAX   1024
#define SHARES_SLOTS 2048 /* a power of two */

struct share {
	uint64_t key;
	uint64_t ns;	/* saturates */
	uint64_t calls; /* 0: there is none */
};

struct shares {
	uint16_t slots[SHARES_SLOTS]; /* a hash table: index + 1 of the key's share, 0: free */
	uint32_t count;
	struct share items[SHARES_MAX];
};

/* Leaves the items as they are: most steps use few of them. */
void shares_clear(struct shares *shares);
void shares_add(struct shares *shares, uint64_t key, uint64_t ns);

/* The key with the most time, the first of equals; calls is 0 if there is none. */
struct share shares_largest(const struct shares *shares);

#endif

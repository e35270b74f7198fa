/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Time by key: which lock, file, command, number took most of it. 24 KiB, zero-initialised is
 * empty. Keys that come after SHARES_MAX - 1 different ones are left out.
 */
#ifndef FBT_SHARES_H
#define FBT_SHARES_H

#include <stddef.h>
#include <stdint.h>

#define SHARES_MAX 1024

struct share {
	uint64_t key;
	uint64_t ns;	/* saturates */
	uint64_t calls; /* 0: there is none */
};

struct shares {
	struct share items[SHARES_MAX]; /* an open hash table */
	size_t count;
};

void shares_add(struct shares *shares, uint64_t key, uint64_t ns);

/* The key with the most time; calls is 0 if there is none. */
struct share shares_largest(const struct shares *shares);

#endif

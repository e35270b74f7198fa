/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "shares.h"

#include <string.h>

void shares_clear(struct shares *shares)
{
	memset(shares->slots, 0, sizeof(shares->slots));
	shares->count = 0;
}

/* The share of key, added if it is new; NULL if there is no room. */
static struct share *find_share(struct shares *shares, uint64_t key)
{
	uint32_t i = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) % SHARES_SLOTS;

	while (shares->slots[i]) {
		struct share *share = &shares->items[shares->slots[i] - 1];

		if (share->key == key)
			return share;
		i = (i + 1) % SHARES_SLOTS;
	}
	if (shares->count == SHARES_MAX)
		return NULL;
	shares->items[shares->count] = (struct share){.key = key};
	shares->slots[i] = (uint16_t)++shares->count;
	return &shares->items[shares->count - 1];
}

void shares_add(struct shares *shares, uint64_t key, uint64_t ns)
{
	struct share *share = find_share(shares, key);

	if (!share)
		return;
	share->calls++;
	if (__builtin_add_overflow(share->ns, ns, &share->ns))
		share->ns = UINT64_MAX;
}

struct share shares_largest(const struct shares *shares)
{
	struct share largest = {0};

	for (uint32_t i = 0; i < shares->count; i++) {
		if (!largest.calls || shares->items[i].ns > largest.ns)
			largest = shares->items[i];
	}
	return largest;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "shares.h"

void shares_add(struct shares *shares, uint64_t key, uint64_t ns)
{
	size_t i = (key * UINT64_C(0x9e3779b97f4a7c15) >> 32) % SHARES_MAX;
	struct share *share;

	while (shares->items[i].calls && shares->items[i].key != key)
		i = (i + 1) % SHARES_MAX;
	share = &shares->items[i];
	/* One stays free, so that the search above ends. */
	if (!share->calls && shares->count == SHARES_MAX - 1)
		return;
	shares->count += !share->calls;
	share->key = key;
	share->calls++;
	if (__builtin_add_overflow(share->ns, ns, &share->ns))
		share->ns = UINT64_MAX;
}

struct share shares_largest(const struct shares *shares)
{
	struct share largest = {0};

	for (size_t i = 0; shares->count && i < SHARES_MAX; i++) {
		const struct share *share = &shares->items[i];

		if (share->calls && (!largest.calls || share->ns > largest.ns))
			largest = *share;
	}
	return largest;
}

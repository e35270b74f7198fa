/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "state.h"

/* The only global variable of the shim: see state.h for why there is one. */
static struct shim *bound;

bool shim__bind(struct shim *shim)
{
	struct shim *none = NULL;

	return __atomic_compare_exchange_n(&bound, &none, shim, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

struct shim *shim__bound(void)
{
	return __atomic_load_n(&bound, __ATOMIC_ACQUIRE);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The verdict on seccomp filters. Include after cmocka.h. x86-64. */
#ifndef FBT_FILTERS_FIXTURE_H
#define FBT_FILTERS_FIXTURE_H

#include "inject/filters.h"
#include "../fake/seccomp_filters.h"

struct verdict {
	int err;
	const char *call;
	uint32_t action;
};

static inline void assert_refused(struct verdict verdict, const char *call, uint32_t action)
{
	assert_int_equal(verdict.err, -EPERM);
	assert_string_equal(verdict.call, call);
	assert_int_equal(verdict.action, action);
}

#endif

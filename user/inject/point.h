/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The points of an injection, in order. Tests kill the tool at each of them. */
#ifndef FBT_INJECT_POINT_H
#define FBT_INJECT_POINT_H

enum inject_point {
	INJECT_AT_START,
	INJECT_AT_CHECKED,
	INJECT_AT_STUB_PART, /* half of it is written */
	INJECT_AT_STUB_WRITTEN,
	INJECT_AT_CHOSEN,
	INJECT_AT_SEIZED,
	INJECT_AT_INTERRUPTED, /* asked to stop */
	INJECT_AT_STOPPED,
	INJECT_AT_REGISTERS_READ,
	INJECT_AT_FILTERS_READ,
	INJECT_AT_STUB_COMPARED,
	INJECT_AT_DIVERTED,
	INJECT_AT_PENDING_CHECKED,
	INJECT_AT_DETACHED,
	INJECT_AT_PAGE_FOUND,
	INJECT_AT_PAGE_MAPPED,
	INJECT_AT_LIBRARY_PART, /* half of it is written */
	INJECT_AT_LIBRARY_WRITTEN,
	INJECT_AT_FILLED,
	INJECT_AT_DONE,
	INJECT_POINT_COUNT,
};

/* Called at each point; NULL: none. */
struct inject_hook {
	void (*at)(void *ctx, enum inject_point point);
	void *ctx;
};

static inline void inject_reach(const struct inject_hook *hook, enum inject_point point)
{
	if (hook && hook->at)
		hook->at(hook->ctx, point);
}

#endif

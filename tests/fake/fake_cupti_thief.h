/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Another profiler in the process, which does not subscribe, as PyTorch's from August 2026 on. When
 * it starts, it replaces the client's callbacks and enables kinds; when it stops, it disables them.
 * Buffers that it does not know it drops.
 */
#ifndef FBT_TESTS_FAKE_CUPTI_THIEF_H
#define FBT_TESTS_FAKE_CUPTI_THIEF_H

#include "fake_cupti_setup.h"

#define THIEF_BYTES 65536
/* How long it has been recording when the client comes; longer if there was no work, up to … */
#define THIEF_EARLIER_US 50000
#define THIEF_LATEST_US	 10000000
#define THIEF_LOOK_US	 1000

static const uint8_t thief_kinds[] = {KIND_KERNEL, KIND_MEMCPY,	 KIND_MEMSET,
				      KIND_DRIVER, KIND_RUNTIME, KIND_OVERHEAD};

static void thief_request(uint8_t **buffer, size_t *size, size_t *records)
{
	*buffer = allocate(NULL, THIEF_BYTES);
	memset(*buffer, 0, THIEF_BYTES);
	*size = THIEF_BYTES;
	*records = 0;
}

static void thief_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size,
			    size_t valid)
{
	(void)context, (void)stream, (void)buffer, (void)size, (void)valid;
}

/* Kernels have numbers without any records of calls, as in CUPTI 13.0 U1. The lock is held. */
static void count_apis(void)
{
	cupti.correlating =
		cupti.kinds[KIND_DRIVER] || cupti.kinds[KIND_RUNTIME] || cupti.kinds[KIND_KERNEL];
}

static void thief_enable(bool enable)
{
	lock_state();
	if (enable) {
		cupti.request = thief_request;
		cupti.completed = thief_completed;
	}
	for (size_t i = 0; i < sizeof(thief_kinds); i++)
		cupti.kinds[thief_kinds[i]] = enable;
	memset(cupti.apis[FAKE_DRIVER], enable, CBIDS);
	memset(cupti.apis[FAKE_RUNTIME], enable, CBIDS);
	count_apis();
	unlock_state();
}

static bool has_recorded(void)
{
	bool found = false;

	lock_state();
	for (struct lane *lane = cupti.lanes; lane; lane = lane->next)
		found |= lane->buffer && lane->buffer->count;
	unlock_state();
	return found;
}

static void let_it_record(void)
{
	for (unsigned int us = 0; us < THIEF_LATEST_US; us += THIEF_LOOK_US) {
		if (us >= THIEF_EARLIER_US && has_recorded())
			return;
		usleep(THIEF_LOOK_US);
	}
}

/* Starts or stops the profiler if its file has come or gone. */
static void thief_turn(void)
{
	const char *file = cupti.config.thief_file;
	bool there = file && access(file, F_OK) == 0;

	if (there == cupti.thief)
		return;
	cupti.thief = there;
	thief_enable(there);
	if (!there)
		flush_all(true);
	else if (!cupti.subscribed)
		let_it_record();
}

#endif

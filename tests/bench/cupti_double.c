/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A libcupti that costs nothing, so that bench_shim times only the shim. It accepts every call,
 * gives out the shim's callbacks, and steps from record to record. The rules of CUPTI are checked
 * by tests/fake/libcupti.c, whose checks take longer than the shim does.
 */
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define EXPORT	     __attribute__((visibility("default")))
#define KINDS	     64
#define KERNEL	     10
#define KERNEL_BYTES 216 /* of CUPTI 13.0, as the next ones */
#define MEMCPY_BYTES 96
#define API_BYTES    40
#define VERSION	     130100 /* the clock is a callback */

/* CUptiResult */
#define END_OF_BUFFER 12
#define INVALID_KIND  21

typedef void request_fn(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void complete_fn(void *context, uint32_t stream, uint8_t *buffer, size_t size,
			 size_t valid);

static request_fn *request;
static complete_fn *complete;
static uint32_t enabled[KINDS];
static uint32_t calls[2][2048];

/* For bench_shim; the other functions are CUPTI's. */
EXPORT void bench_cupti_callbacks(request_fn **request_to, complete_fn **complete_to)
{
	*request_to = request;
	*complete_to = complete;
}

/* Kinds, and calls of the API, that are switched on. */
EXPORT uint32_t bench_cupti_enabled(void)
{
	uint32_t count = 0;

	for (int i = 0; i < KINDS; i++)
		count += enabled[i];
	for (int i = 0; i < 2048; i++)
		count += calls[0][i] + calls[1][i];
	return count;
}

EXPORT uint32_t cuptiGetVersion(uint32_t *version)
{
	*version = VERSION;
	return 0;
}

EXPORT uint32_t cuptiGetResultString(uint32_t result, const char **text)
{
	*text = "CUPTI_SUCCESS";
	return 0;
}

EXPORT uint32_t cuptiGetCallbackName(uint32_t domain, uint32_t cbid, const char **name)
{
	if (domain != 2 || cbid != 211)
		return 1;
	*name = "cudaLaunchKernel_v7000";
	return 0;
}

EXPORT uint32_t cuptiGetTimestamp(uint64_t *time)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	*time = (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
	return 0;
}

EXPORT uint32_t cuptiSubscribe(void **subscriber, void *callback, void *user)
{
	*subscriber = enabled;
	return 0;
}

EXPORT uint32_t cuptiUnsubscribe(void *subscriber)
{
	return 0;
}

EXPORT uint32_t cuptiActivityGetAttribute(uint32_t attribute, size_t *size, void *value)
{
	return 0;
}

EXPORT uint32_t cuptiActivitySetAttribute(uint32_t attribute, size_t *size, void *value)
{
	return 0;
}

EXPORT uint32_t cuptiGetThreadIdType(uint32_t *type)
{
	*type = 0;
	return 0;
}

EXPORT uint32_t cuptiSetThreadIdType(uint32_t type)
{
	return 0;
}

EXPORT uint32_t cuptiActivityRegisterCallbacks(request_fn *request_from, complete_fn *complete_from)
{
	request = request_from;
	complete = complete_from;
	return 0;
}

EXPORT uint32_t cuptiActivityRegisterTimestampCallback(uint64_t (*callback)(void))
{
	return 0;
}

EXPORT uint32_t cuptiActivityEnable(uint32_t kind)
{
	enabled[kind % KINDS] = 1;
	return 0;
}

EXPORT uint32_t cuptiActivityDisable(uint32_t kind)
{
	enabled[kind % KINDS] = 0;
	return 0;
}

EXPORT uint32_t cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable)
{
	calls[0][cbid % 2048] = enable;
	return 0;
}

EXPORT uint32_t cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable)
{
	calls[1][cbid % 2048] = enable;
	return 0;
}

EXPORT uint32_t cuptiActivityFlushAll(uint32_t flag)
{
	return 0;
}

static size_t record_bytes(uint32_t kind)
{
	switch (kind) {
	case KERNEL:
		return KERNEL_BYTES;
	case 1:
		return MEMCPY_BYTES;
	case 4:
	case 5:
		return API_BYTES;
	default:
		return 0;
	}
}

EXPORT uint32_t cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record)
{
	uint8_t *next = *record ? *record + record_bytes(*(uint32_t *)*record) : buffer;
	size_t bytes;

	if (next + sizeof(uint32_t) > buffer + valid)
		return END_OF_BUFFER;
	bytes = record_bytes(*(uint32_t *)next);
	if (!bytes)
		return INVALID_KIND;
	if (next + bytes > buffer + valid)
		return END_OF_BUFFER;
	*record = next;
	return 0;
}

EXPORT uint32_t cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
	*dropped = 0;
	return 0;
}

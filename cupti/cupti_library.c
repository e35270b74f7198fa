/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "cupti_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_FLAGS (RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)

struct symbol {
	const char *name;
	size_t offset;
	bool optional;
};

#define CALL(field, text)                                                                          \
	{                                                                                          \
		.name = (text), .offset = offsetof(struct cupti_calls, field)                      \
	}
#define OPTIONAL_CALL(field, text)                                                                 \
	{                                                                                          \
		.name = (text), .offset = offsetof(struct cupti_calls, field), .optional = true    \
	}

static const struct symbol symbols[] = {
	CALL(get_version, "cuptiGetVersion"),
	CALL(get_result_string, "cuptiGetResultString"),
	CALL(get_callback_name, "cuptiGetCallbackName"),
	CALL(get_timestamp, "cuptiGetTimestamp"),
	CALL(subscribe, "cuptiSubscribe"),
	CALL(unsubscribe, "cuptiUnsubscribe"),
	CALL(get_attribute, "cuptiActivityGetAttribute"),
	CALL(set_attribute, "cuptiActivitySetAttribute"),
	CALL(get_thread_id_type, "cuptiGetThreadIdType"),
	CALL(set_thread_id_type, "cuptiSetThreadIdType"),
	CALL(register_callbacks, "cuptiActivityRegisterCallbacks"),
	CALL(enable, "cuptiActivityEnable"),
	CALL(disable, "cuptiActivityDisable"),
	CALL(flush_all, "cuptiActivityFlushAll"),
	CALL(get_next_record, "cuptiActivityGetNextRecord"),
	CALL(get_dropped, "cuptiActivityGetNumDroppedRecords"),
	OPTIONAL_CALL(register_timestamp, "cuptiActivityRegisterTimestampCallback"),
	OPTIONAL_CALL(subscribe_v2, "cuptiSubscribe_v2"),
	OPTIONAL_CALL(enable_runtime_api, "cuptiActivityEnableRuntimeApi"),
	OPTIONAL_CALL(enable_driver_api, "cuptiActivityEnableDriverApi"),
};

struct opening {
	void *handle;
	char *detail;
};

static bool open_path(void *ctx, const char *path)
{
	struct opening *opening = ctx;
	const char *why;

	opening->handle = dlopen(path, OPEN_FLAGS);
	if (opening->handle)
		return true;
	/* An error for a file that exists says more than one for a missing file. */
	why = dlerror();
	if (why && !strstr(why, "No such file"))
		snprintf(opening->detail, CUPTI_DETAIL_BYTES, "%s", why);
	return false;
}

static void *open_library(uint32_t driver_major, char *detail)
{
	const char *wanted = secure_getenv("FERRUM_CUPTI_LIBRARY");
	struct opening opening = {.detail = detail};
	struct cupti_places places = {.driver_major = driver_major};

	if (wanted && *wanted) {
		opening.handle = dlopen(wanted, OPEN_FLAGS);
		if (!opening.handle)
			snprintf(detail, CUPTI_DETAIL_BYTES, "FERRUM_CUPTI_LIBRARY: %s", dlerror());
		return opening.handle;
	}
	cupti_places__look(&places);
	if (*places.mapped)
		opening.handle = dlopen(places.mapped, OPEN_FLAGS | RTLD_NOLOAD);
	if (!opening.handle && !cupti_places__try(&places, open_path, &opening) && !*detail)
		snprintf(detail, CUPTI_DETAIL_BYTES,
			 "no libcupti.so.13, .12 or .11.8 beside libcudart or torch, in "
			 "CUDA_HOME, in "
			 "/usr/local/cuda or on the library path: install it, or name it in the "
			 "engine's environment: FERRUM_CUPTI_LIBRARY");
	return opening.handle;
}

static int resolve(struct cupti_calls *calls, void *handle, char *detail)
{
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *function = dlsym(handle, symbols[i].name);

		if (!function && !symbols[i].optional) {
			snprintf(detail, CUPTI_DETAIL_BYTES, "it has no %s", symbols[i].name);
			return -ENOSYS;
		}
		memcpy((char *)calls + symbols[i].offset, &function, sizeof(function));
	}
	return 0;
}

/*
 * The size of the records of a kind; 0: not known. Measured by having CUPTI step through a buffer
 * that contains nothing but the kind, which needs no GPU.
 */
static uint32_t measure_stride(const struct cupti_calls *calls, uint32_t kind)
{
	uint32_t buffer[512] __attribute__((aligned(8)));
	void *first = NULL;
	void *second;

	for (size_t i = 0; i < sizeof(buffer) / sizeof(buffer[0]); i++)
		buffer[i] = kind;
	if (calls->get_next_record((uint8_t *)buffer, sizeof(buffer), &first) || !first)
		return 0;
	second = first;
	if (calls->get_next_record((uint8_t *)buffer, sizeof(buffer), &second) || second <= first)
		return 0;
	return (uint32_t)((uint8_t *)second - (uint8_t *)first);
}

const char *cupti_library__result(const struct cupti_calls *calls, uint32_t result)
{
	const char *text = NULL;

	if (!calls->get_result_string || calls->get_result_string(result, &text) || !text)
		return "an unknown error";
	return text;
}

int cupti_library__load(struct cupti_library *library, uint32_t driver_major, char *detail)
{
	static const uint32_t kinds[] = {CUPTI_KIND_MEMCPY,   CUPTI_KIND_MEMSET,
					 CUPTI_KIND_DRIVER,   CUPTI_KIND_RUNTIME,
					 CUPTI_KIND_OVERHEAD, CUPTI_KIND_CONCURRENT_KERNEL,
					 CUPTI_KIND_MEMCPY2,  CUPTI_KIND_SYNCHRONIZATION};
	struct cupti_calls calls;
	struct link_map *map;
	void *handle;
	int err;

	detail[0] = '\0';
	handle = open_library(driver_major, detail);
	if (!handle)
		return -ENOENT;
	detail[0] = '\0';
	if (!dlinfo(handle, RTLD_DI_LINKMAP, &map))
		snprintf(library->path, sizeof(library->path), "%s", map->l_name);
	err = resolve(&calls, handle, detail);
	if (err)
		return err;
	if (calls.get_version(&library->version))
		library->version = 0;
	library->calls = calls;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		library->strides[kinds[i]] = measure_stride(&calls, kinds[i]);
	return 0;
}

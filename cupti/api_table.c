/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "api_table.h"

#include <string.h>

static const uint32_t api_kinds[] = {
	[API_DRIVER] = CUPTI_KIND_DRIVER,
	[API_RUNTIME] = CUPTI_KIND_RUNTIME,
};

static bool starts_with(const char *text, size_t length, const char *with)
{
	return length >= strlen(with) && !memcmp(text, with, strlen(with));
}

static bool ends_with(const char *text, size_t length, const char *with)
{
	size_t bytes = strlen(with);

	return length >= bytes && !memcmp(text + length - bytes, with, bytes);
}

/* The name without the prefix "cuda" or "cu" and without suffixes as "_v7000", "_v2_ptds". */
static const char *middle(const char *name, size_t *length)
{
	while (*name == '_') /* __cudaLaunchKernel_v13000: <<<>>> compiled by nvcc 13 */
		name++;
	if (!strncmp(name, "cuda", 4))
		name += 4;
	else if (!strncmp(name, "cu", 2))
		name += 2;
	else
		name += strlen(name);
	*length = strcspn(name, "_");
	return name;
}

enum fbt_gpu_api_class api_class(const char *name, uint16_t *flags)
{
	size_t length;
	const char *text = middle(name, &length);

	*flags = 0;
	/* A host function in a stream is not GPU work. */
	if (starts_with(text, length, "Launch"))
		return starts_with(text, length, "LaunchHostFunc") ? FBT_GPU_API_OTHER
								   : FBT_GPU_API_LAUNCH;
	if (length == strlen("GraphLaunch") && starts_with(text, length, "GraphLaunch"))
		return FBT_GPU_API_GRAPH;
	if (starts_with(text, length, "Memcpy")) {
		*flags = ends_with(text, length, "Async") ? 0 : FBT_GPU_API_BLOCKING;
		return FBT_GPU_API_MEMCPY;
	}
	if (starts_with(text, length, "Memset"))
		return FBT_GPU_API_MEMSET;
	if (starts_with(text, length, "StreamBeginCapture"))
		return FBT_GPU_API_CAPTURE;
	if (starts_with(text, length, "StreamEndCapture"))
		return FBT_GPU_API_CAPTURE_END;
	return ends_with(text, length, "Synchronize") ? FBT_GPU_API_SYNC : FBT_GPU_API_OTHER;
}

static bool take_canary(struct api_table *table, enum api_domain domain, uint32_t cbid,
			const char *name)
{
	if (domain != API_DRIVER || strcmp(name, "cuDriverGetVersion") != 0)
		return false;
	table->canary = cbid;
	return true;
}

static void fill_domain(struct api_table *table, enum api_domain domain,
			const struct cupti_calls *calls)
{
	for (uint32_t cbid = 1; cbid < API_TABLE_CBIDS; cbid++) {
		struct api_call *call = &table->calls[domain][cbid];
		const char *name = NULL;
		enum fbt_gpu_api_class class;
		uint16_t flags;

		if (calls->get_callback_name(domain == API_DRIVER ? CUPTI_DOMAIN_DRIVER
								  : CUPTI_DOMAIN_RUNTIME,
					     cbid, &name) ||
		    !name)
			continue;
		class = api_class(name, &flags);
		if (class == FBT_GPU_API_OTHER) {
			table->others[domain][cbid] = !take_canary(table, domain, cbid, name);
			continue;
		}
		call->name = name;
		call->class = (uint16_t) class;
		call->flags = flags | (domain == API_DRIVER ? FBT_GPU_API_DRIVER : 0);
		table->count++;
	}
}

void api_table__fill(struct api_table *table, const struct cupti_calls *calls)
{
	memset(table, 0, sizeof(*table));
	fill_domain(table, API_DRIVER, calls);
	fill_domain(table, API_RUNTIME, calls);
}

const struct api_call *api_table__find(const struct api_table *table, uint32_t kind, uint32_t cbid)
{
	const struct api_call *call;

	if (cbid >= API_TABLE_CBIDS)
		return NULL;
	call = &table->calls[kind == CUPTI_KIND_DRIVER ? API_DRIVER : API_RUNTIME][cbid];
	return call->name ? call : NULL;
}

/* Disables the records of all calls of a domain but those of the table. */
static uint32_t disable_others(const struct api_table *table, enum api_domain domain,
			       uint32_t (*set)(uint32_t cbid, uint8_t enable))
{
	uint32_t failed = CUPTI_OK;

	for (uint32_t cbid = 1; cbid < API_TABLE_CBIDS; cbid++) {
		uint32_t result = table->others[domain][cbid] ? set(cbid, 0) : CUPTI_OK;

		failed = failed ? failed : result;
	}
	return failed;
}

uint32_t api_table__enable(const struct api_table *table, const struct cupti_calls *calls)
{
	uint32_t (*const set[])(uint32_t cbid, uint8_t enable) = {
		[API_DRIVER] = calls->enable_driver_api,
		[API_RUNTIME] = calls->enable_runtime_api,
	};
	uint32_t failed = CUPTI_OK;

	for (int domain = 0; domain < API_DOMAIN_COUNT; domain++) {
		uint32_t result = calls->enable(api_kinds[domain]);

		if (!result && set[domain])
			result = disable_others(table, domain, set[domain]);
		failed = failed ? failed : result;
	}
	return failed;
}

void api_table__disable(const struct cupti_calls *calls)
{
	for (int domain = 0; domain < API_DOMAIN_COUNT; domain++)
		calls->disable(api_kinds[domain]);
}

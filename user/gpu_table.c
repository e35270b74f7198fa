/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "gpu_table.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "demangle.h"

/* Of what a process is charged with, one in so many may be a rounding of two clocks. */
#define VIOLATIONS_SHARE 1000

/* Where tgid is, or belongs. */
static size_t find_place(const struct gpu_table *table, uint32_t tgid)
{
	size_t low = 0, high = table->processes.count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (table->processes.items[middle]->tgid < tgid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct gpu_process *gpu_table_find(const struct gpu_table *table, uint32_t tgid)
{
	size_t place = find_place(table, tgid);

	if (place < table->processes.count && table->processes.items[place]->tgid == tgid)
		return table->processes.items[place];
	return NULL;
}

static void process_free(struct gpu_process *process)
{
	vec_for_each (device, &process->devices)
		free(device->name);
	vec_free(&process->devices);
	vec_for_each (name, &process->names) {
		free(name->raw);
		free(name->text);
	}
	vec_free(&process->names);
	free(process->detail);
	free(process->library);
	free(process);
}

void gpu_table_clear(struct gpu_table *table)
{
	vec_for_each (process, &table->processes)
		process_free(*process);
	vec_free(&table->processes);
}

static struct gpu_process *process_new(uint32_t tgid)
{
	struct gpu_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->tgid = tgid;
	process->detail = strdup("");
	process->library = strdup("");
	if (process->detail && process->library)
		return process;
	process_free(process);
	return NULL;
}

/* -ENOMEM or -ENOSPC. */
static int touch(struct gpu_table *table, uint32_t tgid, struct gpu_process **result)
{
	struct gpu_process *process = gpu_table_find(table, tgid);
	size_t place;

	*result = process;
	if (process)
		return 0;
	if (table->processes.count >= GPU_PROCESSES_MAX)
		return -ENOSPC;
	process = process_new(tgid);
	if (!process || vec_push(&table->processes, process)) {
		if (process)
			process_free(process);
		return -ENOMEM;
	}
	table->processes.count--;
	place = find_place(table, tgid);
	memmove(&table->processes.items[place + 1], &table->processes.items[place],
		(table->processes.count - place) * sizeof(process));
	table->processes.items[place] = process;
	table->processes.count++;
	*result = process;
	return 0;
}

/* Nothing is lost with it: it has no records. */
static bool is_idle(const struct gpu_table *table, const struct fbt_gpu_state *record)
{
	return (record->status == FBT_GPU_NOT_CUDA || record->status == FBT_GPU_OFF) &&
	       table->processes.count >= GPU_IDLE_MAX && !gpu_table_find(table, record->tgid);
}

int gpu_table_set_state(struct gpu_table *table, const struct fbt_gpu_state *record,
			const char *detail, const char *library)
{
	char *new_detail, *new_library;
	struct gpu_process *process;
	int err;

	if (is_idle(table, record))
		return 0;
	err = touch(table, record->tgid, &process);
	if (err)
		return err;
	new_detail = strdup(detail);
	new_library = strdup(library);
	if (!new_detail || !new_library) {
		free(new_detail);
		free(new_library);
		return -ENOMEM;
	}
	free(process->detail);
	free(process->library);
	process->detail = new_detail;
	process->library = new_library;
	process->state = *record;
	if (record->status == FBT_GPU_ARMED) {
		process->armed = true;
		process->arm_ns = record->arm_ns;
	}
	return 0;
}

/* "cudaLaunchKernel_v7000" is cudaLaunchKernel, as Kineto writes it; cuMemcpyHtoDAsync_v2 stays. */
static char *api_text(const char *raw)
{
	const char *mark = strrchr(raw, '_');
	size_t length = strlen(raw);

	if (mark && mark[1] == 'v' && strlen(mark + 2) >= 4 &&
	    strspn(mark + 2, "0123456789") == strlen(mark + 2))
		length = (size_t)(mark - raw);
	return strndup(raw, length);
}

static char *kernel_text(const char *raw)
{
	char *text = demangle_with_arguments(raw);

	return text ? text : demangle_symbol(raw);
}

/* Where a name is, or belongs: they come in about their order. */
static size_t find_name_place(const struct gpu_process *process, uint32_t id)
{
	size_t low = 0, high = process->names.count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (process->names.items[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The name of that id, which is empty if it is new. NULL: -ENOMEM. */
static struct gpu_name *touch_name(struct gpu_process *process, uint32_t id)
{
	size_t place = find_name_place(process, id);
	struct gpu_name *items;

	if (place < process->names.count && process->names.items[place].id == id)
		return &process->names.items[place];
	if (vec_push(&process->names, (struct gpu_name){.id = id}))
		return NULL;
	items = process->names.items;
	memmove(&items[place + 1], &items[place],
		(process->names.count - 1 - place) * sizeof(*items));
	items[place] = (struct gpu_name){.id = id};
	return &items[place];
}

int gpu_table_add_name(struct gpu_table *table, const struct fbt_gpu_name *record, const char *name)
{
	struct gpu_name added = {.kind = record->kind, .id = record->id}, *place;
	struct gpu_process *process;
	size_t bytes;
	int err = touch(table, record->tgid, &process);

	if (err)
		return err;
	place = touch_name(process, record->id);
	if (!place)
		return -ENOMEM;
	added.raw = strdup(name);
	added.text = record->kind == FBT_GPU_NAME_API ? api_text(name) : kernel_text(name);
	if (!added.raw || !added.text) {
		free(added.raw);
		free(added.text);
		return -ENOMEM;
	}
	bytes = strlen(added.raw) + strlen(added.text) + 2;
	if (place->raw)
		process->name_bytes -= strlen(place->raw) + strlen(place->text) + 2;
	free(place->raw);
	free(place->text);
	*place = (struct gpu_name){.id = record->id};
	if (process->name_bytes + bytes > GPU_NAME_BYTES_MAX) {
		free(added.raw);
		free(added.text);
		return -ENOSPC;
	}
	process->name_bytes += bytes;
	*place = added;
	return 0;
}

int gpu_table_add_device(struct gpu_table *table, const struct fbt_gpu_device *record,
			 const char *name)
{
	struct gpu_device device = {.record = *record}, *known;
	struct gpu_process *process;
	size_t place;
	int err = touch(table, record->tgid, &process);

	if (err)
		return err;
	known = (struct gpu_device *)gpu_process_device(process, record->id);
	if (!known && process->devices.count >= GPU_DEVICES_MAX)
		return -ENOSPC;
	device.name = strdup(name);
	if (!device.name)
		return -ENOMEM;
	if (known) {
		free(known->name);
		*known = device;
		return 0;
	}
	if (vec_push(&process->devices, device)) {
		free(device.name);
		return -ENOMEM;
	}
	for (place = process->devices.count - 1; place; place--) {
		if (process->devices.items[place - 1].record.id < record->id)
			break;
		process->devices.items[place] = process->devices.items[place - 1];
	}
	process->devices.items[place] = device;
	return 0;
}

int gpu_table_set_flush(struct gpu_table *table, const struct fbt_gpu_flush *record)
{
	struct gpu_process *process;
	int err = touch(table, record->tgid, &process);

	if (!err)
		process->flush = *record;
	return err;
}

static const char *find_name(const struct gpu_process *process, uint32_t id, uint32_t kind)
{
	const struct gpu_name *name;
	size_t place = find_name_place(process, id);

	if (place == process->names.count || process->names.items[place].id != id)
		return NULL;
	name = &process->names.items[place];
	return name->text && name->kind == kind && *name->text ? name->text : NULL;
}

const char *gpu_process_kernel_name(const struct gpu_process *process, uint32_t id)
{
	const char *name = find_name(process, id, FBT_GPU_NAME_KERNEL);

	return name ? name : "kernel";
}

const char *gpu_process_api_name(const struct gpu_process *process, uint32_t id)
{
	const char *name = find_name(process, id, FBT_GPU_NAME_API);

	return name ? name : "cuda call";
}

const struct gpu_device *gpu_process_device(const struct gpu_process *process, uint32_t id)
{
	vec_for_each (device, &process->devices) {
		if (device->record.id == id)
			return device;
	}
	return NULL;
}

const char *gpu_status_name(enum fbt_gpu_status status)
{
	static const char *const names[FBT_GPU_STATUS_COUNT] = {
		"absent",    "armed",	  "ended",    "exited",	      "stalled",  "no_cupti",
		"old_cupti", "no_driver", "busy",     "failed",	      "bad_ring", "other_shim",
		"taken",     "off",	  "not_cuda", "not_injected",
	};

	return status < FBT_GPU_STATUS_COUNT ? names[status] : "unknown";
}

const char *gpu_clock_name(enum fbt_gpu_clock_method method)
{
	static const char *const names[FBT_GPU_CLOCK_METHOD_COUNT] = {
		"unknown",
		"callback",
		"realtime",
		"cupti",
	};

	return method < FBT_GPU_CLOCK_METHOD_COUNT ? names[method] : "unknown";
}

/* cupti_version.h; from 13.0 on MAJOR * 10000 + MINOR * 100 + UPDATE. */
const char *gpu_cupti_version_name(uint32_t version, char text[32])
{
	static const char *const names[] = {
		[18] = "11.8", [19] = "12.0", [20] = "12.2", [21] = "12.3", [22] = "12.4",
		[23] = "12.5", [24] = "12.6", [26] = "12.8", [27] = "12.9", [28] = "12.9 U1",
	};
	uint32_t update = version % 100;

	if (version >= 130000 && version < 1000000) {
		snprintf(text, 32, "%u.%u", version / 10000, version / 100 % 100);
		if (update)
			snprintf(text + strlen(text), 32 - strlen(text), " U%u", update);
	} else if (version < sizeof(names) / sizeof(names[0]) && names[version]) {
		snprintf(text, 32, "%s", names[version]);
	} else {
		snprintf(text, 32, "CUPTI %u", version);
	}
	return text;
}

bool gpu_process_is_clock_suspect(const struct gpu_process *process)
{
	return process->counts.violations * VIOLATIONS_SHARE > process->counts.joined;
}

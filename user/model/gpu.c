/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/gpu.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/arith.h"
#include "base/demangle.h"

/* Records and names. */

size_t gpu_records_count(const struct gpu_records *records)
{
	return records->works.count + records->apis.count + records->syncs.count +
	       records->overheads.count;
}

void gpu_records_free(struct gpu_records *records)
{
	vec_free(&records->works);
	vec_free(&records->apis);
	vec_free(&records->syncs);
	vec_free(&records->overheads);
}

void step_gpu_free(struct step_gpu *gpu)
{
	if (!gpu)
		return;
	vec_free(&gpu->devices);
	vec_free(&gpu->busy);
	vec_free(&gpu->sync_busy);
	gpu_records_free(&gpu->records);
	free(gpu);
}

bool gpu_api_waits(const struct fbt_gpu_api *api)
{
	return api->api_class == FBT_GPU_API_SYNC || api->header.flags & FBT_GPU_API_BLOCKING;
}

const char *gpu_seal_name(enum gpu_seal seal)
{
	static const char *const names[GPU_SEAL_COUNT] = {
		"watermark", "timeout", "window_end", "room", "ended",
	};

	return seal < GPU_SEAL_COUNT ? names[seal] : "unknown";
}

const char *gpu_bound_name(enum gpu_bound bound)
{
	static const char *const names[GPU_BOUND_COUNT] = {
		"unknown", "gpu", "copy", "wait", "launch", "host", "none",
	};

	return bound < GPU_BOUND_COUNT ? names[bound] : "unknown";
}

/* Sets of intervals. */

int gpu_interval_append(gpu_interval_vec *set, struct gpu_interval interval)
{
	if (set->count) {
		struct gpu_interval *last = &set->items[set->count - 1];

		if (interval.start_ns <= last->end_ns) {
			last->end_ns = max_u64(last->end_ns, interval.end_ns);
			return 0;
		}
	}
	return gpu_interval_ns(interval) ? vec_push(set, interval) : 0;
}

static int compare_starts(const void *a, const void *b)
{
	const struct gpu_interval *left = a, *right = b;

	return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

void gpu_interval_sort(gpu_interval_vec *set)
{
	size_t count = set->count;

	vec_sort(set, compare_starts);
	set->count = 0;
	/* Needs no memory: the set never has more intervals than were read from it. */
	for (size_t i = 0; i < count; i++)
		(void)gpu_interval_append(set, set->items[i]);
}

uint64_t gpu_interval_length(const gpu_interval_vec *set)
{
	uint64_t ns = 0;

	vec_for_each (interval, set)
		ns = add_saturating(ns, gpu_interval_ns(*interval));
	return ns;
}

uint64_t gpu_interval_common_with(const gpu_interval_vec *set, size_t *next,
				  struct gpu_interval interval)
{
	uint64_t ns = 0;

	while (*next < set->count && set->items[*next].end_ns <= interval.start_ns)
		++*next;
	for (size_t i = *next; i < set->count; i++) {
		if (set->items[i].start_ns >= interval.end_ns)
			break;
		ns = add_saturating(ns,
				    gpu_interval_ns(gpu_interval_clip(interval, set->items[i])));
	}
	return ns;
}

uint64_t gpu_interval_common(const gpu_interval_vec *a, const gpu_interval_vec *b)
{
	uint64_t ns = 0;
	size_t next = 0;

	vec_for_each (interval, a)
		ns = add_saturating(ns, gpu_interval_common_with(b, &next, *interval));
	return ns;
}

int gpu_interval_unite(const gpu_interval_vec *a, const gpu_interval_vec *b,
		       gpu_interval_vec *result)
{
	size_t i = 0, j = 0;
	int err = 0;

	while (!err && (i < a->count || j < b->count)) {
		bool from_a = j == b->count ||
			      (i < a->count && a->items[i].start_ns <= b->items[j].start_ns);

		err = gpu_interval_append(result, from_a ? a->items[i++] : b->items[j++]);
	}
	return err;
}

int gpu_interval_intersect(const gpu_interval_vec *a, const gpu_interval_vec *b,
			   gpu_interval_vec *result)
{
	size_t i = 0, j = 0;
	int err = 0;

	while (!err && i < a->count && j < b->count) {
		struct gpu_interval common = gpu_interval_clip(a->items[i], b->items[j]);

		if (gpu_interval_ns(common))
			err = gpu_interval_append(result, common);
		if (a->items[i].end_ns < b->items[j].end_ns)
			i++;
		else
			j++;
	}
	return err;
}

int gpu_interval_subtract(const gpu_interval_vec *a, const gpu_interval_vec *b,
			  gpu_interval_vec *result)
{
	size_t j = 0;
	int err;

	vec_for_each (whole, a) {
		uint64_t start_ns = whole->start_ns;

		while (j < b->count && b->items[j].end_ns <= start_ns)
			j++;
		for (size_t k = j; k < b->count && b->items[k].start_ns < whole->end_ns; k++) {
			struct gpu_interval part = {start_ns, b->items[k].start_ns};

			err = gpu_interval_append(result, part);
			if (err)
				return err;
			start_ns = b->items[k].end_ns;
		}
		err = gpu_interval_append(result, (struct gpu_interval){start_ns, whole->end_ns});
		if (err)
			return err;
	}
	return 0;
}

/* The processes with GPU records. */

/* Index of a process, or where to insert it. */
static size_t find_place(const struct gpu_table *table, uint32_t tgid)
{
	return vec_lower_bound(&table->processes, (*item)->tgid, tgid);
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

/* Finds or adds a process. 0, -ENOMEM or -ENOSPC. */
static int touch(struct gpu_table *table, uint32_t tgid, struct gpu_process **result)
{
	struct gpu_process *process = gpu_table_find(table, tgid);

	*result = process;
	if (process)
		return 0;
	if (table->processes.count >= GPU_PROCESSES_MAX)
		return -ENOSPC;
	process = process_new(tgid);
	if (!process)
		return -ENOMEM;
	if (vec_insert(&table->processes, find_place(table, tgid), process)) {
		process_free(process);
		return -ENOMEM;
	}
	*result = process;
	return 0;
}

/* Whether to leave out a new process without CUDA, which sends no records (GPU_IDLE_MAX). */
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

/* Removes the version of "cudaLaunchKernel_v7000", like Kineto; cuMemcpyHtoDAsync_v2 keeps it. */
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

/* Index of a name, or where to insert it. */
static size_t find_name_place(const struct gpu_process *process, uint32_t id)
{
	return vec_lower_bound(&process->names, item->id, id);
}

/* Finds the name with that id, or adds an empty one. NULL: -ENOMEM. */
static struct gpu_name *touch_name(struct gpu_process *process, uint32_t id)
{
	size_t place = find_name_place(process, id);
	struct gpu_name name = {.id = id};

	if (place < process->names.count && process->names.items[place].id == id)
		return &process->names.items[place];
	return vec_insert(&process->names, place, name) ? NULL : &process->names.items[place];
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
	err = vec_insert(&process->devices,
			 vec_lower_bound(&process->devices, item->record.id, record->id), device);
	if (err)
		free(device.name);
	return err;
}

static void add_totals(struct fbt_gpu_flush *to, const struct fbt_gpu_flush *from)
{
	to->records = add_saturating(to->records, from->records);
	to->cupti_dropped = add_saturating(to->cupti_dropped, from->cupti_dropped);
	to->ring_lost = add_saturating(to->ring_lost, from->ring_lost);
	to->no_buffer = add_saturating(to->no_buffer, from->no_buffer);
	to->unknown = add_saturating(to->unknown, from->unknown);
	to->shim_ns = add_saturating(to->shim_ns, from->shim_ns);
	to->clock_steps = add_saturating(to->clock_steps, from->clock_steps);
}

/* The totals with those of before are no smaller than the ones that were known. */
static bool is_armed_again(const struct gpu_process *process, const struct fbt_gpu_flush *record)
{
	struct fbt_gpu_flush sum = process->past;

	add_totals(&sum, record);
	return sum.records < process->flush.records || sum.ring_lost < process->flush.ring_lost ||
	       sum.shim_ns < process->flush.shim_ns;
}

int gpu_table_set_flush(struct gpu_table *table, const struct fbt_gpu_flush *record)
{
	struct gpu_process *process;
	int err = touch(table, record->tgid, &process);

	if (err)
		return err;
	if (is_armed_again(process, record))
		process->past = process->flush;
	process->flush = *record;
	add_totals(&process->flush, &process->past);
	return 0;
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

/* Names of states. */

const char *gpu_status_name(enum fbt_gpu_status status)
{
	static const char *const names[FBT_GPU_STATUS_COUNT] = {
		"absent",    "armed",	  "ended",    "exited",	      "stalled",  "no_cupti",
		"old_cupti", "no_driver", "busy",     "failed",	      "bad_ring", "other_shim",
		"taken",     "off",	  "not_cuda", "not_injected",
	};

	return status < FBT_GPU_STATUS_COUNT ? names[status] : "unknown";
}

const struct gpu_problem *gpu_status_problem(enum fbt_gpu_status status)
{
	static const struct gpu_problem problems[FBT_GPU_STATUS_COUNT] = {
		[FBT_GPU_ABSENT] =
			{"it uses CUDA, but was started without the shim",
			 "restart the process with the shim (see ferrum-bpftrace engine-env)"},
		[FBT_GPU_STALLED] = {"the shim does not respond",
				     "check whether the process is stopped"},
		[FBT_GPU_NO_CUPTI] =
			{"libcupti was not found",
			 "install the CUDA toolkit or the nvidia-cuda-cupti wheel where the "
			 "process runs, or start it with FERRUM_CUPTI_LIBRARY=FILE"},
		[FBT_GPU_OLD_CUPTI] =
			{"its CUPTI is too old",
			 "use CUPTI of CUDA 12.6 or newer, but not 13.0 without an update"},
		[FBT_GPU_NO_DRIVER] = {"CUPTI finds no NVIDIA driver",
				       "run nvidia-smi where the process runs to see why"},
		[FBT_GPU_BUSY] =
			{"another tool holds CUPTI",
			 "end nsys, ncu, cuda-gdb or the PyTorch profiler in that process"},
		[FBT_GPU_FAILED] = {"CUPTI does not collect",
				    "to try another libcupti, start the process with "
				    "FERRUM_CUPTI_LIBRARY=FILE"},
		[FBT_GPU_BAD_RING] =
			{"its shared memory is not that of a shim",
			 "check that its libferrum_cupti.so is the one that ferrum-bpftrace "
			 "engine-env names"},
		[FBT_GPU_OTHER_SHIM] =
			{"its shim is of another version than this program",
			 "restart the process with the shim that ferrum-bpftrace engine-env "
			 "names"},
		[FBT_GPU_TAKEN] = {"another tracer reads them", "end that tracer first"},
		[FBT_GPU_NOT_INJECTED] = {"the shim was not injected",
					  "restart the process with the shim (see ferrum-bpftrace "
					  "engine-env)"},
	};

	return status < FBT_GPU_STATUS_COUNT && problems[status].what ? &problems[status] : NULL;
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

#define LONG_NS 600000000000ull

/* The numbers of cupti_version.h; since 13.0 they are MAJOR * 10000 + MINOR * 100 + UPDATE. */
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

const char *gpu_cupti_caution(uint32_t version, uint64_t armed_ns)
{
	/* After NVIDIA's release notes of the version that mended it, "until". */
	static const struct {
		uint32_t from, until;
		uint64_t long_ns; /* only if records flowed for so long */
		const char *caution;
	} cautions[] = {
		{130200, 130300, 0,
		 "calls of CUPTI slow the engine more and more (mended in 13.3)"},
		{0, 130401, LONG_NS,
		 "CUPTI uses more and more CPU in long runs (mended in 13.4 U1): trace for "
		 "minutes"},
	};

	for (size_t i = 0; version && i < sizeof(cautions) / sizeof(cautions[0]); i++) {
		if (version >= cautions[i].from && version < cautions[i].until &&
		    armed_ns >= cautions[i].long_ns)
			return cautions[i].caution;
	}
	return NULL;
}

/* One violation in so many works may be a rounding error of two clocks. */
#define VIOLATIONS_SHARE 1000

bool gpu_process_is_clock_suspect(const struct gpu_process *process)
{
	return process->counts.violations * VIOLATIONS_SHARE > process->counts.joined;
}

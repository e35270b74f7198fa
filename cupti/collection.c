/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "collection.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "delivery.h"
#include "ending.h"
#include "seat.h"
#include "settings.h"

#define LAST_BUFFERS_MS	  1000 /* that buffers which are out are waited for at the end */
#define LATE_MS		  20   /* that buffers are waited for which come after a flush */
#define STEP_MS		  5
#define ASKED_NS	  1000000u /* from the end of a call to the buffer that CUPTI puts it into */
#define DEVICE_NAME_BYTES 256

static const struct {
	uint32_t kind;
	const char *name;
} kinds[] = {
	{CUPTI_KIND_CONCURRENT_KERNEL, "CONCURRENT_KERNEL"}, /* the one that is required */
	{CUPTI_KIND_MEMCPY, "MEMCPY"},
	{CUPTI_KIND_MEMCPY2, "MEMCPY2"},
	{CUPTI_KIND_MEMSET, "MEMSET"},
	{CUPTI_KIND_SYNCHRONIZATION, "SYNCHRONIZATION"},
	{CUPTI_KIND_OVERHEAD, "OVERHEAD"},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void put_state(struct shim *shim, enum fbt_gpu_status status, const char *detail,
		      uint64_t arm_ns)
{
	const char *strings[] = {detail, shim->library.path};
	struct fbt_gpu_state state = {
		.status = status,
		.time_ns = shim_clock__now(),
		.cupti_version = shim->library.version,
		.driver_version = shim->driver_version,
		.shim_version = FBT_GPU_VERSION,
		.clock_method = shim->clock.method,
		.arm_ns = arm_ns,
	};

	pthread_mutex_lock(&shim->lock);
	shim_ring__put_strings(&shim->ring, &state, sizeof(state), FBT_EVENT_GPU_STATE,
			       SHIM_FRAME_CONTROL, strings, COUNT(strings));
	shim_ring__publish(&shim->ring);
	pthread_mutex_unlock(&shim->lock);
}

/* Until the driver has been initialized it does not tell of its devices: asked again each turn. */
static void tell_devices(struct shim *shim)
{
	uint32_t count = cuda_driver__devices(&shim->driver);

	for (uint32_t i = 0; i < count; i++) {
		char name[DEVICE_NAME_BYTES];
		const char *string = name;
		struct fbt_gpu_device device;

		cuda_driver__describe(&shim->driver, i, &device, name, sizeof(name));
		pthread_mutex_lock(&shim->lock);
		shim_ring__put_strings(&shim->ring, &device, sizeof(device), FBT_EVENT_GPU_DEVICE,
				       SHIM_FRAME_CONTROL, &string, 1);
		shim_ring__publish(&shim->ring);
		pthread_mutex_unlock(&shim->lock);
	}
	shim->devices_told = count > 0;
}

static void note_failure(const struct shim *shim, const char *name, uint32_t result, char *detail)
{
	size_t used = strlen(detail);

	snprintf(detail + used, CUPTI_DETAIL_BYTES - used, "%s%s (%s)",
		 used ? ", " : "not collected: ", name,
		 cupti_library__result(&shim->library.calls, result));
}

static void disable_kinds(struct shim *shim)
{
	if (shim->apis_enabled)
		api_table__enable(&shim->apis, &shim->library.calls, 0);
	shim->apis_enabled = false;
	for (size_t i = COUNT(kinds); i-- > 0;)
		if (shim->kinds_enabled & 1u << i)
			shim->library.calls.disable(kinds[i].kind);
	shim->kinds_enabled = 0;
}

/* The calls first: without them CUPTI gives no correlation ids to the work that they launch. */
static enum fbt_gpu_status enable_kinds(struct shim *shim, char *detail)
{
	const struct cupti_calls *calls = &shim->library.calls;
	uint32_t result;

	shim->apis_enabled = true;
	result = api_table__enable(&shim->apis, calls, 1);
	if (result)
		note_failure(shim, "some calls of the CUDA API", result, detail);
	for (size_t i = 0; i < COUNT(kinds); i++) {
		result = calls->enable(kinds[i].kind);
		if (!result)
			shim->kinds_enabled |= 1u << i;
		else if (i == 0)
			return seat__judge(shim, result, "cuptiActivityEnable(CONCURRENT_KERNEL)",
					   detail);
		else
			note_failure(shim, kinds[i].name, result, detail);
	}
	return FBT_GPU_ARMED;
}

static void set_collecting(struct shim *shim, uint32_t value)
{
	__atomic_store_n(&shim->collecting, value, __ATOMIC_RELEASE);
}

static enum fbt_gpu_status enable(struct shim *shim, char *detail)
{
	enum fbt_gpu_status status;
	uint32_t result;

	/* Once: buffers of an earlier window may still be on their way, and it is read for them. */
	if (!shim->apis.count)
		api_table__fill(&shim->apis, &shim->library.calls);
	settings__change(shim);
	shim_clock__begin(&shim->clock, &shim->library.calls, shim->library.version);
	result = shim->library.calls.register_callbacks(delivery__request, delivery__complete);
	if (result) {
		status = seat__judge(shim, result, "cuptiActivityRegisterCallbacks", detail);
	} else {
		set_collecting(shim, 1);
		status = enable_kinds(shim, detail);
	}
	if (status == FBT_GPU_ARMED)
		return status;
	disable_kinds(shim);
	set_collecting(shim, 0);
	settings__put_back(shim);
	return status;
}

/* What is counted since arming, and what a new reader has to be told. */
static int start_over(struct shim *shim)
{
	int err = buffer_pool__prepare(&shim->pool);

	if (!err && !shim->names)
		shim->names = name_table__new();
	if (!shim->names)
		err = -ENOMEM;
	if (err)
		return err;
	pthread_mutex_lock(&shim->lock);
	name_table__forget(shim->names);
	shim->copy = (struct record_copy){
		.ring = &shim->ring,
		.names = shim->names,
		.apis = &shim->apis,
		.strides = shim->library.strides,
		.overhead_threads = shim->library.version >= CUPTI_VERSION_12_5,
	};
	pthread_mutex_unlock(&shim->lock);
	shim->dropped = 0;
	shim->no_buffer = 0;
	shim->spent_ns = 0;
	shim->devices_told = false;
	shim->flushed_ns = 0;
	return 0;
}

void collection__attach(struct shim *shim)
{
	char detail[CUPTI_DETAIL_BYTES] = "";
	enum fbt_gpu_status status;

	/* What would be too old to come late is not when it comes early. */
	shim->attached_early = true;
	status = seat__find_cupti(shim, detail);
	if (status == FBT_GPU_ARMED)
		status = seat__take(shim, detail);
	if (status == FBT_GPU_ARMED)
		ending__watch(shim, ENDING_LOADED);
	shim->attached_early = status == FBT_GPU_ARMED || status == FBT_GPU_BUSY;
}

/* What takes memory, and CUPTI. */
static enum fbt_gpu_status prepare(struct shim *shim, char *detail)
{
	enum fbt_gpu_status status = FBT_GPU_ARMED;
	int err = shim_ring__reserve(&shim->ring);

	if (!err) {
		status = seat__find_cupti(shim, detail);
		if (status != FBT_GPU_ARMED)
			return status;
		err = start_over(shim);
	}
	if (!err)
		return status;
	snprintf(detail, CUPTI_DETAIL_BYTES, "no memory for the shim's buffers");
	return FBT_GPU_FAILED;
}

bool collection__begin(struct shim *shim, uint64_t wish_ns)
{
	char detail[CUPTI_DETAIL_BYTES] = "";
	enum fbt_gpu_status status = prepare(shim, detail);

	shim->clock.method = FBT_GPU_CLOCK_UNKNOWN;
	if (status == FBT_GPU_ARMED)
		ending__watch(shim, ENDING_LOADED);
	if (status == FBT_GPU_ARMED)
		status = seat__take(shim, detail);
	if (status == FBT_GPU_ARMED) {
		tell_devices(shim);
		status = enable(shim, detail);
	}
	if (status == FBT_GPU_ARMED)
		ending__watch(shim, ENDING_WORKING);
	put_state(shim, status, detail, status == FBT_GPU_ARMED ? shim_clock__now() - wish_ns : 0);
	if (status != FBT_GPU_ARMED)
		seat__leave(shim);
	return status == FBT_GPU_ARMED;
}

static void sleep_ms(long ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&time, NULL);
}

/*
 * Waits until buffers with records from before time_ns have come back, or for so long. CUPTI may
 * bring one only after the flush has returned, and keeps one back while work in it runs. Returns up
 * to when all has come.
 */
static uint64_t await_buffers(const struct shim *shim, uint64_t time_ns, int most_ms)
{
	for (int ms = 0;; ms += STEP_MS) {
		uint64_t out_ns = buffer_pool__oldest_ns(&shim->pool);

		/* What a record tells of has ended before its buffer is asked for. */
		out_ns -= out_ns != UINT64_MAX && out_ns > ASKED_NS ? ASKED_NS : 0;
		/* At the end of the process it is awaited as long as after any flush, at most. */
		if (ending__is_near(shim) && most_ms > LATE_MS)
			most_ms = LATE_MS;
		if (out_ns >= time_ns || ms >= most_ms)
			return out_ns < time_ns ? out_ns : time_ns;
		sleep_ms(STEP_MS);
	}
}

static void put_flush(struct shim *shim, uint64_t time_ns, bool last)
{
	struct fbt_gpu_flush flush = {
		.header = {.type = FBT_EVENT_GPU_FLUSH, .size = sizeof(flush)},
		.last = last,
		.time_ns = time_ns,
		.sent_ns = shim_clock__now(),
		.cupti_dropped = __atomic_load_n(&shim->dropped, __ATOMIC_RELAXED),
		.no_buffer = __atomic_load_n(&shim->no_buffer, __ATOMIC_RELAXED),
		.shim_ns = __atomic_load_n(&shim->spent_ns, __ATOMIC_RELAXED),
	};

	pthread_mutex_lock(&shim->lock);
	flush.records = shim->copy.counts.records;
	flush.ring_lost = shim->copy.counts.lost;
	flush.unknown = shim->copy.counts.unknown;
	flush.clock_error_ns = shim->clock.error_ns;
	flush.clock_steps = shim->clock.steps;
	shim_ring__put(&shim->ring, &flush.header, SHIM_FRAME_CONTROL);
	shim_ring__publish(&shim->ring);
	pthread_mutex_unlock(&shim->lock);
}

static void flush(struct shim *shim, uint32_t flag)
{
	uint64_t begin_ns = shim_clock__now();

	shim->library.calls.flush_all(flag);
	delivery__count_dropped(shim);
	__atomic_fetch_add(&shim->spent_ns, shim_clock__now() - begin_ns, __ATOMIC_RELAXED);
}

/* Not FORCED: what still runs would come without an end, and not again. */
void collection__turn(struct shim *shim)
{
	uint64_t time_ns;

	if (!shim->devices_told)
		tell_devices(shim);
	delivery__check_clock(shim);
	time_ns = shim_clock__now();
	flush(shim, 0);
	time_ns = await_buffers(shim, time_ns, LATE_MS);
	/* Also if a buffer was just being handed out, and said when it was the time before. */
	if (time_ns > shim->flushed_ns)
		shim->flushed_ns = time_ns;
	put_flush(shim, shim->flushed_ns, false);
	__atomic_fetch_add(&shim->ring.shared->pulse, 1, __ATOMIC_RELEASE);
}

/*
 * No cuptiFinalize: it stops all threads of the engine to synchronize all contexts, has crashed
 * engines under load (jax #40260, kineto PR 686), and leaves this libcupti unfit for the next
 * profiler. What stays behind without it is CUPTI's own, at rest.
 */
void collection__end(struct shim *shim)
{
	uint64_t time_ns;

	disable_kinds(shim);
	delivery__check_clock(shim);
	flush(shim, 0);
	await_buffers(shim, UINT64_MAX, LAST_BUFFERS_MS);
	time_ns = shim_clock__now();
	flush(shim, CUPTI_FLUSH_FORCED);
	await_buffers(shim, UINT64_MAX, LATE_MS);
	set_collecting(shim, 0);
	put_flush(shim, time_ns, true);
	settings__put_back(shim);
	seat__leave(shim);
	put_state(shim, FBT_GPU_ENDED, "", 0);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "collect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "buffers.h"
#include "exit_guard.h"
#include "subscriber.h"
#include "takeover.h"

#define LAST_BUFFERS_MS 1000 /* longest wait for outstanding buffers at the end */
#define LATE_MS		20   /* longest wait for buffers that CUPTI returns after a flush */
#define LAST_TURN_MS	100  /* … after which they are flushed again */
#define STEP_MS		5    /* pause between two looks at the pool */
/* A record's buffer is requested at most this long after the record's end. */
#define REQUEST_NS	  1000000u
#define DEVICE_NAME_BYTES 256
/*
 * CUPTI's default is 250 buffers of 3.2 MB each, in GPU memory that the model needs. With 8 kernels
 * of CUDA graphs had no times after 0.9 million (CUPTI 13.0, parcagpu issue 23), in proportion to
 * this number.
 */
#define DEVICE_BUFFERS 8
/* The buffers are exhausted if one kernel in so many has no times … */
#define UNTIMED_ONE_OF 100
#define KERNELS_MIN    1000  /* … of the turns in which there were at least so many … */
#define TIMED_MIN      10000 /* … after so many with times: else arming again does not help */

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
		      uint64_t time_ns, uint64_t arm_ns)
{
	const char *strings[] = {detail, shim->library.path};
	struct fbt_gpu_state state = {
		.status = status,
		.time_ns = time_ns,
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

/*
 * Sends the devices. The driver reports none before the engine has initialized it, so this is tried
 * at each turn.
 */
static void send_devices(struct shim *shim)
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
	shim->devices_sent = count > 0;
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
		api_table__disable(&shim->library.calls);
	shim->apis_enabled = false;
	for (size_t i = COUNT(kinds); i-- > 0;)
		if (shim->kinds_enabled & 1u << i)
			shim->library.calls.disable(kinds[i].kind);
	shim->kinds_enabled = 0;
}

/* API calls are enabled first: work whose call has no record cannot be joined to a step. */
static enum fbt_gpu_status enable_kinds(struct shim *shim, char *detail)
{
	const struct cupti_calls *calls = &shim->library.calls;
	uint32_t result;

	shim->apis_enabled = true;
	result = api_table__enable(&shim->apis, calls);
	if (result)
		note_failure(shim, "some calls of the CUDA API", result, detail);
	for (size_t i = 0; i < COUNT(kinds); i++) {
		result = calls->enable(kinds[i].kind);
		if (!result)
			shim->kinds_enabled |= 1u << i;
		else if (i == 0)
			return subscriber__judge(shim, result,
						 "cuptiActivityEnable(CONCURRENT_KERNEL)", detail);
		else
			note_failure(shim, kinds[i].name, result, detail);
	}
	return FBT_GPU_ARMED;
}

static const struct {
	uint32_t attribute;
	size_t size;
	uint64_t value;
	uint32_t since; /* version */
	bool keep;	/* never restored */
} attributes[SHIM_ATTRIBUTES] = {
	/*
	 * From 13.0 on CUPTI uses a buffer per thread of the engine by default. It can be changed
	 * only before buffer callbacks are registered, so it cannot be restored.
	 */
	{CUPTI_ATTRIBUTE_PER_THREAD, sizeof(uint8_t), 0, CUPTI_VERSION_12_3, true},
	/* Our buffers are cleared. Without this, CUPTI clears each one on an application thread. */
	{CUPTI_ATTRIBUTE_ZEROED, sizeof(uint8_t), 1, CUPTI_VERSION_11_8, false},
	{CUPTI_ATTRIBUTE_POOL_LIMIT, sizeof(size_t), DEVICE_BUFFERS, CUPTI_VERSION_11_8, false},
};

/* Changes an attribute, and saves its old value because other tools in the process rely on it. */
static void set_attribute(struct shim *shim, size_t i)
{
	const struct cupti_calls *calls = &shim->library.calls;
	size_t size = attributes[i].size;
	uint64_t value = attributes[i].value;
	uint64_t old = 0;

	if (shim->library.version < attributes[i].since)
		return;
	/* Little-endian: a shorter value is in the low bytes. */
	if (calls->get_attribute(attributes[i].attribute, &size, &old) || old == value)
		return;
	size = attributes[i].size;
	if (calls->set_attribute(attributes[i].attribute, &size, &value) || attributes[i].keep)
		return;
	shim->saved.attributes[i] = old;
	shim->saved.attribute_mask |= 1u << i;
}

static void change_attributes(struct shim *shim)
{
	const struct cupti_calls *calls = &shim->library.calls;
	uint32_t type = CUPTI_THREAD_ID_SYSTEM;

	memset(&shim->saved, 0, sizeof(shim->saved));
	for (size_t i = 0; i < SHIM_ATTRIBUTES; i++)
		set_attribute(shim, i);
	if (!calls->get_thread_id_type(&type) && type != CUPTI_THREAD_ID_SYSTEM &&
	    !calls->set_thread_id_type(CUPTI_THREAD_ID_SYSTEM)) {
		shim->saved.thread_id_type = type;
		shim->saved.thread_id_changed = true;
	}
}

static void restore_attributes(struct shim *shim)
{
	const struct cupti_calls *calls = &shim->library.calls;

	if (shim->saved.thread_id_changed)
		calls->set_thread_id_type(shim->saved.thread_id_type);
	for (size_t i = 0; i < SHIM_ATTRIBUTES; i++) {
		size_t size = attributes[i].size;

		if (shim->saved.attribute_mask & 1u << i)
			calls->set_attribute(attributes[i].attribute, &size,
					     &shim->saved.attributes[i]);
	}
	memset(&shim->saved, 0, sizeof(shim->saved));
}

static void set_collecting(struct shim *shim, uint32_t value)
{
	__atomic_store_n(&shim->collecting, value, __ATOMIC_RELEASE);
}

static enum fbt_gpu_status enable(struct shim *shim, char *detail)
{
	enum fbt_gpu_status status;
	uint32_t result;

	/* Filled once: buffers of an earlier window may still be outstanding and need the table. */
	if (!shim->apis.count)
		api_table__fill(&shim->apis, &shim->library.calls);
	change_attributes(shim);
	shim_clock__begin(&shim->clock, &shim->library.calls, shim->library.version);
	result = shim->library.calls.register_callbacks(buffers__request, buffers__complete);
	if (result) {
		status = subscriber__judge(shim, result, "cuptiActivityRegisterCallbacks", detail);
	} else {
		set_collecting(shim, 1);
		status = enable_kinds(shim, detail);
	}
	if (status == FBT_GPU_ARMED)
		return status;
	disable_kinds(shim);
	set_collecting(shim, 0);
	restore_attributes(shim);
	return status;
}

/* Resets the counters and what the new reader has been told. */
static int start_over(struct shim *shim)
{
	int err = buffer_pool__prepare(&shim->pool);

	if (!err && !shim->names)
		shim->names = name_table__new();
	if (!shim->names)
		err = -ENOMEM;
	if (err)
		return err;
	buffer_pool__write_off(&shim->pool);
	pthread_mutex_lock(&shim->lock);
	name_table__forget(shim->names);
	shim->records = (struct record_writer){
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
	shim->devices_sent = false;
	shim->flushed_ns = 0;
	shim->kernels = 0;
	shim->untimed = 0;
	shim->exhausted = false;
	takeover__begin(shim);
	return 0;
}

void collect__attach(struct shim *shim)
{
	char detail[CUPTI_DETAIL_BYTES] = "";
	enum fbt_gpu_status status;

	/* A version that is too old for a late start may be good enough for an early one. */
	shim->attached_early = true;
	status = subscriber__find_cupti(shim, detail);
	if (status == FBT_GPU_ARMED)
		status = subscriber__take(shim, detail);
	if (status == FBT_GPU_ARMED)
		exit_guard__register(shim, EXIT_STAGE_LOADED);
	shim->attached_early = status == FBT_GPU_ARMED || status == FBT_GPU_BUSY;
}

/* Reserves the memory, and loads CUPTI. */
static enum fbt_gpu_status prepare(struct shim *shim, char *detail)
{
	enum fbt_gpu_status status = FBT_GPU_ARMED;
	int err = shim_ring__reserve(&shim->ring);

	if (!err) {
		status = subscriber__find_cupti(shim, detail);
		if (status != FBT_GPU_ARMED)
			return status;
		err = start_over(shim);
	}
	if (!err)
		return status;
	snprintf(detail, CUPTI_DETAIL_BYTES, "no memory for the shim's buffers");
	return FBT_GPU_FAILED;
}

bool collect__begin(struct shim *shim, uint64_t asked_ns)
{
	char detail[CUPTI_DETAIL_BYTES] = "";
	enum fbt_gpu_status status = prepare(shim, detail);

	shim->clock.method = FBT_GPU_CLOCK_UNKNOWN;
	if (status == FBT_GPU_ARMED)
		exit_guard__register(shim, EXIT_STAGE_LOADED);
	if (status == FBT_GPU_ARMED)
		status = subscriber__take(shim, detail);
	if (status == FBT_GPU_ARMED) {
		send_devices(shim);
		status = enable(shim, detail);
	}
	if (status == FBT_GPU_ARMED)
		exit_guard__register(shim, EXIT_STAGE_COLLECTING);
	put_state(shim, status, detail, shim_clock__now(),
		  status == FBT_GPU_ARMED ? shim_clock__now() - asked_ns : 0);
	if (status != FBT_GPU_ARMED)
		subscriber__leave(shim);
	return status == FBT_GPU_ARMED;
}

static void sleep_ms(long ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&time, NULL);
}

/*
 * Waits, at most max_ms, until all buffers with records from before time_ns have come back. CUPTI
 * may return a buffer only some time after the flush, and keeps it while work in it runs. Returns
 * the time up to which all records have arrived.
 */
static uint64_t await_buffers(const struct shim *shim, uint64_t time_ns, int max_ms)
{
	for (int ms = 0;; ms += STEP_MS) {
		uint64_t out_ns = buffer_pool__oldest_ns(&shim->pool);

		/* A record may end this long before its buffer is requested. */
		out_ns -= out_ns != UINT64_MAX && out_ns > REQUEST_NS ? REQUEST_NS : 0;
		/* exit() waits for us, so wait no longer than after an ordinary flush. */
		if (exit_guard__is_exiting(shim) && max_ms > LATE_MS)
			max_ms = LATE_MS;
		if (out_ns >= time_ns || ms >= max_ms)
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
	flush.records = shim->records.counts.records;
	flush.ring_lost = shim->records.counts.lost;
	flush.unknown = shim->records.counts.unknown;
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
	buffers__count_dropped(shim);
	__atomic_fetch_add(&shim->spent_ns, shim_clock__now() - begin_ns, __ATOMIC_RELAXED);
}

/* Whether CUPTI gives kernels no times any more. It does so again once its kind was disabled. */
static bool is_exhausted(struct shim *shim)
{
	uint64_t timed = shim->kernels - shim->untimed;
	struct record_counts counts;
	uint64_t kernels, untimed;

	pthread_mutex_lock(&shim->lock);
	counts = shim->records.counts;
	pthread_mutex_unlock(&shim->lock);
	kernels = counts.kernels - shim->kernels;
	untimed = counts.untimed - shim->untimed;
	/* An engine with few kernels: so many come in later turns. */
	if (kernels < KERNELS_MIN)
		return false;
	shim->kernels = counts.kernels;
	shim->untimed = counts.untimed;
	return timed >= TIMED_MIN && untimed * UNTIMED_ONE_OF > kernels;
}

static bool is_clock_foreign(struct shim *shim)
{
	bool foreign;

	pthread_mutex_lock(&shim->lock);
	foreign = shim->clock.foreign;
	pthread_mutex_unlock(&shim->lock);
	return foreign;
}

/*
 * The flush is not FORCED: that would return work that still runs without its end, and never return
 * it again.
 */
bool collect__turn(struct shim *shim)
{
	bool exiting = exit_guard__is_exiting(shim);
	uint64_t time_ns;
	bool ours;

	if (!shim->devices_sent)
		send_devices(shim);
	buffers__check_clock(shim);
	time_ns = shim_clock__now();
	/* The driver takes itself apart in exit(). */
	if (!exiting)
		takeover__send_canary(shim);
	flush(shim, 0);
	time_ns = await_buffers(shim, time_ns, LATE_MS);
	ours = exiting || takeover__look(shim);
	/*
	 * The time never goes back: a buffer that is being taken right now still shows when it was
	 * taken before. It stays while another tool may have the records.
	 */
	if (time_ns > shim->flushed_ns && ours)
		shim->flushed_ns = time_ns;
	put_flush(shim, shim->flushed_ns, false);
	__atomic_fetch_add(&shim->ring.shared->pulse, 1, __ATOMIC_RELEASE);
	shim->exhausted = is_exhausted(shim);
	return !shim->takeover.certain && !shim->exhausted && !is_clock_foreign(shim);
}

/* A flush leaves out a buffer with work that still runs, so it is repeated. */
static void await_last_buffers(struct shim *shim)
{
	for (int ms = 0; ms < LAST_BUFFERS_MS; ms += LAST_TURN_MS) {
		flush(shim, 0);
		if (await_buffers(shim, UINT64_MAX, LAST_TURN_MS) == UINT64_MAX ||
		    exit_guard__is_exiting(shim))
			return;
	}
}

static void receive_the_rest(struct shim *shim)
{
	buffers__check_clock(shim);
	await_last_buffers(shim);
	flush(shim, CUPTI_FLUSH_FORCED);
	if (await_buffers(shim, UINT64_MAX, LATE_MS) != UINT64_MAX)
		__atomic_fetch_add(&shim->no_buffer, 1, __ATOMIC_RELAXED);
}

static void put_end_state(struct shim *shim, uint64_t end_ns)
{
	if (shim->takeover.certain)
		put_state(shim, FBT_GPU_BUSY, takeover__detail(&shim->takeover), end_ns, 0);
	else if (is_clock_foreign(shim))
		put_state(shim, FBT_GPU_FAILED,
			  "another tool in the process has set CUPTI's clock, as PyTorch's "
			  "profiler does",
			  end_ns, 0);
	else
		put_state(shim, FBT_GPU_ENDED,
			  shim->exhausted ? "CUPTI gave kernels no times any more" : "", end_ns, 0);
}

/*
 * cuptiFinalize is not called: it synchronizes all contexts, which stops the engine, has crashed
 * engines under load (jax #40260, kineto PR 686), and leaves this libcupti unusable for the next
 * profiler. Without it CUPTI stays attached, idle, and launches of CUDA graphs stay slower.
 *
 * What began after the kinds were disabled has no records, so the end is told as of then.
 */
void collect__end(struct shim *shim)
{
	const struct takeover *takeover = &shim->takeover;
	uint64_t end_ns = shim_clock__now();

	/* Also in a takeover: what is left enabled would slow the engine for good. */
	disable_kinds(shim);
	if (takeover->certain) {
		/* A flush would bring us nothing, and the other tool what it does not expect. */
		__atomic_fetch_add(&shim->no_buffer, 1, __ATOMIC_RELAXED);
		if (shim->flushed_ns)
			end_ns = shim->flushed_ns;
	} else {
		receive_the_rest(shim);
	}
	set_collecting(shim, 0);
	put_flush(shim, end_ns, true);
	restore_attributes(shim);
	subscriber__leave(shim);
	put_end_state(shim, end_ns);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "buffers.h"

#include <errno.h>
#include <stdlib.h>

#include "exit_guard.h"
#include "takeover.h"

/* Records that are fetched from CUPTI before the lock is taken once for all of them. */
#define BATCH 128

/* The shim; NULL: it must not be used, as in a forked child. */
static struct shim *live_shim(void)
{
	struct shim *shim = shim__bound();

	return shim && shim__is_alive(shim) ? shim : NULL;
}

/* Adds the time spent in a callback. The time of the shim's own thread is counted by its flush. */
static void add_spent(struct shim *shim, uint64_t since_ns)
{
	if (!pthread_equal(pthread_self(), shim->thread))
		__atomic_fetch_add(&shim->spent_ns, shim_clock__now() - since_ns, __ATOMIC_RELAXED);
}

/*
 * Before 12.9 CUPTI may crash if it gets no buffer ("Fixed a crash when the client fails to provide
 * a buffer"): it gets the scrap buffer, which several threads may write at once and nobody reads.
 */
static void refuse_buffer(struct shim *shim, uint8_t **buffer, size_t *size)
{
	bool may_refuse = shim && shim->library.version >= CUPTI_VERSION_12_9;

	*buffer = may_refuse ? NULL : buffer_pool__scrap();
	*size = may_refuse ? 0 : BUFFER_SCRAP_BYTES;
	if (shim)
		__atomic_fetch_add(&shim->no_buffer, 1, __ATOMIC_RELAXED);
}

void buffers__request(uint8_t **buffer, size_t *size, size_t *max_records)
{
	struct shim *shim = live_shim();
	uint64_t begin_ns = shim ? shim_clock__now() : 0;

	*buffer = shim ? buffer_pool__take(&shim->pool, begin_ns) : NULL;
	*size = BUFFER_POOL_BYTES;
	*max_records = 0;
	if (!*buffer)
		refuse_buffer(shim, buffer, size);
	if (!shim)
		return;
	takeover__count_buffer(&shim->takeover);
	add_spent(shim, begin_ns);
}

/* A clock sample for the records after it. Call with the lock held. */
static void put_clock(struct shim *shim, struct fbt_gpu_clock *sample, enum shim_frame_kind kind)
{
	sample->header.type = FBT_EVENT_GPU_CLOCK;
	sample->header.size = sizeof(*sample);
	if (shim_ring__put(&shim->ring, &sample->header, kind))
		shim_clock__account(&shim->clock, sample);
}

/* The first host timestamp among the records; 0: none has one. */
static uint64_t find_host_time(void *const *records, size_t count)
{
	uint64_t time = 0;

	for (size_t i = 0; i < count && !time; i++)
		time = record_host_time(records[i]);
	return time;
}

static void put_clock_of_buffer(struct shim *shim)
{
	struct fbt_gpu_clock sample;

	/*
	 * NULL: CUPTI is not called from its own callback, except for the first batch. There may be
	 * any number of buffers, so their samples leave the ring's reserve to the status.
	 */
	if (shim_clock__sample(&shim->clock, NULL, &sample))
		put_clock(shim, &sample, SHIM_FRAME_RECORD);
}

static struct shim_clock read_clock(struct shim *shim)
{
	struct shim_clock clock;

	pthread_mutex_lock(&shim->lock);
	clock = shim->clock;
	pthread_mutex_unlock(&shim->lock);
	return clock;
}

static void check_clock(struct shim *shim, struct shim_clock *clock)
{
	uint32_t method = clock->method;
	struct fbt_gpu_clock sample;
	bool has_sample;

	shim_clock__check(clock, &shim->library.calls);
	has_sample = shim_clock__sample(clock, &shim->library.calls, &sample);
	pthread_mutex_lock(&shim->lock);
	if (shim_clock__adopt(&shim->clock, method, clock) && has_sample)
		put_clock(shim, &sample, SHIM_FRAME_CONTROL);
	shim_ring__publish(&shim->ring);
	pthread_mutex_unlock(&shim->lock);
}

void buffers__check_clock(struct shim *shim)
{
	struct shim_clock clock = read_clock(shim);

	/* Before the first record, CUPTI's clock may not have settled. */
	if (clock.settled)
		check_clock(shim, &clock);
}

/*
 * Determines the clock of the records, which must be known before the first one is sent. false: it
 * was known already.
 */
static bool settle_clock(struct shim *shim, void *const *records, size_t count)
{
	struct shim_clock clock = read_clock(shim);

	if (clock.settled)
		return false;
	clock.record_ns = find_host_time(records, count);
	check_clock(shim, &clock);
	return true;
}

/* settles: the records are of this window, so the clock may be determined by them. */
static void copy_batch(struct shim *shim, void *const *records, size_t count, bool first,
		       bool settles)
{
	bool has_clock = !first || (settles && settle_clock(shim, records, count));

	pthread_mutex_lock(&shim->lock);
	if (!has_clock)
		put_clock_of_buffer(shim);
	if (shim->clock.foreign)
		shim->records.counts.lost += count;
	for (size_t i = 0; i < count && !shim->clock.foreign; i++)
		record_writer__put(&shim->records, records[i]);
	shim_ring__publish(&shim->ring);
	pthread_mutex_unlock(&shim->lock);
	for (size_t i = 0; i < count; i++)
		free(record_owned_data(records[i], shim->library.strides[CUPTI_KIND_OVERHEAD]));
}

/*
 * CUPTI may have kept an empty buffer of another tool that is done, and used it for us. If there
 * are records from before we were armed, that tool is still recording.
 */
static void look_for_owner(struct shim *shim, void *const *records, size_t count)
{
	struct shim_clock clock = read_clock(shim);

	for (size_t i = 0; i < count; i++)
		if (shim_clock__is_before_arming(&clock, record_host_time(records[i])))
			takeover__set_foreign(&shim->takeover);
}

/* foreign: it is not a buffer of ours. */
static void copy_buffer(struct shim *shim, uint8_t *buffer, size_t valid, bool foreign)
{
	bool settles = foreign || !buffer_pool__is_written_off(&shim->pool, buffer);
	void *batch[BATCH];
	void *record = NULL;
	uint32_t result = CUPTI_OK;
	bool first = true;

	while (!result) {
		size_t count = 0;

		while (count < BATCH &&
		       !(result = shim->library.calls.get_next_record(buffer, valid, &record)))
			batch[count++] = record;
		if (count && foreign)
			look_for_owner(shim, batch, count);
		if (count)
			copy_batch(shim, batch, count, first, settles);
		first = false;
	}
	/* There is more in the buffer, in a form that CUPTI itself cannot read. */
	if (result != CUPTI_MAX_LIMIT) {
		pthread_mutex_lock(&shim->lock);
		shim->records.counts.unknown++;
		pthread_mutex_unlock(&shim->lock);
	}
}

void buffers__count_dropped(struct shim *shim)
{
	size_t dropped = 0;

	if (!shim->library.calls.get_dropped(NULL, 0, &dropped))
		__atomic_fetch_add(&shim->dropped, dropped, __ATOMIC_RELAXED);
}

void buffers__complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	struct shim *shim = shim__bound();
	int error = errno;
	uint64_t begin_ns;
	bool owned;

	if (!shim || !exit_guard__enter(shim))
		return;
	begin_ns = shim_clock__now();
	owned = buffer_pool__owns(&shim->pool, buffer);
	if (__atomic_load_n(&shim->collecting, __ATOMIC_ACQUIRE)) {
		if (buffer != buffer_pool__scrap() && valid)
			copy_buffer(shim, buffer, valid < size ? valid : size, !owned);
		buffers__count_dropped(shim);
	}
	if (owned)
		buffer_pool__give_back(&shim->pool, buffer);
	else if (buffer == buffer_pool__scrap())
		buffer_pool__clear_scrap();
	takeover__count_buffer(&shim->takeover);
	add_spent(shim, begin_ns);
	exit_guard__leave(shim);
	errno = error;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "delivery.h"

#include <errno.h>
#include <stdlib.h>

#include "ending.h"

/* Records that are looked up in CUPTI before the lock is taken for all of them. */
#define BATCH 128

/* CUPTI's buffer callbacks have no user data. Nothing else here is global. */
static struct shim *bound;

bool delivery__bind(struct shim *shim)
{
	struct shim *none = NULL;

	return __atomic_compare_exchange_n(&bound, &none, shim, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

struct shim *delivery__bound(void)
{
	return __atomic_load_n(&bound, __ATOMIC_ACQUIRE);
}

/* NULL: nothing may be done, as in a forked child. */
static struct shim *living(void)
{
	struct shim *shim = delivery__bound();

	return shim && shim__is_alive(shim) ? shim : NULL;
}

/* What the flusher's own thread spends here is part of what its flush took. */
static void add_spent(struct shim *shim, uint64_t since_ns)
{
	if (!pthread_equal(pthread_self(), shim->thread))
		__atomic_fetch_add(&shim->spent_ns, shim_clock__now() - since_ns, __ATOMIC_RELAXED);
}

/*
 * CUPTI may crash that gets none before 12.9 ("Fixed a crash when the client fails to provide a
 * buffer"); from then on the one that is not read would only be written by several at once.
 */
static void refuse_buffer(struct shim *shim, uint8_t **buffer, size_t *size)
{
	bool may_refuse = shim && shim->library.version >= CUPTI_VERSION_12_9;

	*buffer = may_refuse ? NULL : buffer_pool__scrap();
	*size = may_refuse ? 0 : BUFFER_SCRAP_BYTES;
	if (shim)
		__atomic_fetch_add(&shim->no_buffer, 1, __ATOMIC_RELAXED);
}

void delivery__request(uint8_t **buffer, size_t *size, size_t *max_records)
{
	struct shim *shim = living();
	uint64_t begin_ns = shim ? shim_clock__now() : 0;

	*buffer = shim ? buffer_pool__take(&shim->pool, begin_ns) : NULL;
	*size = BUFFER_POOL_BYTES;
	*max_records = 0;
	if (!*buffer)
		refuse_buffer(shim, buffer, size);
	if (shim)
		add_spent(shim, begin_ns);
}

/* For what follows. Under the lock. */
static void put_clock(struct shim *shim, struct fbt_gpu_clock *sample)
{
	sample->header.type = FBT_EVENT_GPU_CLOCK;
	sample->header.size = sizeof(*sample);
	if (shim_ring__put(&shim->ring, &sample->header, SHIM_FRAME_CONTROL))
		shim_clock__account(&shim->clock, sample);
}

/* A time of CUPTI's own clock among records; 0: there is none. */
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

	/* CUPTI is not asked from within its own callback but for the first time. */
	if (shim_clock__sample(&shim->clock, NULL, &sample))
		put_clock(shim, &sample);
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
		put_clock(shim, &sample);
	shim_ring__publish(&shim->ring);
	pthread_mutex_unlock(&shim->lock);
}

void delivery__check_clock(struct shim *shim)
{
	struct shim_clock clock = read_clock(shim);

	/* CUPTI's clock may not have settled before the first record has come. */
	if (clock.settled)
		check_clock(shim, &clock);
}

/* Before the first records are sent, it has to be known on which clock they are. */
static bool settle_clock(struct shim *shim, void *const *records, size_t count)
{
	struct shim_clock clock = read_clock(shim);

	if (clock.settled)
		return false;
	clock.record_ns = find_host_time(records, count);
	check_clock(shim, &clock);
	return true;
}

static void copy_batch(struct shim *shim, void *const *records, size_t count, bool first)
{
	bool has_clock = !first || settle_clock(shim, records, count);

	pthread_mutex_lock(&shim->lock);
	if (!has_clock)
		put_clock_of_buffer(shim);
	for (size_t i = 0; i < count; i++)
		record_copy__put(&shim->copy, records[i]);
	shim_ring__publish(&shim->ring);
	pthread_mutex_unlock(&shim->lock);
	for (size_t i = 0; i < count; i++)
		free(record_owned_data(records[i], shim->library.strides[CUPTI_KIND_OVERHEAD]));
}

static void copy_buffer(struct shim *shim, uint8_t *buffer, size_t valid)
{
	void *batch[BATCH];
	void *record = NULL;
	uint32_t result = CUPTI_OK;
	bool first = true;

	while (!result) {
		size_t count = 0;

		while (count < BATCH &&
		       !(result = shim->library.calls.get_next_record(buffer, valid, &record)))
			batch[count++] = record;
		if (count)
			copy_batch(shim, batch, count, first);
		first = false;
	}
	/* There is more, and the library itself does not know what. */
	if (result != CUPTI_MAX_LIMIT) {
		pthread_mutex_lock(&shim->lock);
		shim->copy.counts.unknown++;
		pthread_mutex_unlock(&shim->lock);
	}
}

void delivery__count_dropped(struct shim *shim)
{
	size_t dropped = 0;

	if (!shim->library.calls.get_dropped(NULL, 0, &dropped))
		__atomic_fetch_add(&shim->dropped, dropped, __ATOMIC_RELAXED);
}

void delivery__complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	struct shim *shim = delivery__bound();
	int error = errno;
	uint64_t begin_ns;

	if (!shim || !ending__enter(shim))
		return;
	begin_ns = shim_clock__now();
	if (__atomic_load_n(&shim->collecting, __ATOMIC_ACQUIRE)) {
		if (buffer_pool__owns(&shim->pool, buffer) && valid)
			copy_buffer(shim, buffer, valid < size ? valid : size);
		delivery__count_dropped(shim);
	}
	if (buffer_pool__owns(&shim->pool, buffer))
		buffer_pool__give_back(&shim->pool, buffer);
	else if (buffer == buffer_pool__scrap())
		buffer_pool__clear_scrap();
	add_spent(shim, begin_ns);
	ending__leave(shim);
	errno = error;
}

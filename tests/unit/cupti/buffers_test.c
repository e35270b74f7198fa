/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Completed buffers, with a played CUPTI whose records are all calls. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "buffers.h"
#include "shim_fixture.h"

#define S	1000000000ull
#define VERSION CUPTI_VERSION_13_1 /* its clock is our callback */

static uint32_t get_timestamp(uint64_t *time)
{
	(void)time;
	return 1;
}

static uint32_t register_timestamp(cupti_timestamp_fn *callback)
{
	(void)callback;
	return CUPTI_OK;
}

static uint32_t get_dropped(void *context, uint32_t stream, size_t *dropped)
{
	(void)context;
	(void)stream;
	*dropped = 0;
	return CUPTI_OK;
}

static uint32_t get_next_record(uint8_t *buffer, size_t valid, void **record)
{
	uint8_t *next = *record ? (uint8_t *)*record + sizeof(struct cupti_api) : buffer;

	if (next + sizeof(struct cupti_api) > buffer + valid)
		return CUPTI_MAX_LIMIT;
	*record = next;
	return CUPTI_OK;
}

/* The callbacks find the shim by itself, and it is bound once per process. */
static struct shim shim;
static uint32_t alive = 1;
static struct peer peer;

static int setup(void **state)
{
	(void)state;
	memset(&shim, 0, sizeof(shim));
	shim.alive = &alive;
	shim.library.version = VERSION;
	shim.library.calls = (struct cupti_calls){
		.get_timestamp = get_timestamp,
		.register_timestamp = register_timestamp,
		.get_dropped = get_dropped,
		.get_next_record = get_next_record,
	};
	shim.apis.calls[API_DRIVER][307] = (struct api_call){
		.name = "cuLaunchKernel", .class = FBT_GPU_API_LAUNCH, .flags = FBT_GPU_API_DRIVER};
	pthread_mutex_init(&shim.lock, NULL);
	shim.records = (struct record_writer){.ring = &shim.ring,
					      .names = name_table__new(),
					      .apis = &shim.apis,
					      .strides = shim.library.strides};
	if (!shim.records.names || buffer_pool__prepare(&shim.pool) ||
	    shim_ring__create(&shim.ring) || shim_ring__reserve(&shim.ring) ||
	    !peer_open(&peer, getpid()))
		return -1;
	return shim__bind(&shim) || shim__bound() == &shim ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	peer_close(&peer);
	shim_ring__destroy(&shim.ring);
	return 0;
}

/* A buffer that CUPTI was given then, with one call that began then. */
static uint8_t *fill_buffer(uint64_t time_ns)
{
	struct cupti_api call = {
		.kind = CUPTI_KIND_DRIVER, .cbid = 307, .start = time_ns, .end = time_ns + 5};
	uint8_t *buffer = buffer_pool__take(&shim.pool, time_ns);

	assert_non_null(buffer);
	memcpy(buffer, &call, sizeof(call));
	return buffer;
}

static void begin_window(void)
{
	buffer_pool__write_off(&shim.pool);
	shim_clock__begin(&shim.clock, &shim.library.calls, VERSION);
	shim.collecting = 1;
}

static void complete(uint8_t *buffer)
{
	buffers__complete(NULL, 0, buffer, BUFFER_POOL_BYTES, sizeof(struct cupti_api));
}

/* Its calls may be older than any that a clock of ours can explain. */
static void a_buffer_of_an_earlier_window_says_nothing_about_the_clock(void **state)
{
	uint8_t *old = fill_buffer(shim_clock__now() - 100 * S);

	(void)state;
	begin_window();
	complete(old);
	assert_false(shim.clock.foreign);
	assert_false(shim.clock.settled);
	assert_int_equal(shim.records.counts.records, 1);
	assert_int_equal(shim.records.counts.lost, 0);
	assert_true(peer_read(&peer));
	assert_int_equal(peer.before_clock, 0);
	complete(fill_buffer(shim_clock__now()));
	assert_true(shim.clock.settled);
	assert_false(shim.clock.foreign);
	assert_int_equal(shim.clock.method, FBT_GPU_CLOCK_CALLBACK);
	assert_int_equal(shim.records.counts.records, 2);
}

/* The tool may be stopped: buffers come all the same, each with a sample of the clock. */
static void buffers_without_room_leave_that_for_the_status(void **state)
{
	static union {
		struct fbt_header header;
		uint8_t bytes[FBT_GPU_FRAME_MAX];
	} frame;

	(void)state;
	begin_window();
	complete(fill_buffer(shim_clock__now()));
	frame.header.type = FBT_EVENT_GPU_STATE;
	frame.header.size = sizeof(struct fbt_gpu_clock);
	while (shim_ring__put(&shim.ring, &frame.header, SHIM_FRAME_RECORD))
		;
	for (int i = 0; i < 1000; i++)
		complete(fill_buffer(shim_clock__now()));
	assert_int_equal(shim.records.counts.lost, 1000);
	frame.header.size = sizeof(frame);
	for (size_t bytes = 0; bytes < SHIM_RING_RESERVE; bytes += sizeof(frame))
		assert_true(shim_ring__put(&shim.ring, &frame.header, SHIM_FRAME_CONTROL));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_buffer_of_an_earlier_window_says_nothing_about_the_clock),
		TEST(buffers_without_room_leave_that_for_the_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Records of fbt_gpu.h. The process with the shim may write anything there. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "model/event.h"
#include "fbt_gpu.h"
#include "stream_fixture.h"

static int open_stream(void **state)
{
	*state = calloc(1, sizeof(struct stream));
	return *state ? 0 : -1;
}

static int close_stream(void **state)
{
	free(*state);
	return 0;
}

static long decode(const struct stream *stream)
{
	const struct fbt_header *event;

	return decode_event(stream->bytes, stream->size, &event);
}

static void every_type_is_known_with_its_strings(void **state)
{
	static const struct {
		uint16_t type;
		size_t bytes;
		size_t strings;
	} types[] = {
		{FBT_EVENT_GPU_STATE, sizeof(struct fbt_gpu_state), 2},
		{FBT_EVENT_GPU_NAME, sizeof(struct fbt_gpu_name), 1},
		{FBT_EVENT_GPU_DEVICE, sizeof(struct fbt_gpu_device), 1},
		{FBT_EVENT_GPU_WORK, sizeof(struct fbt_gpu_work), 0},
		{FBT_EVENT_GPU_API, sizeof(struct fbt_gpu_api), 0},
		{FBT_EVENT_GPU_SYNC, sizeof(struct fbt_gpu_sync), 0},
		{FBT_EVENT_GPU_OVERHEAD, sizeof(struct fbt_gpu_overhead), 0},
		{FBT_EVENT_GPU_FLUSH, sizeof(struct fbt_gpu_flush), 0},
		{FBT_EVENT_GPU_CLOCK, sizeof(struct fbt_gpu_clock), 0},
	};
	static const char *const strings[] = {"a", "b", "c"};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct stream stream = {0};
		struct fbt_gpu_name *name = stream_add(&stream, types[i].type, types[i].bytes,
						       strings, types[i].strings);

		if (types[i].type == FBT_EVENT_GPU_NAME)
			name->id = 1;
		assert_int_equal(decode(&stream), stream.size);
		memset(&stream, 0, sizeof(stream));
		name = stream_add(&stream, types[i].type, types[i].bytes, strings,
				  types[i].strings + 1);
		if (types[i].type == FBT_EVENT_GPU_NAME)
			name->id = 1;
		/* An additional short string may pass for padding only if it is all zeros. */
		assert_int_equal(decode(&stream), -EBADMSG);
	}
	(void)state;
}

/* The process that decode_tgid() returns for a record of zeros with pid 4711 at that place. */
static uint32_t tgid_of(uint16_t type, size_t bytes, size_t place)
{
	struct stream stream = {0};
	char *record = stream_add(&stream, type, bytes, NULL, 0);
	const uint32_t tgid = 4711;

	memcpy(record + place, &tgid, sizeof(tgid));
	return decode_tgid((const struct fbt_header *)record);
}

static void every_record_of_a_process_says_which(void **state)
{
#define OF(event, type)                                                                            \
	assert_int_equal(tgid_of(event, sizeof(struct type), offsetof(struct type, tgid)), 4711)
	OF(FBT_EVENT_TARGET, fbt_target);
	OF(FBT_EVENT_THREAD, fbt_thread_name);
	OF(FBT_EVENT_STEP, fbt_step);
	OF(FBT_EVENT_CALL, fbt_call);
	OF(FBT_EVENT_TABLE, fbt_table);
	OF(FBT_EVENT_TARGET_EXIT, fbt_target_exit);
	OF(FBT_EVENT_FILE, fbt_file);
	OF(FBT_EVENT_GPU_STATE, fbt_gpu_state);
	OF(FBT_EVENT_GPU_NAME, fbt_gpu_name);
	OF(FBT_EVENT_GPU_DEVICE, fbt_gpu_device);
	OF(FBT_EVENT_GPU_WORK, fbt_gpu_work);
	OF(FBT_EVENT_GPU_API, fbt_gpu_api);
	OF(FBT_EVENT_GPU_SYNC, fbt_gpu_sync);
	OF(FBT_EVENT_GPU_OVERHEAD, fbt_gpu_overhead);
	OF(FBT_EVENT_GPU_FLUSH, fbt_gpu_flush);
	OF(FBT_EVENT_GPU_CLOCK, fbt_gpu_clock);
	(void)state;
}

static void records_of_no_process_name_none(void **state)
{
	static const uint16_t types[] = {
		0,
		FBT_EVENT_WINDOW,
		FBT_EVENT_KIND,
		FBT_EVENT_LOST,
		FBT_EVENT_COST,
		FBT_EVENT_WINDOW_END,
		FBT_EVENT_MANUAL,
		FBT_EVENT_GPU_CLOCK + 1,
		UINT16_MAX,
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct stream stream = {0};
		struct fbt_header *record = stream_add(&stream, types[i], 256, NULL, 0);

		memset(record + 1, 0xff, 256 - sizeof(*record));
		assert_int_equal(decode_tgid(record), 0);
	}
	(void)state;
}

#define ADD(stream, event, type)                                                                   \
	(struct type *)stream_add(stream, event, sizeof(struct type), NULL, 0)

static void work_of_an_unknown_kind_is_refused(void **state)
{
	struct fbt_gpu_work *work = ADD(*state, FBT_EVENT_GPU_WORK, fbt_gpu_work);

	work->kind = FBT_GPU_WORK_KIND_COUNT;
	assert_int_equal(decode(*state), -EBADMSG);
}

static void work_that_ends_before_it_begins_is_refused(void **state)
{
	struct fbt_gpu_work *work = ADD(*state, FBT_EVENT_GPU_WORK, fbt_gpu_work);

	work->start_ns = 5;
	work->end_ns = 4;
	assert_int_equal(decode(*state), -EBADMSG);
}

static void a_copy_of_an_unknown_kind_is_refused(void **state)
{
	struct fbt_gpu_work *work = ADD(*state, FBT_EVENT_GPU_WORK, fbt_gpu_work);

	work->kind = FBT_GPU_MEMCPY;
	work->copy.kind = FBT_GPU_COPY_KIND_COUNT;
	assert_int_equal(decode(*state), -EBADMSG);
}

static void a_kernel_may_have_any_grid(void **state)
{
	struct fbt_gpu_work *work = ADD(*state, FBT_EVENT_GPU_WORK, fbt_gpu_work);

	memset(&work->kernel, 0xff, sizeof(work->kernel));
	assert_int_equal(decode(*state), sizeof(*work));
}

static void a_call_of_an_unknown_class_is_refused(void **state)
{
	struct fbt_gpu_api *api = ADD(*state, FBT_EVENT_GPU_API, fbt_gpu_api);

	api->api_class = FBT_GPU_API_CLASS_COUNT;
	assert_int_equal(decode(*state), -EBADMSG);
}

static void a_call_that_ends_before_it_begins_is_refused(void **state)
{
	struct fbt_gpu_api *api = ADD(*state, FBT_EVENT_GPU_API, fbt_gpu_api);

	api->start_ns = 1;
	assert_int_equal(decode(*state), -EBADMSG);
}

static void a_sync_of_an_unknown_kind_is_refused(void **state)
{
	struct fbt_gpu_sync *sync = ADD(*state, FBT_EVENT_GPU_SYNC, fbt_gpu_sync);

	sync->kind = FBT_GPU_SYNC_KIND_COUNT;
	assert_int_equal(decode(*state), -EBADMSG);
}

static void a_sync_that_ends_before_it_begins_is_refused(void **state)
{
	struct fbt_gpu_sync *sync = ADD(*state, FBT_EVENT_GPU_SYNC, fbt_gpu_sync);

	sync->start_ns = 1;
	assert_int_equal(decode(*state), -EBADMSG);
}

static void overhead_that_ends_before_it_begins_is_refused(void **state)
{
	struct fbt_gpu_overhead *overhead = ADD(*state, FBT_EVENT_GPU_OVERHEAD, fbt_gpu_overhead);

	overhead->start_ns = 1;
	assert_int_equal(decode(*state), -EBADMSG);
}

static void a_name_needs_an_id_in_range(void **state)
{
	static const char *const text[] = {"kernel"};
	struct fbt_gpu_name *name = stream_add(*state, FBT_EVENT_GPU_NAME, sizeof(*name), text, 1);

	assert_int_equal(decode(*state), -EBADMSG);
	name->id = FBT_GPU_NAMES_MAX + 1;
	assert_int_equal(decode(*state), -EBADMSG);
	name->id = FBT_GPU_NAMES_MAX;
	assert_true(decode(*state) > 0);
	name->kind = FBT_GPU_NAME_KIND_COUNT;
	assert_int_equal(decode(*state), -EBADMSG);
}

static void a_state_needs_a_known_status_and_clock(void **state)
{
	static const char *const text[] = {"held by nsys", "/usr/lib/libcupti.so"};
	struct fbt_gpu_state *record =
		stream_add(*state, FBT_EVENT_GPU_STATE, sizeof(*record), text, 2);

	assert_true(decode(*state) > 0);
	record->status = FBT_GPU_STATUS_COUNT;
	assert_int_equal(decode(*state), -EBADMSG);
	record->status = 0;
	record->clock_method = FBT_GPU_CLOCK_METHOD_COUNT;
	assert_int_equal(decode(*state), -EBADMSG);
}

static void a_clock_sample_needs_a_known_method(void **state)
{
	struct fbt_gpu_clock *clock = ADD(*state, FBT_EVENT_GPU_CLOCK, fbt_gpu_clock);

	clock->method = FBT_GPU_CLOCK_METHOD_COUNT;
	assert_int_equal(decode(*state), -EBADMSG);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_stream, close_stream)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_type_is_known_with_its_strings),
		TEST(every_record_of_a_process_says_which),
		TEST(records_of_no_process_name_none),
		TEST(work_of_an_unknown_kind_is_refused),
		TEST(work_that_ends_before_it_begins_is_refused),
		TEST(a_copy_of_an_unknown_kind_is_refused),
		TEST(a_kernel_may_have_any_grid),
		TEST(a_call_of_an_unknown_class_is_refused),
		TEST(a_call_that_ends_before_it_begins_is_refused),
		TEST(a_sync_of_an_unknown_kind_is_refused),
		TEST(a_sync_that_ends_before_it_begins_is_refused),
		TEST(overhead_that_ends_before_it_begins_is_refused),
		TEST(a_name_needs_an_id_in_range),
		TEST(a_state_needs_a_known_status_and_clock),
		TEST(a_clock_sample_needs_a_known_method),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

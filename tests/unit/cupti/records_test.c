/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buffer_pool.h"
#include "records.h"
#include "shim_fixture.h"

struct fixture {
	struct shim_ring ring;
	struct peer peer;
	struct api_table apis;
	uint32_t strides[CUPTI_KIND_COUNT];
	struct record_writer copy;
	uint8_t last[FBT_GPU_FRAME_MAX]; /* frame of the last record, as the tool's side read it */
};

static struct fixture fixture;

static void keep(void *ctx, const struct fbt_header *frame)
{
	if (frame->type != FBT_EVENT_GPU_NAME)
		memcpy(fixture.last, frame, frame->size);
}

static int setup(void **state)
{
	memset(&fixture, 0, sizeof(fixture));
	if (shim_ring__create(&fixture.ring) || shim_ring__reserve(&fixture.ring) ||
	    !peer_open(&fixture.peer, getpid()))
		return -1;
	fixture.peer.on_frame = keep;
	fixture.apis.calls[API_RUNTIME][31] = (struct api_call){
		.name = "cudaMemcpy_v3020",
		.class = FBT_GPU_API_MEMCPY,
		.flags = FBT_GPU_API_BLOCKING,
	};
	fixture.apis.calls[API_DRIVER][307] = (struct api_call){
		.name = "cuLaunchKernel",
		.class = FBT_GPU_API_LAUNCH,
		.flags = FBT_GPU_API_DRIVER,
	};
	fixture.copy = (struct record_writer){
		.ring = &fixture.ring,
		.names = name_table__new(),
		.apis = &fixture.apis,
		.strides = fixture.strides,
		.overhead_threads = true,
	};
	return fixture.copy.names ? 0 : -1;
}

static int teardown(void **state)
{
	peer_close(&fixture.peer);
	shim_ring__destroy(&fixture.ring);
	return 0;
}

/* Copies a CUPTI record to the ring. Returns its frame; type 0: no frame was written. */
static const void *copy(const void *record)
{
	memset(fixture.last, 0, sizeof(fixture.last));
	record_writer__put(&fixture.copy, record);
	shim_ring__publish(&fixture.ring);
	assert_true(peer_read(&fixture.peer));
	return fixture.last;
}

static void test_kernel(void **state)
{
	static const struct cupti_kernel kernel = {
		.kind = CUPTI_KIND_CONCURRENT_KERNEL,
		.registers = 255,
		.start = 1000,
		.end = 3000,
		.device = 1,
		.context = 2,
		.stream = 7,
		.grid = {128, 2, 3},
		.block = {256, 4, 5},
		.static_shared = 48,
		.dynamic_shared = 98304,
		.correlation = 4711,
		.name = "_Z4gemmPf",
		.graph_node = 0x100000003,
		.graph = 9,
	};
	const struct fbt_gpu_work *work = copy(&kernel);

	assert_int_equal(work->header.type, FBT_EVENT_GPU_WORK);
	assert_int_equal(work->header.size, sizeof(*work));
	assert_int_equal(work->tgid, 0);
	assert_int_equal(work->kind, FBT_GPU_KERNEL);
	assert_int_equal(work->start_ns, 1000);
	assert_int_equal(work->end_ns, 3000);
	assert_int_equal(work->device, 1);
	assert_int_equal(work->context, 2);
	assert_int_equal(work->stream, 7);
	assert_int_equal(work->correlation, 4711);
	assert_int_equal(work->graph_node, 0x100000003);
	assert_int_equal(work->graph, 9);
	assert_int_equal(work->kernel.grid[0], 128);
	assert_int_equal(work->kernel.grid[2], 3);
	assert_int_equal(work->kernel.block[1], 4);
	assert_int_equal(work->kernel.static_shared, 48);
	assert_int_equal(work->kernel.dynamic_shared, 98304);
	assert_int_equal(work->kernel.registers, 255);
	assert_string_equal(fixture.peer.names[work->name], "_Z4gemmPf");
	copy(&kernel);
	assert_int_equal(fixture.peer.counts[FBT_EVENT_GPU_NAME], 1);
	assert_int_equal(fixture.peer.unnamed, 0);
	/* After name_table__forget() the name is sent again. */
	name_table__forget(fixture.copy.names);
	copy(&kernel);
	assert_int_equal(fixture.peer.counts[FBT_EVENT_GPU_NAME], 2);
	assert_int_equal(fixture.copy.counts.records, 3);
}

/*
 * Work that was not measured, that was flushed before its end or whose times are impossible has no
 * times.
 */
static void test_times(void **state)
{
	static const uint64_t pairs[][2] = {{0, 0}, {500, 0}, {0, 500}, {500, 499}};

	for (size_t i = 0; i < 4; i++) {
		const struct cupti_kernel kernel = {.kind = CUPTI_KIND_CONCURRENT_KERNEL,
						    .start = pairs[i][0],
						    .end = pairs[i][1]};
		const struct fbt_gpu_work *work = copy(&kernel);

		assert_int_equal(work->header.type, FBT_EVENT_GPU_WORK);
		assert_int_equal(work->start_ns, 0);
		assert_int_equal(work->end_ns, 0);
		assert_int_equal(work->name, 0);
	}
}

/* The duration is below the clock's resolution. */
static void test_no_time(void **state)
{
	static const struct cupti_kernel kernel = {
		.kind = CUPTI_KIND_CONCURRENT_KERNEL, .start = 500, .end = 500};
	const struct fbt_gpu_work *work = copy(&kernel);

	assert_int_equal(work->start_ns, 500);
	assert_int_equal(work->end_ns, 500);
}

/* Checks the fields that all kinds of work share. */
static void check_common(const struct fbt_gpu_work *work, enum fbt_gpu_work_kind kind)
{
	assert_int_equal(work->header.type, FBT_EVENT_GPU_WORK);
	assert_int_equal(work->kind, kind);
	assert_int_equal(work->start_ns, 1000);
	assert_int_equal(work->end_ns, 3000);
	assert_int_equal(work->device, 3);
	assert_int_equal(work->context, 4);
	assert_int_equal(work->stream, 5);
	assert_int_equal(work->correlation, 8);
	assert_int_equal(work->graph_node, 0x100000006);
	assert_int_equal(work->graph, 2);
	assert_int_equal(work->name, 0);
}

#define COMMON                                                                                     \
	.start = 1000, .end = 3000, .device = 3, .context = 4, .stream = 5, .correlation = 8,      \
	.graph_node = 0x100000006, .graph = 2

static void test_copies(void **state)
{
	static const struct cupti_memcpy memory = {
		.kind = CUPTI_KIND_MEMCPY,
		.copy_kind = FBT_GPU_COPY_H2D,
		.source_memory = FBT_GPU_MEMORY_PAGEABLE,
		.target_memory = FBT_GPU_MEMORY_DEVICE,
		.bytes = 1ull << 33,
		COMMON,
	};
	const struct fbt_gpu_work *work = copy(&memory);

	check_common(work, FBT_GPU_MEMCPY);
	assert_int_equal(work->copy.bytes, 1ull << 33);
	assert_int_equal(work->copy.kind, FBT_GPU_COPY_H2D);
	assert_int_equal(work->copy.source_memory, FBT_GPU_MEMORY_PAGEABLE);
	assert_int_equal(work->copy.target_memory, FBT_GPU_MEMORY_DEVICE);
	assert_int_equal(work->copy.source_device, 3);
	assert_int_equal(work->copy.target_device, 3);
}

static void test_copies_between_devices(void **state)
{
	static const struct cupti_memcpy2 peer = {
		.kind = CUPTI_KIND_MEMCPY2,
		.bytes = 64,
		.source_memory = FBT_GPU_MEMORY_DEVICE,
		.target_memory = FBT_GPU_MEMORY_ARRAY,
		.source_device = 7,
		.target_device = 1,
		COMMON,
	};
	const struct fbt_gpu_work *work = copy(&peer);

	check_common(work, FBT_GPU_MEMCPY);
	assert_int_equal(work->copy.bytes, 64);
	assert_int_equal(work->copy.kind, FBT_GPU_COPY_P2P);
	assert_int_equal(work->copy.source_device, 7);
	assert_int_equal(work->copy.target_device, 1);
	assert_int_equal(work->copy.source_memory, FBT_GPU_MEMORY_DEVICE);
	assert_int_equal(work->copy.target_memory, FBT_GPU_MEMORY_ARRAY);
}

/* Copy and memory kinds beyond those that are known today. */
static void test_unknown_kinds(void **state)
{
	struct cupti_memcpy odd = {.kind = CUPTI_KIND_MEMCPY,
				   .copy_kind = FBT_GPU_COPY_KIND_COUNT,
				   .source_memory = FBT_GPU_MEMORY_MANAGED_STATIC + 1,
				   .target_memory = FBT_GPU_MEMORY_MANAGED_STATIC};
	struct cupti_synchronization sync = {.kind = CUPTI_KIND_SYNCHRONIZATION,
					     .type = FBT_GPU_SYNC_KIND_COUNT};
	const struct fbt_gpu_work *work = copy(&odd);

	assert_int_equal(work->copy.kind, FBT_GPU_COPY_UNKNOWN);
	assert_int_equal(work->copy.source_memory, FBT_GPU_MEMORY_UNKNOWN);
	assert_int_equal(work->copy.target_memory, FBT_GPU_MEMORY_MANAGED_STATIC);
	odd.copy_kind = FBT_GPU_COPY_KIND_COUNT - 1;
	assert_int_equal(((const struct fbt_gpu_work *)copy(&odd))->copy.kind, odd.copy_kind);
	assert_int_equal(((const struct fbt_gpu_sync *)copy(&sync))->kind, FBT_GPU_SYNC_UNKNOWN);
	sync.type = FBT_GPU_SYNC_KIND_COUNT - 1;
	assert_int_equal(((const struct fbt_gpu_sync *)copy(&sync))->kind, sync.type);
}

static void test_memset(void **state)
{
	static const struct cupti_memset fill = {
		.kind = CUPTI_KIND_MEMSET,
		.value = 0xab,
		.bytes = 512,
		.memory = FBT_GPU_MEMORY_DEVICE,
		COMMON,
	};
	const struct fbt_gpu_work *work = copy(&fill);

	check_common(work, FBT_GPU_MEMSET);
	assert_int_equal(work->copy.value, 0xab);
	assert_int_equal(work->copy.bytes, 512);
	assert_int_equal(work->copy.kind, 0);
	assert_int_equal(work->copy.source_memory, 0);
	assert_int_equal(work->copy.target_memory, FBT_GPU_MEMORY_DEVICE);
}

static void test_calls(void **state)
{
	struct cupti_api call = {
		.kind = CUPTI_KIND_RUNTIME,
		.cbid = 31,
		.start = 100,
		.end = 200,
		.process = 1,
		.thread = 77,
		.correlation = 5,
		.result = 2,
	};
	const struct fbt_gpu_api *api = copy(&call);

	assert_int_equal(api->header.type, FBT_EVENT_GPU_API);
	assert_int_equal(api->header.flags, FBT_GPU_API_BLOCKING);
	assert_int_equal(api->tid, 77);
	assert_int_equal(api->start_ns, 100);
	assert_int_equal(api->end_ns, 200);
	assert_int_equal(api->correlation, 5);
	assert_int_equal(api->cbid, 31);
	assert_int_equal(api->api_class, FBT_GPU_API_MEMCPY);
	assert_int_equal(api->result, 2);
	assert_string_equal(fixture.peer.names[api->name], "cudaMemcpy_v3020");
	call.kind = CUPTI_KIND_DRIVER;
	call.cbid = 307;
	assert_int_equal(((const struct fbt_gpu_api *)copy(&call))->header.flags,
			 FBT_GPU_API_DRIVER);
	/* The library may record all calls. The shim drops this one. */
	call.cbid = 17;
	assert_int_equal(((const struct fbt_header *)copy(&call))->type, 0);
	call.cbid = UINT32_MAX;
	assert_int_equal(((const struct fbt_header *)copy(&call))->type, 0);
	assert_int_equal(fixture.copy.counts.unknown, 0);
	assert_int_equal(fixture.copy.counts.records, 2);
	assert_int_equal(record_host_time(&call), 100);
}

static void test_sync(void **state)
{
	static const struct cupti_synchronization record = {
		.kind = CUPTI_KIND_SYNCHRONIZATION,
		.type = FBT_GPU_SYNC_STREAM,
		.start = 1,
		.end = 5,
		.correlation = 6,
		.context = 2,
		.stream = FBT_GPU_NO_STREAM,
		.event = 4,
	};
	const struct fbt_gpu_sync *sync = copy(&record);

	assert_int_equal(sync->header.type, FBT_EVENT_GPU_SYNC);
	assert_int_equal(sync->kind, FBT_GPU_SYNC_STREAM);
	assert_int_equal(sync->start_ns, 1);
	assert_int_equal(sync->end_ns, 5);
	assert_int_equal(sync->correlation, 6);
	assert_int_equal(sync->context, 2);
	assert_int_equal(sync->stream, FBT_GPU_NO_STREAM);
	assert_int_equal(sync->event, 4);
}

static void test_overhead(void **state)
{
	int data;
	struct cupti_overhead record = {
		.kind = CUPTI_KIND_OVERHEAD,
		.overhead_kind = FBT_GPU_OVERHEAD_COMMAND_BUFFER_FULL,
		.object_kind = CUPTI_OBJECT_THREAD,
		.object = {11, 12},
		.start = 1,
		.end = 2,
		.correlation = 3,
		.data = &data,
	};
	const struct fbt_gpu_overhead *overhead;

	/* Records of this version end before the correlation. */
	fixture.strides[CUPTI_KIND_OVERHEAD] = 40;
	overhead = copy(&record);
	assert_int_equal(overhead->header.type, FBT_EVENT_GPU_OVERHEAD);
	assert_int_equal(overhead->start_ns, 1);
	assert_int_equal(overhead->end_ns, 2);
	assert_int_equal(overhead->correlation, 0);
	assert_int_equal(overhead->tid, 12);
	assert_int_equal(overhead->kind, FBT_GPU_OVERHEAD_COMMAND_BUFFER_FULL);
	assert_null(record_owned_data(&record, 40));
	assert_null(record_owned_data(&record, 48));
	assert_ptr_equal(record_owned_data(&record, 56), &data);
	fixture.strides[CUPTI_KIND_OVERHEAD] = 48;
	assert_int_equal(((const struct fbt_gpu_overhead *)copy(&record))->correlation, 3);
	fixture.copy.overhead_threads = false;
	assert_int_equal(((const struct fbt_gpu_overhead *)copy(&record))->tid, 0);
	fixture.copy.overhead_threads = true;
	record.object_kind = CUPTI_OBJECT_THREAD - 1;
	assert_int_equal(((const struct fbt_gpu_overhead *)copy(&record))->tid, 0);
	record.overhead_kind = FBT_GPU_OVERHEAD_RESOURCE;
	assert_null(record_owned_data(&record, 56));
	/* In a record of another kind these bytes are no pointer that the shim may free. */
	record.overhead_kind = FBT_GPU_OVERHEAD_COMMAND_BUFFER_FULL;
	record.kind = CUPTI_KIND_MEMCPY;
	assert_null(record_owned_data(&record, 56));
}

static void test_unknown(void **state)
{
	struct cupti_kernel kernel = {.kind = CUPTI_KIND_CONCURRENT_KERNEL};
	static const uint32_t kinds[] = {0, 3, 9, 38 + 1, UINT32_MAX};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		kernel.kind = kinds[i];
		assert_int_equal(((const struct fbt_header *)copy(&kernel))->type, 0);
		assert_int_equal(fixture.copy.counts.unknown, i + 1);
	}
	/* A record shorter than the fields that the shim reads is not read at all. */
	kernel.kind = CUPTI_KIND_CONCURRENT_KERNEL;
	fixture.strides[kernel.kind] = 144;
	assert_int_equal(((const struct fbt_header *)copy(&kernel))->type, 0);
	fixture.strides[kernel.kind] = 160;
	assert_int_equal(((const struct fbt_header *)copy(&kernel))->type, FBT_EVENT_GPU_WORK);
}

/* A name that did not fit does not count as sent, and its record is written without it. */
static void test_full(void **state)
{
	static char name[1500];
	struct cupti_kernel kernel = {.kind = CUPTI_KIND_CONCURRENT_KERNEL};
	uint64_t count = 0;

	while (!fixture.copy.counts.lost)
		record_writer__put(&fixture.copy, &kernel);
	count = fixture.copy.counts.records;
	shim_ring__publish(&fixture.ring);
	/* The free room holds a few records, but not this name. */
	fixture.peer.shared->tail = 5 * sizeof(struct fbt_gpu_work);
	memset(name, 'k', sizeof(name) - 1);
	kernel.name = name;
	record_writer__put(&fixture.copy, &kernel);
	shim_ring__publish(&fixture.ring);
	assert_int_equal(fixture.copy.counts.records, count + 1);
	assert_true(peer_read(&fixture.peer));
	assert_int_equal(((const struct fbt_gpu_work *)fixture.last)->name, 0);
	assert_int_equal(fixture.peer.counts[FBT_EVENT_GPU_NAME], 0);
	assert_int_not_equal(((const struct fbt_gpu_work *)copy(&kernel))->name, 0);
	assert_int_equal(fixture.peer.counts[FBT_EVENT_GPU_NAME], 1);
}

static void test_pool(void **state)
{
	struct buffer_pool pool = {0};
	uint8_t *buffers[BUFFER_POOL_COUNT];

	assert_null(buffer_pool__take(&pool, 1));
	assert_int_equal(buffer_pool__oldest_ns(&pool), UINT64_MAX);
	assert_int_equal(buffer_pool__prepare(&pool), 0);
	for (uint32_t i = 0; i < BUFFER_POOL_COUNT; i++) {
		buffers[i] = buffer_pool__take(&pool, 100 + i);
		assert_non_null(buffers[i]);
		assert_true(buffer_pool__owns(&pool, buffers[i]));
	}
	assert_null(buffer_pool__take(&pool, 1000));
	assert_false(buffer_pool__owns(&pool, buffer_pool__scrap()));
	/* A buffer without records does not hold back the flush time. */
	assert_int_equal(buffer_pool__oldest_ns(&pool), UINT64_MAX);
	memset(buffers[7], 0xff, BUFFER_POOL_BYTES);
	memset(buffers[5], 0xff, BUFFER_POOL_BYTES);
	assert_int_equal(buffer_pool__oldest_ns(&pool), 105);
	/* After a second arming, CUPTI still owns the buffers that it holds. */
	assert_int_equal(buffer_pool__prepare(&pool), 0);
	assert_null(buffer_pool__take(&pool, 1000));
	buffer_pool__give_back(&pool, buffers[5]);
	assert_int_equal(buffer_pool__oldest_ns(&pool), 107);
	assert_ptr_equal(buffer_pool__take(&pool, 1000), buffers[5]);
	for (size_t i = 0; i < BUFFER_POOL_BYTES; i++)
		assert_int_equal(buffers[5][i], 0);
	munmap(pool.memory, (size_t)BUFFER_POOL_COUNT * BUFFER_POOL_BYTES);
}

static void test_pool_gives_again_what_came_back(void **state)
{
	struct buffer_pool pool = {0};
	uint8_t *buffers[BUFFER_POOL_COUNT];

	assert_int_equal(buffer_pool__prepare(&pool), 0);
	for (uint32_t i = 0; i < BUFFER_POOL_COUNT; i++)
		buffers[i] = buffer_pool__take(&pool, 100 + i);
	for (uint32_t i = 0; i < BUFFER_POOL_COUNT; i += 3)
		buffer_pool__give_back(&pool, buffers[i]);
	for (uint32_t i = 0; i < BUFFER_POOL_COUNT; i += 3)
		assert_ptr_equal(buffer_pool__take(&pool, 1000 + i), buffers[i]);
	assert_null(buffer_pool__take(&pool, 1000));
	munmap(pool.memory, (size_t)BUFFER_POOL_COUNT * BUFFER_POOL_BYTES);
	(void)state;
}

static void test_pool_knows_the_oldest_of_all(void **state)
{
	struct buffer_pool pool = {0};
	uint8_t *buffers[BUFFER_POOL_COUNT];

	assert_int_equal(buffer_pool__prepare(&pool), 0);
	for (uint32_t i = 0; i < BUFFER_POOL_COUNT; i++) {
		buffers[i] = buffer_pool__take(&pool, 100 + i);
		buffers[i][0] = 1;
	}
	for (uint32_t i = 0; i < BUFFER_POOL_COUNT; i++) {
		assert_int_equal(buffer_pool__oldest_ns(&pool), 100 + i);
		buffer_pool__give_back(&pool, buffers[i]);
	}
	assert_int_equal(buffer_pool__oldest_ns(&pool), UINT64_MAX);
	munmap(pool.memory, (size_t)BUFFER_POOL_COUNT * BUFFER_POOL_BYTES);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_kernel, setup, teardown),
		cmocka_unit_test_setup_teardown(test_times, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_copies, setup, teardown),
		cmocka_unit_test_setup_teardown(test_copies_between_devices, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unknown_kinds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memset, setup, teardown),
		cmocka_unit_test_setup_teardown(test_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sync, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overhead, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unknown, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test(test_pool),
		cmocka_unit_test(test_pool_gives_again_what_came_back),
		cmocka_unit_test(test_pool_knows_the_oldest_of_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

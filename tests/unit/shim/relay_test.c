/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

#include "shim/relay.h"
#include "record_keeper.h"

#define S	 1000000000ull
#define NOW	 (1000 * S)
#define REALTIME (1700000000ull * S)

struct fixture {
	struct record_keeper keeper;
	struct record_output output;
	struct gpu_relay relay;
};

/*
 * The target is this process, so thread numbers are not translated. The real-time clock reads
 * REALTIME at 100 s.
 */
static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct fbt_gpu_clock sample = {.header = {FBT_EVENT_GPU_CLOCK, 0, sizeof(sample)},
				       .method = FBT_GPU_CLOCK_REALTIME,
				       .mono_ns = 100 * S,
				       .gpu_ns = REALTIME,
				       .error_ns = 40};

	if (!fixture)
		return -1;
	fixture->output = keeper_output(&fixture->keeper);
	fixture->relay.tgid = (uint32_t)getpid();
	fixture->relay.output = &fixture->output;
	fixture->relay.tids = ns_tids__new(fixture->relay.tgid);
	gpu_relay_record(&fixture->relay, &sample.header, 0, NOW);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	ns_tids__free(fixture->relay.tids);
	free(fixture);
	return 0;
}

static void relay(struct fixture *fixture, void *record, size_t size, enum fbt_event_type type)
{
	struct fbt_header *header = record;

	header->type = (uint16_t)type;
	header->size = (uint32_t)size;
	gpu_relay_record(&fixture->relay, header, 0, NOW);
}

static void a_clock_sample_is_kept_and_not_sent(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(fixture->keeper.count, 0);
	assert_int_equal(fixture->relay.clock.count, 1);
}

static void work_gets_its_process_and_our_clock(void **state)
{
	struct fbt_gpu_work work = {
		.header.flags = 9, .tgid = 1, .start_ns = REALTIME + 5, .end_ns = REALTIME + 9};
	struct fixture *fixture = *state;
	const struct fbt_gpu_work *sent;

	relay(fixture, &work, sizeof(work), FBT_EVENT_GPU_WORK);
	sent = kept(&fixture->keeper, 0, FBT_EVENT_GPU_WORK);
	assert_int_equal(sent->tgid, getpid());
	assert_int_equal(sent->start_ns, 100 * S + 5);
	assert_int_equal(sent->end_ns, 100 * S + 9);
	assert_int_equal(sent->header.flags, 0);
}

static void work_without_times_stays_without(void **state)
{
	struct fbt_gpu_work none = {0}, half = {.end_ns = REALTIME + 9};
	struct fixture *fixture = *state;
	const struct fbt_gpu_work *sent;

	relay(fixture, &none, sizeof(none), FBT_EVENT_GPU_WORK);
	relay(fixture, &half, sizeof(half), FBT_EVENT_GPU_WORK);
	for (size_t i = 0; i < 2; i++) {
		sent = kept(&fixture->keeper, i, FBT_EVENT_GPU_WORK);
		assert_int_equal(sent->start_ns, 0);
		assert_int_equal(sent->end_ns, 0);
	}
}

static void calls_get_their_thread(void **state)
{
	struct fbt_gpu_api api = {.header.flags = 0xffff,
				  .tid = (uint32_t)getpid(),
				  .start_ns = REALTIME,
				  .end_ns = REALTIME};
	struct fbt_gpu_overhead overhead = {.tid = 7, .start_ns = REALTIME, .end_ns = REALTIME};
	struct fbt_gpu_sync sync = {.start_ns = REALTIME, .end_ns = REALTIME + 1};
	struct fixture *fixture = *state;
	const struct fbt_gpu_api *sent;

	relay(fixture, &api, sizeof(api), FBT_EVENT_GPU_API);
	relay(fixture, &overhead, sizeof(overhead), FBT_EVENT_GPU_OVERHEAD);
	relay(fixture, &sync, sizeof(sync), FBT_EVENT_GPU_SYNC);
	sent = kept(&fixture->keeper, 0, FBT_EVENT_GPU_API);
	assert_int_equal(sent->tid, getpid());
	assert_int_equal(sent->start_ns, 100 * S);
	assert_int_equal(sent->header.flags, FBT_GPU_API_DRIVER | FBT_GPU_API_BLOCKING);
	assert_int_equal(
		((const struct fbt_gpu_overhead *)kept(&fixture->keeper, 1, FBT_EVENT_GPU_OVERHEAD))
			->start_ns,
		100 * S);
	assert_int_equal(
		((const struct fbt_gpu_sync *)kept(&fixture->keeper, 2, FBT_EVENT_GPU_SYNC))
			->end_ns,
		100 * S + 1);
}

static void names_and_devices_get_their_process(void **state)
{
	struct {
		struct fbt_gpu_name name;
		char text[8];
	} name = {.name = {.tgid = 1, .id = 4}, .text = "sgemm"};
	struct {
		struct fbt_gpu_device device;
		char text[8];
	} device = {.text = "H100"};
	struct fixture *fixture = *state;
	const struct fbt_gpu_name *sent;

	relay(fixture, &name, sizeof(name), FBT_EVENT_GPU_NAME);
	relay(fixture, &device, sizeof(device), FBT_EVENT_GPU_DEVICE);
	sent = kept(&fixture->keeper, 0, FBT_EVENT_GPU_NAME);
	assert_int_equal(sent->tgid, getpid());
	assert_string_equal(kept_string(sent, sizeof(*sent), 0), "sgemm");
	assert_int_equal(
		((const struct fbt_gpu_device *)kept(&fixture->keeper, 1, FBT_EVENT_GPU_DEVICE))
			->tgid,
		getpid());
}

/* A process must not date its work in the future. */
static void what_has_not_come_yet_is_not_sent_and_counted(void **state)
{
	struct fbt_gpu_work work = {.start_ns = REALTIME, .end_ns = REALTIME + 902 * S};
	struct fbt_gpu_flush flush = {.unknown = 3, .time_ns = NOW - 5};
	struct fixture *fixture = *state;
	const struct fbt_gpu_flush *sent;

	relay(fixture, &work, sizeof(work), FBT_EVENT_GPU_WORK);
	assert_int_equal(fixture->keeper.count, 0);
	flush.header = (struct fbt_header){FBT_EVENT_GPU_FLUSH, 0, sizeof(flush)};
	gpu_relay_record(&fixture->relay, &flush.header, 20, NOW);
	sent = kept(&fixture->keeper, 0, FBT_EVENT_GPU_FLUSH);
	assert_int_equal(sent->unknown, 24);
}

static void a_flush_gets_the_clock_as_we_know_it(void **state)
{
	struct fbt_gpu_flush flush = {.clock_error_ns = 1,
				      .clock_steps = 2,
				      .last = 77,
				      .time_ns = NOW + S,
				      .unknown = UINT64_MAX,
				      .records = 5};
	struct fixture *fixture = *state;
	const struct fbt_gpu_flush *sent;

	fixture->relay.impossible = 1;
	relay(fixture, &flush, sizeof(flush), FBT_EVENT_GPU_FLUSH);
	sent = kept(&fixture->keeper, 0, FBT_EVENT_GPU_FLUSH);
	assert_int_equal(sent->clock_error_ns, 40);
	assert_int_equal(sent->clock_steps, 0);
	assert_int_equal(sent->last, 1);
	assert_int_equal(sent->time_ns, NOW);
	assert_true(sent->unknown == UINT64_MAX);
	assert_int_equal(sent->records, 5);
}

static void times_of_the_shim_itself_are_monotonic_of_its_namespace(void **state)
{
	struct fixture *fixture = *state;

	fixture->relay.clock.timens_ns = 300;
	assert_int_equal(gpu_relay_mono(&fixture->relay, 1000, NOW), 700);
	assert_int_equal(gpu_relay_mono(&fixture->relay, NOW + 500, NOW), NOW);
	assert_int_equal(gpu_relay_mono(&fixture->relay, UINT64_MAX, NOW), NOW);
}

static void a_flush_says_its_times_on_our_clock(void **state)
{
	struct fbt_gpu_flush flush = {.time_ns = NOW - 500, .sent_ns = NOW - 400};
	struct fixture *fixture = *state;
	const struct fbt_gpu_flush *sent;

	fixture->relay.clock.timens_ns = 300;
	relay(fixture, &flush, sizeof(flush), FBT_EVENT_GPU_FLUSH);
	sent = kept(&fixture->keeper, 0, FBT_EVENT_GPU_FLUSH);
	assert_int_equal(sent->time_ns, NOW - 800);
	assert_int_equal(sent->sent_ns, NOW - 700);
}

/* The target writes sent_ns, so it may hold any value. */
static void a_flush_was_not_sent_in_the_future(void **state)
{
	struct fbt_gpu_flush flush = {.time_ns = NOW - 500, .sent_ns = NOW + 1};
	struct fixture *fixture = *state;
	const struct fbt_gpu_flush *sent;

	relay(fixture, &flush, sizeof(flush), FBT_EVENT_GPU_FLUSH);
	sent = kept(&fixture->keeper, 0, FBT_EVENT_GPU_FLUSH);
	assert_int_equal(sent->time_ns, NOW - 500);
	assert_int_equal(sent->sent_ns, NOW);
}

static void of_flushes_in_a_hurry_one_is_sent(void **state)
{
	struct fbt_gpu_flush flush = {.header = {FBT_EVENT_GPU_FLUSH, 0, sizeof(flush)}};
	struct fixture *fixture = *state;

	for (uint64_t i = 0; i < 100; i++) {
		flush.records = i;
		flush.time_ns = NOW + i;
		gpu_relay_record(&fixture->relay, &flush.header, 0, NOW + i);
	}
	assert_int_equal(fixture->keeper.count, 1);
	gpu_relay_record(&fixture->relay, &flush.header, 0, NOW + GPU_RELAY_FLUSH_NS);
	assert_int_equal(fixture->keeper.count, 2);
	/* A flush that was held back is sent at the end. */
	flush.records = 200;
	gpu_relay_record(&fixture->relay, &flush.header, 0, NOW + GPU_RELAY_FLUSH_NS + 1);
	gpu_relay_end(&fixture->relay, 0, NOW + GPU_RELAY_FLUSH_NS + 2);
	assert_int_equal(fixture->keeper.count, 3);
	assert_int_equal(
		((const struct fbt_gpu_flush *)kept(&fixture->keeper, 2, FBT_EVENT_GPU_FLUSH))
			->records,
		200);
}

static void the_last_flush_is_sent_at_once_and_once(void **state)
{
	struct fbt_gpu_flush flush = {.header = {FBT_EVENT_GPU_FLUSH, 0, sizeof(flush)}};
	struct fixture *fixture = *state;

	for (uint32_t i = 0; i < 100; i++) {
		flush.last = i % 2;
		gpu_relay_record(&fixture->relay, &flush.header, 0, NOW);
	}
	assert_int_equal(fixture->keeper.count, 2);
	assert_int_equal(
		((const struct fbt_gpu_flush *)kept(&fixture->keeper, 0, FBT_EVENT_GPU_FLUSH))
			->last,
		0);
	assert_int_equal(
		((const struct fbt_gpu_flush *)kept(&fixture->keeper, 1, FBT_EVENT_GPU_FLUSH))
			->last,
		1);
}

static void the_end_is_told_once_with_the_totals_there_were(void **state)
{
	struct fbt_gpu_flush flush = {.time_ns = NOW - 5, .records = 5, .ring_lost = 6};
	struct fixture *fixture = *state;
	const struct fbt_gpu_flush *sent;

	relay(fixture, &flush, sizeof(flush), FBT_EVENT_GPU_FLUSH);
	gpu_relay_end(&fixture->relay, 2, NOW);
	gpu_relay_end(&fixture->relay, 2, NOW);
	assert_int_equal(fixture->keeper.count, 2);
	sent = kept(&fixture->keeper, 1, FBT_EVENT_GPU_FLUSH);
	assert_int_equal(sent->tgid, getpid());
	assert_int_equal(sent->last, 1);
	assert_int_equal(sent->time_ns, NOW - 5);
	assert_int_equal(sent->sent_ns, NOW);
	assert_int_equal(sent->records, 5);
	assert_int_equal(sent->ring_lost, 6);
	assert_int_equal(sent->unknown, 2);
}

static void the_end_that_the_shim_told_is_not_told_again(void **state)
{
	struct fbt_gpu_flush flush = {.time_ns = NOW - 5, .last = 1};
	struct fixture *fixture = *state;

	relay(fixture, &flush, sizeof(flush), FBT_EVENT_GPU_FLUSH);
	gpu_relay_end(&fixture->relay, 0, NOW);
	assert_int_equal(fixture->keeper.count, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_clock_sample_is_kept_and_not_sent),
		TEST(work_gets_its_process_and_our_clock),
		TEST(work_without_times_stays_without),
		TEST(calls_get_their_thread),
		TEST(names_and_devices_get_their_process),
		TEST(what_has_not_come_yet_is_not_sent_and_counted),
		TEST(a_flush_gets_the_clock_as_we_know_it),
		TEST(times_of_the_shim_itself_are_monotonic_of_its_namespace),
		TEST(a_flush_says_its_times_on_our_clock),
		TEST(a_flush_was_not_sent_in_the_future),
		TEST(of_flushes_in_a_hurry_one_is_sent),
		TEST(the_last_flush_is_sent_at_once_and_once),
		TEST(the_end_is_told_once_with_the_totals_there_were),
		TEST(the_end_that_the_shim_told_is_not_told_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

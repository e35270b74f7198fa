/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The double of CUPTI finds each client that breaks a rule. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/mman.h>

#include "fake_cupti_fixture.h"

static void record_one(void)
{
	struct fake_work work;

	client.trouble = getenv("TROUBLE");
	begin(kernels_and_calls);
	launch_kernels(1, 0, 1000, &work);
	pause_ms(1);
	client.flush_all(0);
}

static void fill_buffers(void)
{
	struct fake_work work;

	client.trouble = "same";
	begin(kernels);
	for (int i = 0; i < 1000; i++)
		launch_kernels(1, 0, 1000000000, &work);
}

static void write_after_hand_out(void)
{
	struct fake_work work;

	begin(kernels);
	launch_kernels(1, 0, 1000, &work);
	client.last[atoi(getenv("WHERE"))] ^= 1;
	pause_ms(1);
	client.flush_all(0);
}

static void unmap_buffer(void)
{
	struct fake_work work;

	begin(kernels);
	launch_kernels(1, 0, 1000, &work);
	munmap(client.last + BUFFER_BYTES / 2, BUFFER_BYTES / 2);
	pause_ms(1);
	client.flush_all(0);
}

static void promise_zeros(void)
{
	size_t size = 1;
	uint8_t yes = 1;
	struct fake_work work;

	client.dirty = true;
	MUST(client.subscribe(&client.subscriber, NULL, NULL) == 0);
	MUST(client.set_attribute(5, &size, &yes) == 0);
	MUST(client.register_callbacks(request, completed) == 0);
	MUST(client.enable(10) == 0);
	launch_kernels(1, 0, 1000, &work);
}

static void finalize(void)
{
	client.finalize();
}

static void use_in_child(void)
{
	int status = 0;

	begin(kernels);
	if (fork() == 0) {
		client.flush_all(1);
		_exit(0);
	}
	wait(&status);
	MUST(WIFSIGNALED(status));
	abort();
}

static void leave_enabled(void)
{
	begin(kernels);
	client.unsubscribe(client.subscriber);
}

static void serialize(void)
{
	MUST(client.subscribe(&client.subscriber, NULL, NULL) == 0);
	client.enable(3);
}

static void steal(void)
{
	client.register_callbacks(request, completed);
}

static void use_wrong_clock(void)
{
	struct fake_work work;

	MUST(client.subscribe(&client.subscriber, NULL, NULL) == 0);
	MUST(client.register_timestamp(realtime) == 0);
	launch_kernels(1, 0, 1000, &work);
}

static void change_clock(void)
{
	begin(kernels);
	client.register_timestamp(monotonic);
}

static void flush_in_call(void *userdata, uint32_t domain, uint32_t cbid, const void *data)
{
	client.flush_all(0);
}

static void flush_in_callback(void)
{
	struct fake_work work;

	MUST(client.subscribe(&client.subscriber, (void *)(uintptr_t)flush_in_call, NULL) == 0);
	MUST(client.enable_callback(1, client.subscriber, FAKE_RUNTIME, FAKE_CUDA_LAUNCH) == 0);
	launch_kernels(1, 0, 1000, &work);
}

static void set_late(void)
{
	size_t size = 1;
	uint8_t no = 0;

	begin(kernels);
	MUST(client.set_attribute(9, &size, &no) == 7);
}

static void test_bad_buffers(void **state)
{
	static const char *const null[] = {"TROUBLE=null", "FAKE_CUPTI_VERSION=26", NULL};
	static const char *const crooked[] = {"TROUBLE=crooked", NULL};
	static const char *const record[] = {"WHERE=100", NULL};
	static const char *const behind[] = {"WHERE=60000", NULL};

	expect_abort(record_one, null, "NULL was handed out");
	expect_abort(record_one, crooked, "not aligned");
	expect_abort(fill_buffers, NULL, "that CUPTI still has");
	expect_abort(write_after_hand_out, record, "a record was overwritten");
	expect_abort(write_after_hand_out, behind, "free room was written to");
	expect_abort(unmap_buffer, NULL, "unmapped");
	expect_abort(promise_zeros, NULL, "not zeroed");
}

static void test_bad_calls(void **state)
{
	static const char *const in_request[] = {"TROUBLE=flush in request", NULL};
	static const char *const in_completed[] = {"TROUBLE=flush in completed", NULL};
	static const char *const taken[] = {"FAKE_CUPTI_HOLDER=nsys", NULL};

	expect_abort(record_one, in_request, "called inside of the callback that requests");
	expect_abort(record_one, in_completed, "called inside of the callback that completes");
	expect_abort(flush_in_callback, NULL, "called inside of a callback of the API");
	expect_abort(finalize, NULL, "never on a live server");
	expect_abort(use_in_child, NULL, "in a forked child");
	expect_abort(leave_enabled, NULL, "still enabled");
	expect_abort(serialize, NULL, "serializes");
	expect_abort(steal, taken, "while nsys is subscribed");
	expect_abort(use_wrong_clock, NULL, "not CLOCK_MONOTONIC");
	expect_abort(change_clock, NULL, "the clock was changed");
	expect_good(set_late, NULL, "13");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_buffers),
		cmocka_unit_test(test_bad_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

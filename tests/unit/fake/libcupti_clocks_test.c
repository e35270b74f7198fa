/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The clocks of the double of CUPTI. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fake_cupti_fixture.h"

static void use_realtime(void)
{
	uint64_t before = realtime(), now = 0;
	struct fake_work work;

	MUST(client.get_timestamp(&now) == 0);
	MUST(now > before - 1000000 && now < realtime() + 1000000);
	begin(kernels);
	launch_kernels(1, 0, 1000, &work);
	pause_ms(1);
	MUST(client.flush_all(0) == 0);
	MUST(client.taken[0].start - work.start_ns == client.taken[0].end - work.end_ns);
	MUST(client.taken[0].start > before - 1000000 && client.taken[0].end < realtime());
}

static void use_callback(void)
{
	struct fake_work work;

	MUST(client.subscribe(&client.subscriber, NULL, NULL) == 0);
	MUST(client.register_timestamp(monotonic) == 0);
	if (getenv("TWICE"))
		MUST(client.register_timestamp(monotonic) == 0);
	MUST(client.register_callbacks(request, completed) == 0);
	MUST(client.enable(10) == 0);
	launch_kernels(1, 0, 1000, &work);
	pause_ms(1);
	MUST(client.flush_all(0) == 0);
	MUST(client.count == 1);
	if (getenv("ZERO"))
		MUST(client.taken[0].start == 0 && work.fate == FAKE_ZERO);
	else if (getenv("TWICE"))
		MUST(client.taken[0].start == work.start_ns + 100000000000000ull);
	else
		MUST(client.taken[0].start == work.start_ns && client.taken[0].end == work.end_ns);
}

static void wait_for_clock(void)
{
	struct fake_work works[10];
	uint64_t now = 0;

	begin(kernels);
	MUST(client.get_timestamp(&now) == 0);
	MUST(now < realtime() - 1000000000ull);
	launch_kernels(10, 0, 1000, works);
	pause_ms(1);
	MUST(client.flush_all(0) == 0);
	MUST(client.get_timestamp(&now) == 0);
	MUST(now > realtime() - 1000000000ull);
}

static void test_clocks(void **state)
{
	static const char *const good[] = {"FAKE_CUPTI_VERSION=130100", NULL};
	static const char *const zero[] = {"ZERO=1", NULL};
	static const char *const twice[] = {"TWICE=1", "FAKE_CUPTI_VERSION=23", NULL};
	static const char *const settles[] = {"FAKE_CUPTI_CLOCK_SETTLES=10", NULL};

	expect_good(use_realtime, NULL, "13");
	expect_good(use_callback, good, "13");
	expect_good(use_callback, zero, "13");
	expect_good(use_callback, zero, "12");
	expect_good(use_callback, twice, "12");
	expect_good(wait_for_clock, settles, "13");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which events stay open when a thread is looked at no more. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "stream/fault_sites.h"
#include "stream/sampler.h"

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void a_thread_is_sampled_no_more(void **state)
{
	struct sampler sampler = {.count = 3};
	int fds[3];

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		sampler.tids[i] = 10 + i;
		sampler.fds[i] = fds[i] = eventfd(0, EFD_CLOEXEC);
	}
	sampler_remove(&sampler, 10);
	sampler_remove(&sampler, 0);
	assert_int_equal(sampler.count, 2);
	assert_false(is_open(fds[0]));
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(sampler.fds[i], fds[sampler.tids[i] - 10]);
	assert_true(is_open(fds[1]) && is_open(fds[2]));
	sampler_clear(&sampler);
	assert_false(is_open(fds[1]) || is_open(fds[2]));
}

static void faults_of_a_thread_are_counted_no_more(void **state)
{
	struct fault_events events = {.count = 2};
	int fds[2][2];

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		events.tids[i] = 10 + i;
		for (uint32_t k = 0; k < 2; k++)
			events.fds[i][k] = fds[i][k] = eventfd(0, EFD_CLOEXEC);
	}
	fault_events_remove(&events, -1, 10);
	fault_events_remove(&events, -1, 10);
	assert_int_equal(events.count, 1);
	assert_int_equal(events.tids[0], 11);
	assert_memory_equal(events.fds[0], fds[1], sizeof(fds[1]));
	assert_false(is_open(fds[0][0]) || is_open(fds[0][1]));
	assert_true(is_open(fds[1][0]) && is_open(fds[1][1]));
	fault_events_clear(&events, -1);
	assert_false(is_open(fds[1][0]) || is_open(fds[1][1]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_is_sampled_no_more),
		cmocka_unit_test(faults_of_a_thread_are_counted_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

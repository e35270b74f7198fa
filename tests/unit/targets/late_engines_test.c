/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* How long the looks at processes that may become an engine keep a turn. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child_fixture.h"
#include "base/clock.h"
#include "targets/late_engines.h"
#include "targets/steps_found.h"

/* A look at one takes some 0.1 ms. */
#define CHILDREN 400

static void begin(struct late_engines *late, pid_t children[CHILDREN])
{
	for (size_t i = 0; i < CHILDREN; i++) {
		children[i] = child_fork();
		assert_true(children[i] >= 0);
		while (!children[i])
			pause();
		late_engines__expect(late, (uint32_t)children[i]);
	}
}

static void end(const pid_t children[CHILDREN])
{
	for (size_t i = 0; i < CHILDREN; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
}

static void a_turn_does_not_look_at_all_at_once(void **state)
{
	struct options options = {.all = true};
	struct live live = {.options = &options, .traced = traced_set__new(NULL, NULL)};
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC) + 60 * NS_PER_S, begin_ns, first_ns, all_ns;
	struct late_engines *late = late_engines__new(&live, NULL, NULL);
	pid_t children[CHILDREN];

	(void)state;
	live.found = steps_found__new(&live);
	assert_true(late && live.found && live.traced);
	begin(late, children);
	begin_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	late_engines__turn(late, now_ns);
	first_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns;
	for (size_t i = 0; i < CHILDREN; i++)
		late_engines__turn(late, now_ns);
	all_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns;
	end(children);
	late_engines__free(late);
	steps_found__free(live.found);
	traced_set__free(live.traced);
	if (first_ns * 2 > all_ns)
		fail_msg("the first turn took %llu of %llu us", (unsigned long long)first_ns / 1000,
			 (unsigned long long)all_ns / 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_turn_does_not_look_at_all_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>

#include "look/chain.h"

#define THREADS 6

struct fixture {
	look_task_vec tasks;
	struct lock_wait locks[THREADS];
};

/* Threads 101 … 106 see themselves as 1 … 6; all are asleep in a read. */
static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	for (uint32_t i = 0; i < THREADS; i++) {
		struct look_task task = {
			.seen = {.tid = 101 + i, .ns_tid = 1 + i, .state = 1, .nr = SYS_read}};

		assert_int_equal(vec_push(&fixture->tasks, task), 0);
	}
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	vec_free(&fixture->tasks);
	free(fixture);
	return 0;
}

/* The thread of an index waits for a mutex that a thread holds. */
static void let_wait(struct fixture *fixture, size_t index, uint32_t owner)
{
	fixture->locks[index] = (struct lock_wait){.op = FUTEX_WAIT_PRIVATE,
						   .value = 2,
						   .words = {2, 1, owner, 1, 0},
						   .word_count = 5};
}

static void follow(struct fixture *fixture, struct chain *chain)
{
	chain_follow(&fixture->tasks, fixture->locks, NULL, 0, chain);
}

static void owners_are_followed_by_what_they_call_themselves(void **state)
{
	struct fixture *fixture = *state;
	struct chain chain;

	follow(fixture, &chain);
	assert_int_equal(chain.count, 1);
	let_wait(fixture, 0, 3);
	let_wait(fixture, 2, 5);
	follow(fixture, &chain);
	assert_int_equal(chain.count, 3);
	assert_int_equal(chain.tasks[1], 2);
	assert_int_equal(chain.tasks[2], 4);
	assert_false(chain.is_cycle);
}

static void a_chain_ends_after_three_holders(void **state)
{
	struct fixture *fixture = *state;
	struct chain chain;

	for (uint32_t i = 0; i + 1 < THREADS; i++)
		let_wait(fixture, i, i + 2);
	follow(fixture, &chain);
	assert_int_equal(chain.count, 1 + FBT_LOOK_HOLDERS);
	assert_false(chain.is_cycle);
}

static void a_deadlock_ends_it_too(void **state)
{
	struct fixture *fixture = *state;
	struct chain chain;

	let_wait(fixture, 0, 2);
	let_wait(fixture, 1, 1);
	follow(fixture, &chain);
	assert_int_equal(chain.count, 2);
	assert_true(chain.is_cycle);
	let_wait(fixture, 0, 1);
	follow(fixture, &chain);
	assert_int_equal(chain.count, 1);
	assert_true(chain.is_cycle);
}

static void an_owner_that_is_no_thread_of_the_process_is_none(void **state)
{
	struct fixture *fixture = *state;
	struct chain chain;

	let_wait(fixture, 0, 103);
	follow(fixture, &chain);
	assert_int_equal(chain.count, 1);
}

static void a_lock_counts_only_if_its_waiter_is_in_a_function_that_takes_one(void **state)
{
	struct fixture *fixture = *state;
	enum lock_caller callers[THREADS] = {LOCK_CALLER_MUTEX, LOCK_CALLER_OTHER};
	struct chain chain;

	let_wait(fixture, 0, 2);
	let_wait(fixture, 1, 3);
	follow(fixture, &chain);
	assert_int_equal(chain.count, 3);
	chain_shorten(&fixture->tasks, fixture->locks, callers, &chain);
	assert_int_equal(chain.count, 2);
	/* What has another owner now is cut off too. */
	let_wait(fixture, 0, 4);
	chain_shorten(&fixture->tasks, fixture->locks, callers, &chain);
	assert_int_equal(chain.count, 1);
}

static void what_a_thread_does_is_known_by_its_state(void **state)
{
	struct look_task task = {.seen = {.state = 1, .nr = SYS_read}};

	assert_int_equal(look_doing(&task), FBT_DOING_CALL);
	task.seen.nr = -1;
	assert_int_equal(look_doing(&task), FBT_DOING_KERNEL);
	task.seen.state = 8;
	assert_int_equal(look_doing(&task), FBT_DOING_STOPPED);
	task.seen.state = 0;
	assert_int_equal(look_doing(&task), FBT_DOING_CPU_WAIT);
	task.seen.on_cpu = 1;
	assert_int_equal(look_doing(&task), FBT_DOING_CPU);
	/* The number is that of its last call, which it may have left. */
	task.seen.nr = SYS_read;
	assert_false(look_in_call(&task));
	task.call_ns = 1;
	assert_true(look_in_call(&task));
}

static void memory_is_not_read_while_its_map_may_be_locked(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_look_task *seen = &fixture->tasks.items[3].seen;

	assert_false(look_map_is_locked(&fixture->tasks));
	seen->state = 2;
	assert_false(look_map_is_locked(&fixture->tasks));
	seen->nr = SYS_munmap;
	assert_true(look_map_is_locked(&fixture->tasks));
	seen->nr = SYS_clone;
	assert_true(look_map_is_locked(&fixture->tasks));
	seen->state = 0x402; /* idle */
	assert_false(look_map_is_locked(&fixture->tasks));
	seen->state = 2;
	seen->nr = -1; /* a page fault */
	assert_false(look_map_is_locked(&fixture->tasks));
}

int main(void)
{
#define FACT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		FACT(owners_are_followed_by_what_they_call_themselves),
		FACT(a_chain_ends_after_three_holders),
		FACT(a_deadlock_ends_it_too),
		FACT(an_owner_that_is_no_thread_of_the_process_is_none),
		FACT(a_lock_counts_only_if_its_waiter_is_in_a_function_that_takes_one),
		cmocka_unit_test(what_a_thread_does_is_known_by_its_state),
		FACT(memory_is_not_read_while_its_map_may_be_locked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

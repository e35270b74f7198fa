/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Looks at a child of this process, whose threads are made up. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child_fixture.h"
#include "look/look.h"
#include "model/syscalls.h"
#include "record_keeper.h"
#include "stacks/registers.h"
#include "stacks/stacks.h"

/* One more than those whose stacks are read together. */
#define THREADS 65

struct fixture {
	struct record_keeper keeper;
	struct record_output output;
	struct stacks *stacks;
	struct look *look;
	pid_t child;
	uint64_t stack[64]; /* of all threads */
	uint32_t state;	    /* of all threads but the first */
	int lists;
	bool runs_later; /* they have run when the threads are listed for the third time */
	bool ends_later; /* the child ends when code is sent after the second time */
};

__attribute__((noinline)) void look_test_place(void);
__attribute__((noinline)) void look_test_place(void)
{
	__asm__ volatile("nop\n\tnop" ::: "memory");
}

static void end_child(struct fixture *fixture)
{
	if (!fixture->child)
		return;
	assert_int_equal(kill(fixture->child, SIGKILL), 0);
	assert_int_equal(waitpid(fixture->child, NULL, 0), fixture->child);
	fixture->child = 0;
}

static void emit(void *ctx, const void *data, size_t size)
{
	bool is_code = ((const struct fbt_header *)data)->type == FBT_EVENT_CODE;
	struct fixture *fixture = ctx;

	keep_record(&fixture->keeper, data, size);
	if (is_code && fixture->ends_later && fixture->lists == 2)
		end_child(fixture);
}

/* The first thread is elsewhere, so its code is sent before that of the others. */
static int list(void *ctx, uint32_t tgid, look_task_vec *tasks)
{
	struct fixture *fixture = ctx;

	fixture->lists++;
	tasks->count = 0;
	for (uint32_t i = 0; i < THREADS; i++) {
		struct look_task task = {.seen = {.tid = tgid + i,
						  .ns_tid = tgid + i,
						  .state = i ? fixture->state : 1,
						  .switches = 1,
						  .nr = SYS_nanosleep}};

		if (i && fixture->runs_later && fixture->lists == 3)
			task.seen.switches = 2;
		task.seen.registers[sp_of(syscalls_arch())] = (uint64_t)fixture->stack;
		task.seen.registers[pc_of(syscalls_arch())] = (uint64_t)look_test_place + !i;
		assert_int_equal(vec_push(tasks, task), 0);
	}
	return 0;
}

static bool is_open(void *ctx, const struct look_wait *wait)
{
	(void)ctx;
	(void)wait;
	return true;
}

static void name(void *ctx, uint32_t tgid, uint32_t tid)
{
	(void)ctx;
	(void)tgid;
	(void)tid;
}

static void held(void *ctx, const struct look_wait *wait, const struct look_held *seen)
{
	(void)ctx;
	(void)wait;
	(void)seen;
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	const struct look_source source = {list, is_open, name, held, fixture};

	if (!fixture)
		return -1;
	fixture->state = 1;
	fixture->output = (struct record_output){.emit = emit, .ctx = fixture};
	fixture->stacks = stacks__new(&fixture->output, &(struct symbol_files){NULL, 0});
	fixture->look = look__new(fixture->stacks, &fixture->output, &source);
	fixture->child = child_fork();
	while (!fixture->child)
		pause();
	*state = fixture;
	return fixture->look && fixture->child > 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	end_child(fixture);
	look__free(fixture->look);
	stacks__free(fixture->stacks);
	free(fixture);
	return 0;
}

static int look_at_hang(struct fixture *fixture)
{
	const struct look_wait wait = {.tgid = (uint32_t)fixture->child,
				       .tid = (uint32_t)fixture->child,
				       .start_ns = 1,
				       .now_ns = 2,
				       .is_hang = true};

	return look__take(fixture->look, &wait);
}

static const struct fbt_look *last_look(const struct fixture *fixture)
{
	return kept(&fixture->keeper, fixture->keeper.count - 1, FBT_EVENT_LOOK);
}

static void threads_that_sleep_on_have_stacks(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(look_at_hang(fixture), 0);
	assert_int_equal(last_look(fixture)->threads, THREADS);
	assert_int_equal(last_look(fixture)->stackless, 0);
}

static void a_stack_is_a_sample_if_its_thread_ran_while_stacks_were_read(void **state)
{
	struct fixture *fixture = *state;
	const struct fbt_look_thread *group;

	fixture->state = 0;
	fixture->runs_later = true;
	assert_int_equal(look_at_hang(fixture), 0);
	assert_int_equal(last_look(fixture)->stackless, 0);
	group = kept(&fixture->keeper, fixture->keeper.count - 2, FBT_EVENT_LOOK_THREAD);
	assert_int_equal(group->doing, FBT_DOING_CPU_WAIT);
	assert_int_equal(group->threads, THREADS - 1);
	assert_int_equal(group->header.flags & FBT_LOOK_SAMPLE, FBT_LOOK_SAMPLE);
}

static void stacks_of_threads_that_went_on_are_dropped_if_not_all_can_be_read(void **state)
{
	struct fixture *fixture = *state;

	fixture->runs_later = fixture->ends_later = true;
	assert_int_equal(look_at_hang(fixture), -ESRCH);
	assert_int_equal(fixture->lists, 3);
	assert_int_equal(last_look(fixture)->stackless, THREADS - 1);
}

int main(void)
{
#define FACT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		FACT(threads_that_sleep_on_have_stacks),
		FACT(a_stack_is_a_sample_if_its_thread_ran_while_stacks_were_read),
		FACT(stacks_of_threads_that_went_on_are_dropped_if_not_all_can_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

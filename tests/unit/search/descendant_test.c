/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "search/descendant.h"
#include "child_fixture.h"

struct fixture {
	struct options options;
	pid_t child;
	pid_t grandchild; /* its own child */
};

/* Only for the search, which finds it in this program: the child is a copy of it. */
__attribute__((noinline, used)) static int wanted_step(int value)
{
	__asm__ volatile("" ::: "memory");
	return value + 1;
}

static void add_step(struct fixture *fixture, const char *text)
{
	struct step_spec spec;

	assert_int_equal(step_spec_parse(&spec, text), 0);
	assert_int_equal(vec_push(&fixture->options.specs, spec), 0);
}

_Noreturn static void run_child(int output)
{
	pid_t child = child_fork();

	if (child && write(output, &child, sizeof(child)) != sizeof(child))
		_exit(1);
	for (;;)
		pause();
}

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	int ends[2];
	ssize_t size;

	if (!fixture)
		return -1;
	*state = fixture;
	options_init(&fixture->options);
	if (pipe(ends))
		return -1;
	fixture->child = child_fork();
	if (fixture->child == 0)
		run_child(ends[1]);
	close(ends[1]);
	size = read(ends[0], &fixture->grandchild, sizeof(fixture->grandchild));
	close(ends[0]);
	return size == sizeof(fixture->grandchild) ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	kill(fixture->child, SIGKILL);
	waitpid(fixture->child, NULL, 0);
	options_clear(&fixture->options);
	free(fixture);
	return 0;
}

static bool find(struct fixture *fixture, uint32_t tgid, bool any_file, struct descendant *found)
{
	const struct descendant_roots roots = {&tgid, 1};

	return descendant_find(&fixture->options, &roots, any_file, found);
}

static void a_child_with_the_function_is_found(void **state)
{
	struct fixture *fixture = *state;
	struct descendant found;

	assert_int_equal(wanted_step(1), 2);
	add_step(fixture, "wanted_step");
	assert_true(find(fixture, (uint32_t)getpid(), true, &found));
	assert_int_equal(found.tgid, fixture->child);
	assert_true(found.is_child);
	assert_true(process_has_step(&fixture->options, (uint32_t)getpid()));
}

static void a_process_below_a_child_is_found(void **state)
{
	struct fixture *fixture = *state;
	struct descendant found;

	add_step(fixture, "wanted_step");
	/* The child is traced already. */
	assert_int_equal(vec_push(&fixture->options.pids, (uint32_t)fixture->child), 0);
	assert_true(find(fixture, (uint32_t)getpid(), true, &found));
	assert_int_equal(found.tgid, fixture->grandchild);
	assert_false(found.is_child);
}

/* The first of them has none. */
static void it_is_told_of_which_process_it_is_one(void **state)
{
	struct fixture *fixture = *state;
	const uint32_t tgids[] = {(uint32_t)fixture->grandchild, (uint32_t)fixture->child};
	const struct descendant_roots roots = {tgids, 2};
	struct descendant found;

	add_step(fixture, "wanted_step");
	assert_true(descendant_find(&fixture->options, &roots, true, &found));
	assert_int_equal(found.tgid, fixture->grandchild);
	assert_int_equal(found.root_tgid, fixture->child);
}

static void a_process_without_children_has_none(void **state)
{
	struct fixture *fixture = *state;
	struct descendant found;

	add_step(fixture, "wanted_step");
	assert_false(find(fixture, (uint32_t)fixture->grandchild, true, &found));
	assert_int_equal(found.tgid, 0);
}

static void a_child_without_the_function_is_none(void **state)
{
	struct fixture *fixture = *state;
	struct descendant found;

	add_step(fixture, "no_such_function_anywhere");
	assert_false(find(fixture, (uint32_t)getpid(), true, &found));
	assert_false(process_has_step(&fixture->options, (uint32_t)getpid()));
}

static void where_any_file_is_too_many_only_those_named_like_an_engine_are_read(void **state)
{
	struct fixture *fixture = *state;
	struct descendant found;

	add_step(fixture, "wanted_step");
	assert_false(find(fixture, (uint32_t)getpid(), false, &found));
}

static void steps_are_given_ready_to_paste(void **state)
{
	struct fixture *fixture = *state;
	char text[64];

	descendant_steps(text, sizeof(text), &fixture->options);
	assert_string_equal(text, "");
	add_step(fixture, "decode");
	add_step(fixture, "Turn::go(int)");
	descendant_steps(text, sizeof(text), &fixture->options);
	assert_string_equal(text, " --step 'decode' --step 'Turn::go(int)'");
	/* One that does not fit is left out. */
	descendant_steps(text, sizeof(" --step 'decode'"), &fixture->options);
	assert_string_equal(text, " --step 'decode'");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_child_with_the_function_is_found),
		TEST(a_process_below_a_child_is_found),
		TEST(it_is_told_of_which_process_it_is_one),
		TEST(a_process_without_children_has_none),
		TEST(a_child_without_the_function_is_none),
		TEST(where_any_file_is_too_many_only_those_named_like_an_engine_are_read),
		TEST(steps_are_given_ready_to_paste),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

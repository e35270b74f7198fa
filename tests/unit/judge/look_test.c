/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which stack of a call is shown; what threads were in, in words, is in tests/golden/looks.events.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include "judge/look.h"

enum { TID = 7, FUTEX = 202, READ = 0, NATIVE = 1, SCRIPT = 2, EVAL = 3 };

#define MS UINT64_C(1000000)

struct fixture {
	struct window *window;
	struct step step;
	struct fbt_stack stack; /* the result */
};

static void know(struct window *window, uint32_t id, const char *function, uint16_t flags)
{
	struct fbt_code code = {.header.flags = flags, .id = id};

	assert_int_equal(window__add_code(window, &code, (const char *const[]){function, "/x", ""}),
			 0);
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->window = window__new();
	assert_non_null(fixture->window);
	know(fixture->window, NATIVE, "take", 0);
	know(fixture->window, SCRIPT, "Engine.forward", FBT_CODE_SCRIPT);
	know(fixture->window, EVAL, "_PyEval_EvalFrameDefault", 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	vec_free(&fixture->step.calls);
	vec_free(&fixture->step.stacks);
	vec_free(&fixture->step.looks);
	window__free(fixture->window);
	free(fixture);
	return 0;
}

static void add_call(struct fixture *fixture, uint32_t nr, uint64_t start_ns, uint64_t ns,
		     int64_t ret)
{
	struct fbt_call call = {
		.tid = TID, .nr = nr, .start_ns = start_ns, .duration_ns = ns, .ret = ret};

	assert_int_equal(vec_push(&fixture->step.calls, call), 0);
}

static void add_copy(struct fixture *fixture, uint64_t start_ns, uint32_t code)
{
	struct fbt_stack stack = {.tid = TID, .start_ns = start_ns, .count = 1, .codes = {code}};

	assert_int_equal(vec_push(&fixture->step.stacks, stack), 0);
}

static void add_look(struct fixture *fixture, uint64_t start_ns, uint32_t code, uint16_t flags)
{
	struct fbt_look_thread look = {.header.flags = flags,
				       .tid = TID,
				       .nr = FUTEX,
				       .start_ns = start_ns,
				       .time_ns = start_ns + 20 * MS,
				       .owner = TID,
				       .count = 1,
				       .codes = {code}};

	assert_int_equal(vec_push(&fixture->step.looks, look), 0);
}

/* The innermost code of a call; 0: no stack is known. */
static uint32_t code_of(struct fixture *fixture, size_t call)
{
	bool is_known = look_call_stack(&fixture->step, fixture->window,
					&fixture->step.calls.items[call], &fixture->stack);

	assert_int_equal(is_known, fixture->stack.count != 0);
	return is_known ? fixture->stack.codes[0] : 0;
}

static void only_a_look_has_functions_of_scripts(void **state)
{
	struct fixture *fixture = *state;

	add_call(fixture, FUTEX, MS, 40 * MS, 0);
	assert_int_equal(code_of(fixture, 0), 0);
	add_copy(fixture, MS, EVAL);
	assert_int_equal(code_of(fixture, 0), EVAL);
	add_look(fixture, MS, SCRIPT, 0);
	assert_int_equal(code_of(fixture, 0), SCRIPT);
}

static void a_copy_is_as_good_as_a_look_without_scripts(void **state)
{
	struct fixture *fixture = *state;

	add_call(fixture, FUTEX, MS, 40 * MS, 0);
	add_look(fixture, MS, NATIVE, 0);
	assert_int_equal(code_of(fixture, 0), NATIVE);
	add_copy(fixture, MS, EVAL);
	assert_int_equal(code_of(fixture, 0), EVAL);
}

static void looks_at_other_threads_are_none_at_the_call(void **state)
{
	struct fixture *fixture = *state;

	add_call(fixture, FUTEX, MS, 40 * MS, 0);
	add_look(fixture, MS, SCRIPT, FBT_LOOK_GROUP);
	add_look(fixture, MS, SCRIPT, 0);
	fixture->step.looks.items[1].depth = 1;
	add_look(fixture, 2 * MS, SCRIPT, 0);
	assert_int_equal(code_of(fixture, 0), 0);
}

/* The third call is the last of the wait: the GIL was taken. */
static void a_look_at_a_wait_for_the_gil_is_good_for_its_calls(void **state)
{
	struct fixture *fixture = *state;

	add_call(fixture, FUTEX, 10 * MS, 5 * MS, -ETIMEDOUT);
	add_call(fixture, FUTEX, 15 * MS + 9, 5 * MS, -ETIMEDOUT);
	add_call(fixture, FUTEX, 21 * MS, 30 * MS, 0);
	add_call(fixture, FUTEX, 51 * MS + 9, 5 * MS, -ETIMEDOUT);
	add_call(fixture, FUTEX, 59 * MS, 5 * MS, 0);
	add_copy(fixture, 51 * MS + 9, EVAL);
	add_look(fixture, 10 * MS, SCRIPT, FBT_LOOK_GIL);
	assert_int_equal(code_of(fixture, 0), SCRIPT);
	assert_int_equal(code_of(fixture, 1), SCRIPT);
	assert_int_equal(code_of(fixture, 2), SCRIPT);
	assert_int_equal(fixture->stack.start_ns, 21 * MS);
	assert_int_equal(code_of(fixture, 3), EVAL);
	assert_int_equal(code_of(fixture, 4), 0);
}

static void other_calls_end_a_wait_for_the_gil(void **state)
{
	struct fixture *fixture = *state;

	add_call(fixture, FUTEX, 10 * MS, 5 * MS, -ETIMEDOUT);
	add_call(fixture, READ, 15 * MS + 9, MS, 0);
	add_call(fixture, FUTEX, 16 * MS + 99, 5 * MS, 0);
	add_look(fixture, 10 * MS, SCRIPT, FBT_LOOK_GIL);
	assert_int_equal(code_of(fixture, 0), SCRIPT);
	assert_int_equal(code_of(fixture, 1), 0);
	assert_int_equal(code_of(fixture, 2), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_a_look_has_functions_of_scripts, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_copy_is_as_good_as_a_look_without_scripts, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(looks_at_other_threads_are_none_at_the_call, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_look_at_a_wait_for_the_gil_is_good_for_its_calls,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(other_calls_end_a_wait_for_the_gil, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

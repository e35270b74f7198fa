/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which stack of a slow call is folded; the lines are in tests/golden. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include "output/folded.h"

#define MS UINT64_C(1000000)

enum { EVAL = 1, FORWARD, STEP, START };

struct fixture {
	struct window *window;
	struct step step;
	struct sink *sink;
	FILE *out;
	char *text;
	size_t size;
};

static void know(struct window *window, uint32_t id, const char *function, uint16_t flags)
{
	struct fbt_code code = {.header.flags = flags, .id = id};

	assert_int_equal(window__add_code(window, &code, (const char *const[]){function, "/x", ""}),
			 0);
}

/* A step with one call of 40 ms, whose copied stack has the interpreter only. */
static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct fbt_stack copy = {.tid = 7, .start_ns = MS, .count = 1, .codes = {EVAL}};
	struct fbt_call call = {.tid = 7, .start_ns = MS, .duration_ns = 40 * MS};

	assert_non_null(fixture);
	fixture->window = window__new();
	assert_non_null(fixture->window);
	fixture->window->kinds[1].name = strdup("Engine.step");
	fixture->window->kind_known[1] = true;
	know(fixture->window, EVAL, "_PyEval_EvalFrameDefault", 0);
	know(fixture->window, FORWARD, "Engine.forward", FBT_CODE_SCRIPT);
	know(fixture->window, STEP, "Engine.step", FBT_CODE_SCRIPT);
	know(fixture->window, START, "Thread._bootstrap", FBT_CODE_SCRIPT);
	fixture->step.record.kind = 1;
	assert_int_equal(vec_push(&fixture->step.calls, call), 0);
	assert_int_equal(vec_push(&fixture->step.stacks, copy), 0);
	fixture->out = open_memstream(&fixture->text, &fixture->size);
	fixture->sink = sink_folded__new(fixture->out);
	assert_non_null(fixture->sink);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	fixture->sink->free(fixture->sink);
	fclose(fixture->out);
	free(fixture->text);
	vec_free(&fixture->step.calls);
	vec_free(&fixture->step.stacks);
	vec_free(&fixture->step.looks);
	window__free(fixture->window);
	free(fixture);
	return 0;
}

static void add_look(struct fixture *fixture)
{
	struct fbt_look_thread look = {.tid = 7,
				       .start_ns = MS,
				       .time_ns = 21 * MS,
				       .owner = 7,
				       .count = 3,
				       .codes = {FORWARD, STEP, START}};

	assert_int_equal(vec_push(&fixture->step.looks, look), 0);
}

static void expect(struct fixture *fixture, const char *text)
{
	struct sink *sink = fixture->sink;

	fixture->window->record.arch = FBT_ARCH_X86_64;
	assert_int_equal(sink->write_step(sink, fixture->window, &fixture->step), 0);
	assert_int_equal(sink->finish(sink, fixture->window, NULL), 0);
	assert_string_equal(fixture->text, text);
}

static void without_a_look_it_is_the_copied_one(void **state)
{
	expect(*state, "Engine.step;_PyEval_EvalFrameDefault;[read] 40000\n");
}

/* Up to the function of the step, though scripts are read as far as the thread's first one. */
static void functions_of_scripts_are_preferred(void **state)
{
	struct fixture *fixture = *state;

	add_look(fixture);
	expect(fixture, "Engine.step;Engine.forward;[read] 40000\n");
}

static void a_look_alone_is_a_stack(void **state)
{
	struct fixture *fixture = *state;

	add_look(fixture);
	fixture->step.stacks.count = 0;
	expect(fixture, "Engine.step;Engine.forward;[read] 40000\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(without_a_look_it_is_the_copied_one, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(functions_of_scripts_are_preferred, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_look_alone_is_a_stack, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

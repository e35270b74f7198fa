/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/event.h"
#include "model/stack_table.h"

struct fixture {
	struct stack_table table;
	struct step step; /* of thread 7, from 1000 to 2000 */
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	fixture->table.window = window__new();
	fixture->step.record =
		(struct fbt_step){.tgid = 7, .tid = 7, .start_ns = 1000, .end_ns = 2000};
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	step_clear(&fixture->step);
	window__free(fixture->table.window);
	stack_table_clear(&fixture->table);
	free(fixture);
	return 0;
}

static void add(struct fixture *fixture, uint32_t tid, uint64_t start_ns)
{
	struct fbt_stack stack = {.header = {FBT_EVENT_STACK, 0, sizeof(stack)},
				  .tgid = 7,
				  .tid = tid,
				  .owner = tid,
				  .start_ns = start_ns,
				  .count = 1,
				  .codes = {1}};

	assert_int_equal(stack_table_add(&fixture->table, &stack.header), 0);
}

static void a_step_gets_the_stacks_of_its_calls(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, 7, 1500);
	add(fixture, 8, 1500);
	add(fixture, 7, 1900);
	add(fixture, 7, 2500);
	stack_table_join(&fixture->table, &fixture->step);
	assert_int_equal(fixture->step.stacks.count, 2);
	assert_int_equal(fixture->step.stacks.items[0].start_ns, 1500);
	assert_int_equal(fixture->step.stacks.items[1].start_ns, 1900);
	/* Those of another thread, and of a later step, stay. */
	assert_int_equal(fixture->table.stacks.count, 2);
}

static void stacks_of_a_step_that_was_lost_are_dropped(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, 7, 900);
	stack_table_join(&fixture->table, &fixture->step);
	assert_int_equal(fixture->step.stacks.count, 0);
	assert_int_equal(fixture->table.stacks.count, 0);
}

static void there_are_never_too_many(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t i = 0; i < 5000; i++)
		add(fixture, 8, 1 + i);
	assert_int_equal(fixture->table.stacks.count, 1024);
	assert_int_equal(fixture->table.stacks.items[1023].start_ns, 5000);
}

static void places_of_code_go_to_the_window(void **state)
{
	struct fixture *fixture = *state;
	struct {
		struct fbt_code code;
		char strings[24];
	} record = {{{FBT_EVENT_CODE, 0, sizeof(record)}, 5, 7, 0x1234, 0x10},
		    "step\0/bin/engine\0ab12\0"};
	const struct fbt_header *event;
	const struct code *code;

	assert_int_equal(decode_event(&record, sizeof(record), &event), sizeof(record));
	assert_int_equal(stack_table_add(&fixture->table, event), 0);
	code = window__code(fixture->table.window, 5);
	assert_non_null(code);
	assert_string_equal(code->function, "step");
	assert_string_equal(code->path, "/bin/engine");
	assert_string_equal(code->build_id, "ab12");
	assert_int_equal(code->record.address, 0x1234);
	assert_null(window__code(fixture->table.window, 4));
}

static void places_without_room_are_counted(void **state)
{
	struct fixture *fixture = *state;
	const struct window *window = fixture->table.window;
	struct fbt_stack stack = {.header = {FBT_EVENT_STACK, 0, sizeof(stack)},
				  .tgid = 7,
				  .tid = 7,
				  .count = 3,
				  .codes = {0, 1, 0}};

	assert_int_equal(stack_table_add(&fixture->table, &stack.header), 0);
	assert_int_equal(window->unkept_records, 2);
	/* Of a sample the first one may have no name. */
	stack.header.flags = FBT_STACK_SAMPLED;
	assert_int_equal(stack_table_add(&fixture->table, &stack.header), 0);
	assert_int_equal(window->unkept_records, 3);
}

static void a_stack_without_frames_or_with_too_many_is_damaged(void **state)
{
	struct fbt_stack stack = {.header = {FBT_EVENT_STACK, 0, sizeof(stack)}, .tgid = 7};
	const struct fbt_header *event;

	(void)state;
	assert_int_equal(decode_event(&stack, sizeof(stack), &event), -EBADMSG);
	stack.count = FBT_STACK_FRAMES;
	assert_int_equal(decode_event(&stack, sizeof(stack), &event), sizeof(stack));
	stack.count = FBT_STACK_FRAMES + 1;
	assert_int_equal(decode_event(&stack, sizeof(stack), &event), -EBADMSG);
	stack.count = 1;
	stack.nr = FBT_NR_COUNT;
	assert_int_equal(decode_event(&stack, sizeof(stack), &event), -EBADMSG);
}

int main(void)
{
#define FACT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		FACT(a_step_gets_the_stacks_of_its_calls),
		FACT(stacks_of_a_step_that_was_lost_are_dropped),
		FACT(there_are_never_too_many),
		FACT(places_of_code_go_to_the_window),
		FACT(places_without_room_are_counted),
		cmocka_unit_test(a_stack_without_frames_or_with_too_many_is_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/event.h"
#include "model/look_table.h"

struct fixture {
	struct look_table table;
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
	look_table_clear(&fixture->table);
	free(fixture);
	return 0;
}

static struct fbt_look_thread thread(uint32_t tid, uint64_t start_ns, uint16_t flags)
{
	return (struct fbt_look_thread){
		.header = {FBT_EVENT_LOOK_THREAD, flags, sizeof(struct fbt_look_thread)},
		.tgid = 7,
		.tid = tid,
		.start_ns = start_ns,
		.time_ns = start_ns + 20,
		.owner = tid,
		.threads = 1};
}

static void add(struct fixture *fixture, uint32_t tid, uint64_t start_ns, uint16_t flags)
{
	struct fbt_look_thread record = thread(tid, start_ns, flags);

	assert_int_equal(look_table_add(&fixture->table, &record.header), 0);
}

static void a_step_gets_the_looks_at_its_calls(void **state)
{
	struct fixture *fixture = *state;

	add(fixture, 7, 500, 0);
	add(fixture, 7, 1500, 0);
	add(fixture, 8, 1500, 0);
	add(fixture, 7, 2500, 0);
	look_table_join(&fixture->table, &fixture->step);
	assert_int_equal(fixture->step.looks.count, 1);
	assert_int_equal(fixture->step.looks.items[0].start_ns, 1500);
	/* That of an earlier step is dropped, those of others stay. */
	assert_int_equal(fixture->table.threads.count, 2);
}

static void a_look_at_a_hang_takes_its_threads(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_look look = {.header = {FBT_EVENT_LOOK, 0, sizeof(look)},
				.tgid = 7,
				.tid = 7,
				.start_ns = 1000,
				.threads = 3};
	struct fbt_hang hang = {.tgid = 7, .tid = 7, .step_start_ns = 1000};
	const struct hang_look *found;

	add(fixture, 7, 1000, FBT_LOOK_HANG);
	add(fixture, 7, 1000, FBT_LOOK_HANG | FBT_LOOK_GROUP);
	add(fixture, 7, 1500, 0);
	assert_null(window__hang_look(fixture->table.window, &hang));
	assert_int_equal(look_table_add(&fixture->table, &look.header), 0);
	found = window__hang_look(fixture->table.window, &hang);
	assert_non_null(found);
	assert_int_equal(found->threads.count, 2);
	assert_int_equal(found->record.threads, 3);
	assert_int_equal(fixture->table.threads.count, 1);
	/* Of very many hangs the last look stands for the further ones. */
	for (uint32_t i = 0; i < 2 * WINDOW_HANGS_MAX; i++) {
		look.start_ns = 2000 + i;
		assert_int_equal(look_table_add(&fixture->table, &look.header), 0);
	}
	assert_int_equal(fixture->table.window->hang_looks.count, WINDOW_HANGS_MAX + 1);
	hang.step_start_ns = look.start_ns;
	assert_non_null(window__hang_look(fixture->table.window, &hang));
}

static void there_are_never_too_many(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t i = 0; i < 3000; i++)
		add(fixture, 7, 1000 + i, 0);
	assert_int_equal(fixture->table.threads.count, 512);
	assert_int_equal(fixture->table.threads.items[511].start_ns, 3999);
}

static void a_thread_that_cannot_be_is_damaged(void **state)
{
	struct fbt_look_thread good = thread(7, 1000, 0), bad;
	const struct fbt_header *event;

	assert_int_equal(decode_event(&good, sizeof(good), &event), sizeof(good));
	bad = good;
	bad.count = FBT_STACK_FRAMES + 1;
	assert_int_equal(decode_event(&bad, sizeof(bad), &event), -EBADMSG);
	bad = good;
	bad.depth = 1 + FBT_LOOK_HOLDERS;
	assert_int_equal(decode_event(&bad, sizeof(bad), &event), -EBADMSG);
	bad.header.flags = FBT_LOOK_GROUP;
	assert_int_equal(decode_event(&bad, sizeof(bad), &event), sizeof(bad));
	bad = good;
	bad.nr = FBT_NR_COUNT;
	assert_int_equal(decode_event(&bad, sizeof(bad), &event), -EBADMSG);
	bad = good;
	bad.doing = FBT_DOING_COUNT;
	assert_int_equal(decode_event(&bad, sizeof(bad), &event), -EBADMSG);
	bad = good;
	bad.threads = 0;
	assert_int_equal(decode_event(&bad, sizeof(bad), &event), -EBADMSG);
	bad = good;
	bad.time_ns = 999;
	assert_int_equal(decode_event(&bad, sizeof(bad), &event), -EBADMSG);
}

int main(void)
{
#define FACT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		FACT(a_step_gets_the_looks_at_its_calls),
		FACT(a_look_at_a_hang_takes_its_threads),
		FACT(there_are_never_too_many),
		cmocka_unit_test(a_thread_that_cannot_be_is_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

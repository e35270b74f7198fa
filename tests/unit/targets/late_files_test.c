/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/mman.h>
#include <unistd.h>

#include "targets/late_files.h"
#include "shared_fixture.h"

#define MS 1000000ull
#define S  (1000 * MS)

/* Of processes that there cannot be. */
#define NOBODY 0x70000000u

struct fixture {
	struct shared *shared;
	struct traced_set *set;
	struct late_files late;
	void *code; /* NULL: none was mapped */
};

static void push_nothing(void *ctx, const void *data, size_t size)
{
	(void)ctx;
	(void)data;
	(void)size;
}

static const struct record_output output = {push_nothing, NULL};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	if (!fixture)
		return -1;
	fixture->shared = shared_new(4, 1, 4);
	fixture->set = traced_set__new(fixture->shared, &output);
	*state = fixture;
	return fixture->set ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	if (fixture->code)
		munmap(fixture->code, (size_t)getpagesize());
	traced_set__free(fixture->set);
	shared_free(fixture->shared);
	free(fixture);
	return 0;
}

static void add_others(struct fixture *fixture, uint32_t count)
{
	size_t before = traced_set__count(fixture->set);

	for (uint32_t i = 0; i < count; i++)
		assert_non_null(traced_set__add(fixture->set, NOBODY + (uint32_t)before + i));
}

/* This process, as it is searched. */
static struct traced *add_self(struct fixture *fixture)
{
	struct traced *traced = traced_set__add(fixture->set, (uint32_t)getpid());

	assert_non_null(traced);
	late_files_note(traced);
	return traced;
}

static void map_code(struct fixture *fixture)
{
	fixture->code = mmap(NULL, (size_t)getpagesize(), PROT_READ | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(fixture->code, MAP_FAILED);
}

/* What a turn finds that begins at that time. */
static struct traced *take_turn(struct fixture *fixture, uint64_t now_ns)
{
	assert_true(late_files_begin(&fixture->late, fixture->set, now_ns));
	return late_files_next(&fixture->late, fixture->set, now_ns);
}

static void a_process_that_has_mapped_code_is_found_until_it_is_searched(void **state)
{
	struct fixture *fixture = *state;
	struct traced *self = add_self(fixture);

	assert_null(take_turn(fixture, 10 * S));
	map_code(fixture);
	assert_ptr_equal(take_turn(fixture, 11 * S), self);
	assert_null(late_files_next(&fixture->late, fixture->set, 11 * S));
	late_files_note(self);
	assert_null(take_turn(fixture, 12 * S));
}

static void there_is_one_turn_a_second(void **state)
{
	struct fixture *fixture = *state;

	assert_true(late_files_begin(&fixture->late, fixture->set, 10 * S));
	assert_false(late_files_begin(&fixture->late, fixture->set, 10 * S + 999 * MS));
	assert_true(late_files_begin(&fixture->late, fixture->set, 11 * S));
}

static void of_many_processes_each_has_its_turn(void **state)
{
	struct fixture *fixture = *state;
	struct traced *self;

	add_others(fixture, 2 * LATE_FILES_LOOKS + 1);
	self = add_self(fixture);
	map_code(fixture);
	assert_null(take_turn(fixture, 10 * S));
	assert_null(take_turn(fixture, 11 * S));
	assert_ptr_equal(take_turn(fixture, 12 * S), self);
	/* From there on again. */
	assert_null(take_turn(fixture, 13 * S));
	assert_null(take_turn(fixture, 14 * S));
	assert_ptr_equal(take_turn(fixture, 15 * S), self);
}

static void a_new_process_does_not_wait_for_its_turn(void **state)
{
	struct fixture *fixture = *state;
	struct traced *self;

	add_others(fixture, 2 * LATE_FILES_LOOKS + 1);
	assert_null(take_turn(fixture, 10 * S));
	self = add_self(fixture);
	self->start_ns = 10 * S + 500 * MS;
	map_code(fixture);
	assert_ptr_equal(take_turn(fixture, 11 * S), self);
}

static void a_process_is_not_new_for_ever(void **state)
{
	struct fixture *fixture = *state;
	struct traced *self;

	add_others(fixture, 2 * LATE_FILES_LOOKS + 1);
	assert_null(take_turn(fixture, 10 * S));
	self = add_self(fixture);
	self->start_ns = 10 * S + 500 * MS;
	map_code(fixture);
	assert_null(take_turn(fixture, 21 * S));
}

static void new_processes_leave_the_others_their_turn(void **state)
{
	struct fixture *fixture = *state;
	struct traced *self = add_self(fixture);

	add_others(fixture, 2 * LATE_FILES_LOOKS);
	for (size_t i = 1; i < traced_set__count(fixture->set); i++)
		traced_set__at(fixture->set, i)->start_ns = 10 * S;
	map_code(fixture);
	assert_ptr_equal(take_turn(fixture, 10 * S), self);
	fixture->late.at = 0;
	assert_ptr_equal(take_turn(fixture, 11 * S), self);
}

/* A search may take all the time of a turn. */
static void every_second_turn_begins_with_the_others(void **state)
{
	struct fixture *fixture = *state;
	struct traced *new = traced_set__add(fixture->set, (uint32_t)getppid());
	struct traced *self = add_self(fixture);

	assert_non_null(new);
	new->start_ns = 10 * S;
	new->code_kib = 1;
	map_code(fixture);
	assert_ptr_equal(take_turn(fixture, 10 * S), new);
	/* From the second process on: the new one is in turn too. */
	fixture->late.at = 1;
	assert_ptr_equal(take_turn(fixture, 11 * S), self);
}

static void a_turn_ends_when_its_time_is_over(void **state)
{
	struct fixture *fixture = *state;

	add_self(fixture);
	map_code(fixture);
	assert_true(late_files_begin(&fixture->late, fixture->set, 10 * S));
	assert_null(late_files_next(&fixture->late, fixture->set, 10 * S + 5 * MS));
}

static void a_process_that_is_gone_is_not_found(void **state)
{
	struct fixture *fixture = *state;

	add_others(fixture, 1);
	traced_set__at(fixture->set, 0)->code_kib = 100;
	assert_null(take_turn(fixture, 10 * S));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_process_that_has_mapped_code_is_found_until_it_is_searched),
		TEST(there_is_one_turn_a_second),
		TEST(of_many_processes_each_has_its_turn),
		TEST(a_new_process_does_not_wait_for_its_turn),
		TEST(a_process_is_not_new_for_ever),
		TEST(new_processes_leave_the_others_their_turn),
		TEST(every_second_turn_begins_with_the_others),
		TEST(a_turn_ends_when_its_time_is_over),
		TEST(a_process_that_is_gone_is_not_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

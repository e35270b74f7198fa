/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "report_fixture.h"

#include <json-c/json.h>

static int setup(void **state)
{
	*state = new_fixture(REPORT_JSON);
	return 0;
}

static int teardown(void **state)
{
	free_fixture(*state);
	return 0;
}

/* Follows keys and array indices ("kinds", "0", …, NULL). */
static struct json_object *find(struct json_object *object, ...)
{
	const char *key;
	va_list keys;

	va_start(keys, object);
	while ((key = va_arg(keys, const char *))) {
		assert_non_null(object);
		if (json_object_is_type(object, json_type_array))
			object = json_object_array_get_idx(object, strtoul(key, NULL, 10));
		else
			assert_true(json_object_object_get_ex(object, key, &object));
	}
	va_end(keys);
	return object;
}

static struct json_object *parse(struct fixture *fixture)
{
	struct json_object *root = json_tokener_parse(finish(fixture));

	assert_non_null(root);
	return root;
}

#define assert_number(value, ...)                                                                  \
	assert_int_equal(json_object_get_int64(find(__VA_ARGS__, NULL)), value)
#define assert_text(value, ...)                                                                    \
	assert_string_equal(json_object_get_string(find(__VA_ARGS__, NULL)), value)

static void a_window_without_steps_names_the_functions(void **state)
{
	struct json_object *root = parse(*state);

	assert_number(0, root, "steps");
	assert_text("llama_decode", root, "kinds", "0", "name");
	assert_number(0, root, "kinds", "0", "steps");
	json_object_put(root);
}

static void what_was_not_measured_is_null(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(fixture, MS);
	struct json_object *root;

	step.record.header.flags = FBT_STEP_OTHER_UNKNOWN;
	write_step(fixture, &step);
	root = parse(fixture);
	assert_null(find(root, "kinds", "0", "other_threads_syscall_ns", NULL));
	assert_null(find(root, "kinds", "0", "args", "0", "mean", NULL));
	json_object_put(root);
}

static void lost_records_are_there_by_cause(void **state)
{
	struct fixture *fixture = *state;
	struct json_object *root;

	fixture->window->lost.count[FBT_LOST_THREADS] = 3;
	root = parse(fixture);
	assert_number(3, root, "lost", "threads");
	assert_number(3, root, "lost", "total");
	assert_number(0, root, "lost", "calls");
	json_object_put(root);
}

static void processes_that_were_not_kept_are_counted(void **state)
{
	struct fixture *fixture = *state;
	struct json_object *root;

	fixture->window->processes_left_out = 3;
	root = parse(fixture);
	assert_number(3, root, "processes_left_out");
	assert_number(0, root, "skipped_records");
	json_object_put(root);
}

static void steps_are_summed_up_in_nanoseconds(void **state)
{
	struct fixture *fixture = *state;
	struct json_object *root;

	add_steps(fixture, 4, 8 * MS);
	root = parse(fixture);
	assert_number(4, root, "kinds", "0", "steps");
	assert_number(4, root, "kinds", "0", "ends", "return");
	assert_number(8 * MS, root, "kinds", "0", "duration", "p50_ns");
	assert_number(32 * MS, root, "kinds", "0", "total_ns");
	assert_number(24 * MS, root, "kinds", "0", "compute", "total_ns");
	assert_number(8 * MS, root, "kinds", "0", "categories", "futex", "total_ns");
	assert_number(4, root, "kinds", "0", "categories", "futex", "errors");
	assert_number(25, root, "kinds", "0", "categories", "futex", "share_percent");
	assert_text("futex", root, "kinds", "0", "slowest", "0", "dominant_syscall");
	json_object_put(root);
}

static void the_whole_syscall_table_is_there(void **state)
{
	struct fixture *fixture = *state;
	struct json_object *root;

	for (uint32_t nr = 0; nr < 40; nr++)
		add_row(fixture, 42, nr, 10, 1000);
	root = parse(fixture);
	assert_int_equal(json_object_array_length(find(root, "processes", "0", "syscalls", NULL)),
			 40);
	assert_text("write", root, "processes", "0", "syscalls", "1", "name");
	assert_text("write", root, "processes", "0", "syscalls", "1", "category");
	assert_number(400, root, "cost", "calls");
	json_object_put(root);
}

static void names_from_the_target_stay_valid_json(void **state)
{
	struct fixture *fixture = *state;
	struct json_object *root;

	add_process(fixture, 42, "\"\033\xff");
	root = parse(fixture);
	assert_text("\"\033\xef\xbf\xbd", root, "processes", "0", "comm");
	json_object_put(root);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_window_without_steps_names_the_functions),
		TEST(what_was_not_measured_is_null),
		TEST(lost_records_are_there_by_cause),
		TEST(processes_that_were_not_kept_are_counted),
		TEST(steps_are_summed_up_in_nanoseconds),
		TEST(the_whole_syscall_table_is_there),
		TEST(names_from_the_target_stay_valid_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

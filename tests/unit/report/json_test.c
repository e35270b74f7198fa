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

static void a_cost_that_was_not_measured_is_null(void **state)
{
	struct fixture *fixture = *state;
	struct json_object *root;

	add_steps(fixture, 1, MS);
	root = parse(fixture);
	assert_null(find(root, "cost", "added_percent", NULL));
	assert_null(find(root, "cost", "added_in_steps_percent", NULL));
	json_object_put(root);
}

static void a_cost_that_was_measured_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct json_object *root;

	fixture->window->cost.call_ps = 500000000;
	add_steps(fixture, 1, 100 * MS);
	root = parse(fixture);
	/* Two calls of 500 us each in 100 ms. */
	assert_true(json_object_get_double(find(root, "cost", "added_in_steps_percent", NULL)) >
		    0.99);
	assert_true(json_object_get_double(find(root, "cost", "added_percent", NULL)) > 0);
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

	fixture->window->overflow_processes = 3;
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

/* Passes a verdict to the sink, with the classifier's counts. */
static void escalate(struct fixture *fixture, const struct escalation *escalation)
{
	struct step step = make_step(fixture, 312 * MS);

	assert_int_equal(
		fixture->sink->write_escalation(fixture->sink, fixture->window, &step, escalation),
		0);
}

static void a_healthy_window_has_no_escalations(void **state)
{
	struct json_object *root = parse(*state);

	assert_number(0, root, "escalations", "judged");
	assert_number(0, root, "escalations", "escalated");
	assert_number(0, root, "escalations", "by_reason", "memory_cliff");
	assert_int_equal(json_object_array_length(find(root, "escalations", "causes", NULL)), 0);
	assert_int_equal(json_object_array_length(find(root, "escalations", "last", NULL)), 0);
	json_object_put(root);
}

static void escalations_are_listed_with_their_causes(void **state)
{
	struct fixture *fixture = *state;
	struct escalation escalation = make_escalation();
	struct json_object *root;

	escalate(fixture, &escalation);
	escalation.suppressed = true;
	escalate(fixture, &escalation);
	root = parse(fixture);
	assert_text("lock_contention", root, "escalations", "causes", "0", "cause");
	assert_number(2, root, "escalations", "causes", "0", "steps");
	assert_number(581800000, root, "escalations", "causes", "0", "extra_ns");
	assert_number(1, root, "escalations", "causes", "0", "worst_step");
	assert_text(cause_advice(CAUSE_LOCK_CONTENTION), root, "escalations", "causes", "0",
		    "advice");
	assert_int_equal(json_object_array_length(find(root, "escalations", "last", NULL)), 2);
	assert_null(find(root, "escalations", "last", "0", "not_shown", NULL));
	assert_text("rate_limit", root, "escalations", "last", "1", "not_shown");
	assert_number(3, root, "escalations", "last", "0", "number");
	assert_number(1, root, "escalations", "last", "0", "step");
	assert_text("llama_decode", root, "escalations", "last", "0", "name");
	assert_number(10 * MS, root, "escalations", "last", "0", "start_ns");
	assert_number(312 * MS, root, "escalations", "last", "0", "duration_ns");
	assert_number(21000999, root, "escalations", "last", "0", "budget_ns");
	assert_text("efficiency_low", root, "escalations", "last", "0", "reason");
	assert_text("lock_contention", root, "escalations", "last", "0", "cause");
	json_object_put(root);
}

static void of_what_was_not_judged_nothing_usual_is_known(void **state)
{
	struct fixture *fixture = *state;
	struct escalation escalation = make_escalation();
	struct json_object *root;

	escalation.judged = false;
	escalation.cause.usual_known = false;
	escalate(fixture, &escalation);
	root = parse(fixture);
	assert_null(find(root, "escalations", "last", "0", "budget_ns", NULL));
	assert_null(find(root, "escalations", "last", "0", "usual_ns", NULL));
	assert_null(find(root, "escalations", "last", "0", "cause_usual_ns", NULL));
	assert_number(0, root, "escalations", "causes", "0", "usual_known_steps");
	json_object_put(root);
}

static void the_process_that_a_step_waited_for_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct escalation escalation = make_escalation();
	struct fbt_peer peer = {
		.header = {.type = FBT_EVENT_PEER},
		.first_ns = 10 * MS,
		.time_ns = 70 * MS,
		.peer = 29118,
		.peer_tid = 29120,
		.way = FBT_PEER_SOCKET,
		.others = 2,
		.cpu_ns = 8 * MS,
		.stopped_ns = 52 * MS,
		.nr = FBT_PEER_NR_UNKNOWN,
		.stop_reason = FBT_STOP_TRACER,
		.tracer = 4711,
		.tracer_comm = "gdb",
		.comm = "VLLM::Worker",
	};
	struct json_object *root, *told, *beyond;

	escalate(fixture, &escalation);
	escalation.cause.kind = CAUSE_PEER_PROCESS;
	escalation.cause.peer_ns = 60 * MS;
	escalation.cause.peer.record = peer;
	escalate(fixture, &escalation);
	peer.way = FBT_PEER_PIPE;
	peer.stopped_ns = 0;
	peer.asleep_ns = 52 * MS;
	peer.nr = 0;
	escalation.cause.peer.beyond = peer;
	escalate(fixture, &escalation);
	root = parse(fixture);
	told = find(root, "escalations", "last", "0", NULL);
	assert_false(json_object_object_get_ex(told, "peer", NULL));
	told = find(root, "escalations", "last", "1", "peer", NULL);
	assert_number(60 * MS, told, "wait_ns");
	assert_number(29118, told, "pid");
	assert_number(29120, told, "tid");
	assert_text("VLLM::Worker", told, "name");
	assert_text("socket", told, "way");
	assert_number(2, told, "others");
	assert_text("stopped", told, "did");
	assert_number(52 * MS, told, "did_ns");
	assert_number(60 * MS, told, "seen_ns");
	assert_number(8 * MS, told, "cpu_ns");
	assert_null(find(told, "call", NULL));
	assert_text("tracer", told, "stop_reason");
	assert_number(4711, told, "tracer");
	assert_text("gdb", told, "tracer_name");
	assert_null(find(told, "waited_for", NULL));
	beyond = find(root, "escalations", "last", "2", "peer", "waited_for", NULL);
	assert_text("pipe", beyond, "way");
	assert_text("asleep", beyond, "did");
	assert_text("read", beyond, "call");
	assert_null(find(beyond, "stop_reason", NULL));
	json_object_put(root);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_window_without_steps_names_the_functions),
		TEST(what_was_not_measured_is_null),
		TEST(a_cost_that_was_not_measured_is_null),
		TEST(a_cost_that_was_measured_is_told),
		TEST(lost_records_are_there_by_cause),
		TEST(processes_that_were_not_kept_are_counted),
		TEST(steps_are_summed_up_in_nanoseconds),
		TEST(the_whole_syscall_table_is_there),
		TEST(names_from_the_target_stay_valid_json),
		TEST(a_healthy_window_has_no_escalations),
		TEST(escalations_are_listed_with_their_causes),
		TEST(of_what_was_not_judged_nothing_usual_is_known),
		TEST(the_process_that_a_step_waited_for_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

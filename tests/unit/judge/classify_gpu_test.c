/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What GPU figures change in the judging of a step: copies, and waits that are work. */
#include "judged_fixture.h"

#include <math.h>

#include "judge/classify.h"
#include "judge/text.h"
#include "tally/tally.h"
#include "model/gpu.h"

struct fixture {
	struct window *window;
	struct classifier *classifier;
	uint64_t now_ns;
	struct escalation last; /* the latest escalation */
	struct escalation_tally tally;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct classify_options options = classify_default_options();

	assert_non_null(fixture);
	fixture->window = new_window();
	fixture->classifier = classifier__new(&options);
	assert_non_null(fixture->classifier);
	fixture->now_ns = 2 * S;
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	escalation_tally_clear(&fixture->tally);
	classifier__free(fixture->classifier);
	window__free(fixture->window);
	free(fixture);
	return 0;
}

/* A step that works, then is blocked in an ioctl. */
static struct step step_of(uint64_t work_ns, uint64_t wait_ns)
{
	struct step step = make_step(work_ns + wait_ns);

	step.record.end_ns = 2 * S + work_ns + wait_ns;
	add_call(&step, "ioctl", wait_ns)->header.flags |= FBT_CALL_BLOCKED;
	step.calls.items[0].start_ns = 2 * S + work_ns;
	return step;
}

/* Judges a step with GPU figures, NULL: without, and frees both. Whether it was escalated. */
static bool push(struct fixture *fixture, struct step step, struct step_gpu *gpu)
{
	const struct escalation *escalation;
	uint64_t moved_ns = fixture->now_ns - step.record.start_ns;

	step.gpu = gpu;
	step.record.start_ns += moved_ns;
	step.record.end_ns += moved_ns;
	vec_for_each (call, &step.calls)
		call->start_ns += moved_ns;
	for (size_t i = 0; gpu && i < gpu->busy.count; i++) {
		gpu->busy.items[i].start_ns += moved_ns;
		gpu->busy.items[i].end_ns += moved_ns;
	}
	fixture->now_ns = step.record.end_ns + MS;
	assert_int_equal(
		classifier__judge(fixture->classifier, fixture->window, &step, &escalation), 0);
	if (escalation) {
		fixture->last = *escalation;
		assert_int_equal(
			escalation_tally_add(&fixture->tally, fixture->window, &step, escalation),
			0);
	}
	vec_free(&step.calls);
	step_gpu_free(gpu);
	return escalation != NULL;
}

/* GPU figures of a step in which it works from from_ns to to_ns. */
static struct step_gpu *gpu_of(uint64_t from_ns, uint64_t to_ns)
{
	struct step_gpu *gpu = calloc(1, sizeof(*gpu));
	struct gpu_interval interval = {2 * S + from_ns, 2 * S + to_ns};

	assert_non_null(gpu);
	assert_int_equal(gpu_interval_append(&gpu->busy, interval), 0);
	return gpu;
}

/* It is busy with kernels and with copies that stay on the device too: neither is transfer. */
static struct step_gpu *copies_of(uint64_t ns)
{
	struct step_gpu *gpu = gpu_of(0, ns);

	gpu->all.busy_ns = ns + 2 * MS;
	gpu->all.memcpy_ns = ns + MS;
	gpu->all.transfer_ns = ns;
	gpu->all.h2d_bytes = 3 << 20;
	gpu->all.memcpys = 2;
	return gpu;
}

/* So many steps of 20 ms of work and a wait of 0.1 ms while the GPU is idle. */
static void push_steady(struct fixture *fixture, int count)
{
	for (int i = 0; i < count; i++)
		assert_false(push(fixture, step_of(20 * MS, 100 * US), gpu_of(0, 10 * MS)));
}

static uint32_t bit(enum escalation_reason reason)
{
	return 1u << reason;
}

static void a_long_wait_for_a_gpu_that_works_is_more_work(void **state)
{
	struct fixture *fixture = *state;

	push_steady(fixture, 50);
	assert_false(push(fixture, step_of(20 * MS, 300 * MS), gpu_of(0, 320 * MS)));
}

static void a_long_wait_for_an_idle_gpu_is_not(void **state)
{
	struct fixture *fixture = *state;

	push_steady(fixture, 50);
	assert_true(push(fixture, step_of(20 * MS, 300 * MS), gpu_of(0, 20 * MS)));
	assert_int_equal(fixture->last.fired, bit(ESCALATION_EFFICIENCY_LOW));
	assert_int_equal(fixture->last.cause.kind, CAUSE_DRIVER_CALLS);
	assert_int_equal(fixture->last.cause.time_ns, 300 * MS);
	assert_true(push(fixture, step_of(20 * MS, 300 * MS), NULL));
	assert_int_equal(fixture->last.cause.time_ns, 300 * MS);
}

/* Steps that all wait for the GPU are of the class of what they wait for. */
static void waits_for_the_gpu_choose_the_class(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 40; i++) {
		assert_false(push(fixture, step_of(1 * MS, 20 * MS), gpu_of(0, 21 * MS)));
		assert_false(push(fixture, step_of(1 * MS, 200 * MS), gpu_of(0, 201 * MS)));
	}
	assert_true(push(fixture, step_of(1 * MS, 200 * MS), gpu_of(0, 21 * MS)));
	assert_int_equal(fixture->last.budget_ns, 21 * MS);
	assert_int_equal(fixture->last.usual_ns, 21 * MS);
	assert_false(fixture->last.nearest);
}

static void copies_above_the_threshold_are_named(void **state)
{
	struct fixture *fixture = *state;
	char text[256];

	push_steady(fixture, 50);
	assert_false(push(fixture, step_of(20 * MS, 0), copies_of(10 * MS)));
	assert_true(push(fixture, step_of(20 * MS, 0), copies_of(10 * MS + 1)));
	assert_int_equal(fixture->last.fired, bit(ESCALATION_GPU_TRANSFER_OVERHEAD));
	assert_int_equal(fixture->last.result.reason, ESCALATION_GPU_TRANSFER_OVERHEAD);
	assert_int_equal(fixture->last.cause.kind, CAUSE_GPU_TRANSFER);
	cause_describe(&fixture->last.cause, fixture->window, text, sizeof(text));
	assert_string_equal(text, "copies 10.0 ms of 20.0 ms: H2D 3.00 MiB");
}

/*
 * The steps of an engine that runs ahead of its GPU only launch. What the GPU copies in the
 * meantime was launched by earlier steps.
 */
static void copies_below_the_floor_are_not_named(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 50; i++)
		assert_false(push(fixture, make_step(90 * US), copies_of(90 * US)));
	assert_false(push(fixture, make_step(120 * US), copies_of(100 * US - 1)));
	assert_true(push(fixture, make_step(120 * US), copies_of(100 * US)));
}

/* The report lists causes by what they cost. */
static void copies_cost_all_their_time(void **state)
{
	struct fixture *fixture = *state;
	const struct cause_tally *cause = &fixture->tally.causes[CAUSE_GPU_TRANSFER];

	push_steady(fixture, 50);
	for (int i = 0; i < 3; i++)
		assert_true(push(fixture, step_of(20 * MS, 0), copies_of(15 * MS)));
	assert_int_equal(cause->steps, 3);
	assert_int_equal(cause->extra_ns, 45 * MS);
	assert_int_equal(cause->usual_known, 0);
}

static void copies_are_not_judged_before_their_class_is_known(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 10; i++)
		assert_false(push(fixture, step_of(20 * MS, 0), copies_of(15 * MS)));
	assert_true(push(fixture, step_of(20 * MS, 0), copies_of(15 * MS)));
}

static void a_step_of_no_length_has_no_share_of_copies(void **state)
{
	struct fixture *fixture = *state;

	push_steady(fixture, 50);
	assert_false(push(fixture, make_step(0), copies_of(15 * MS)));
}

static void copies_come_before_efficiency(void **state)
{
	struct fixture *fixture = *state;

	push_steady(fixture, 50);
	assert_true(push(fixture, step_of(20 * MS, 300 * MS), copies_of(200 * MS)));
	assert_int_equal(fixture->last.result.reason, ESCALATION_GPU_TRANSFER_OVERHEAD);
	assert_int_equal(fixture->last.cause.kind, CAUSE_GPU_TRANSFER);
}

static void by_hand_the_cause_is_what_fired(void **state)
{
	struct fixture *fixture = *state;

	push_steady(fixture, 50);
	classifier__request_manual(fixture->classifier);
	assert_true(push(fixture, step_of(20 * MS, 0), copies_of(15 * MS)));
	assert_int_equal(fixture->last.result.reason, ESCALATION_MANUAL);
	assert_int_equal(fixture->last.cause.kind, CAUSE_GPU_TRANSFER);
	classifier__request_manual(fixture->classifier);
	assert_true(push(fixture, step_of(20 * MS, 0), copies_of(5 * MS)));
	assert_int_equal(fixture->last.cause.kind, CAUSE_COMPUTE);
}

static void a_memory_cliff_comes_before_copies(void **state)
{
	struct fixture *fixture = *state;
	struct step step = make_step(320 * MS);

	push_steady(fixture, 50);
	add_call(&step, "mmap", 300 * MS);
	assert_true(push(fixture, step, copies_of(200 * MS)));
	assert_true(fixture->last.fired & bit(ESCALATION_GPU_TRANSFER_OVERHEAD));
	assert_int_equal(fixture->last.result.reason, ESCALATION_MEMORY_CLIFF);
	assert_int_equal(fixture->last.cause.kind, CAUSE_ALLOCATION_CHURN);
}

/* The shim of the process has been armed in this window. */
static void arm(struct fixture *fixture)
{
	const struct fbt_gpu_state state = {.tgid = 7, .status = FBT_GPU_ARMED};

	assert_int_equal(gpu_table_set_state(&fixture->window->gpus, &state, "", ""), 0);
}

/* GPU figures of which nothing is missing. */
static struct step_gpu *whole_of(uint64_t from_ns, uint64_t to_ns)
{
	struct step_gpu *gpu = gpu_of(from_ns, to_ns);

	gpu->complete = true;
	return gpu;
}

/* So many steps of 21 ms that wait for the GPU all the time. */
static void push_waiting(struct fixture *fixture, int count)
{
	arm(fixture);
	for (int i = 0; i < count; i++)
		assert_false(push(fixture, step_of(1 * MS, 20 * MS), whole_of(0, 21 * MS)));
}

static void a_step_is_not_slow_because_its_gpu_records_are_missing(void **state)
{
	struct fixture *fixture = *state;

	push_waiting(fixture, 50);
	for (int i = 0; i < 30; i++) {
		assert_false(push(fixture, step_of(1 * MS, 20 * MS), NULL));
		assert_false(push(fixture, step_of(1 * MS, 20 * MS), gpu_of(0, 2 * MS)));
	}
}

static void a_step_far_longer_than_usual_is_named_without_gpu_records(void **state)
{
	struct fixture *fixture = *state;

	push_waiting(fixture, 50);
	assert_true(push(fixture, step_of(1 * MS, 300 * MS), NULL));
	assert_int_equal(fixture->last.fired, bit(ESCALATION_EFFICIENCY_LOW));
	assert_int_equal(fixture->last.budget_ns, 21 * MS);
	assert_true(fixture->last.cause.gpu_lost);
	assert_true(push(fixture, step_of(1 * MS, 300 * MS), whole_of(0, 1 * MS)));
	assert_false(fixture->last.cause.gpu_lost);
}

/* By work, what a step seems to have done says nothing of its class. */
static void a_prefill_without_gpu_records_is_no_slow_decode(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	for (int i = 0; i < 40; i++) {
		assert_false(push(fixture, step_of(1 * MS, 20 * MS), whole_of(0, 21 * MS)));
		assert_false(push(fixture, step_of(1 * MS, 200 * MS), whole_of(0, 201 * MS)));
	}
	for (int i = 0; i < 30; i++) {
		assert_false(push(fixture, step_of(1 * MS, 20 * MS), NULL));
		assert_false(push(fixture, step_of(1 * MS, 200 * MS), NULL));
	}
}

static bool push_of_class(struct fixture *fixture, uint64_t wait_ns, struct step_gpu *gpu)
{
	struct step step = step_of(1 * MS, wait_ns);

	step.record.arg_mask = 1;
	step.record.args[0] = 8;
	return push(fixture, step, gpu);
}

static void the_same_holds_of_classes_by_an_argument(void **state)
{
	struct fixture *fixture = *state;
	struct classify_options options = classify_default_options();

	options.class_by = "n_tokens";
	classifier__free(fixture->classifier);
	fixture->classifier = classifier__new(&options);
	assert_non_null(fixture->classifier);
	arm(fixture);
	for (int i = 0; i < 50; i++)
		assert_false(push_of_class(fixture, 20 * MS, whole_of(0, 21 * MS)));
	for (int i = 0; i < 30; i++)
		assert_false(push_of_class(fixture, 20 * MS, NULL));
	assert_true(push_of_class(fixture, 300 * MS, NULL));
	/* None of them has made a wait for an idle GPU usual. */
	assert_true(push_of_class(fixture, 20 * MS, whole_of(0, 1 * MS)));
}

static void steps_without_gpu_records_do_not_make_waits_usual(void **state)
{
	struct fixture *fixture = *state;

	push_waiting(fixture, 50);
	for (int i = 0; i < 50; i++)
		assert_false(push(fixture, step_of(1 * MS, 20 * MS), NULL));
	assert_true(push(fixture, step_of(1 * MS, 20 * MS), whole_of(0, 1 * MS)));
}

/* Records may have ended for good, as when another profiler has taken CUPTI over. */
static void what_is_usual_is_learned_without_gpu_records_too(void **state)
{
	struct fixture *fixture = *state;

	push_waiting(fixture, 50);
	for (int i = 0; i < 10; i++)
		assert_true(push(fixture, step_of(1 * MS, 120 * MS), NULL));
	assert_false(push(fixture, step_of(1 * MS, 120 * MS), NULL));
	assert_true(push(fixture, step_of(1 * MS, 600 * MS), NULL));
}

static void a_process_may_never_have_whole_gpu_records(void **state)
{
	struct fixture *fixture = *state;

	arm(fixture);
	for (int i = 0; i < 10; i++)
		assert_false(push(fixture, step_of(20 * MS, 100 * US), gpu_of(0, 10 * MS)));
	assert_true(push(fixture, step_of(20 * MS, 300 * MS), gpu_of(0, 10 * MS)));
	assert_int_equal(fixture->last.cause.kind, CAUSE_DRIVER_CALLS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_long_wait_for_a_gpu_that_works_is_more_work),
		TEST(a_long_wait_for_an_idle_gpu_is_not),
		TEST(waits_for_the_gpu_choose_the_class),
		TEST(copies_above_the_threshold_are_named),
		TEST(copies_below_the_floor_are_not_named),
		TEST(copies_cost_all_their_time),
		TEST(copies_are_not_judged_before_their_class_is_known),
		TEST(a_step_of_no_length_has_no_share_of_copies),
		TEST(copies_come_before_efficiency),
		TEST(by_hand_the_cause_is_what_fired),
		TEST(a_memory_cliff_comes_before_copies),
		TEST(a_step_is_not_slow_because_its_gpu_records_are_missing),
		TEST(a_step_far_longer_than_usual_is_named_without_gpu_records),
		TEST(a_prefill_without_gpu_records_is_no_slow_decode),
		TEST(the_same_holds_of_classes_by_an_argument),
		TEST(steps_without_gpu_records_do_not_make_waits_usual),
		TEST(what_is_usual_is_learned_without_gpu_records_too),
		TEST(a_process_may_never_have_whole_gpu_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

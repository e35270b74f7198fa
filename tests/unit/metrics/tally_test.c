/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "metrics/tally.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "metrics_fixture.h"

static struct metrics_series *only(const struct metrics_tally *tally)
{
	assert_int_equal(tally->series.count, 1);
	return tally->series.items[0];
}

/* By an export of which no records are skipped. */
static void see(struct metrics_tally *tally, const struct window *window, uint64_t now_ns)
{
	uint64_t skipped = 0;

	metrics_tally__see(tally, window, &skipped, now_ns);
	assert_int_equal(skipped, 0);
}

static void a_step_is_of_its_engine_and_function(void **state)
{
	struct metrics_tally *tally = metrics_tally__new();
	struct window *window = window_at(1000);
	struct step step = step_of(ENGINE_PID, 1, 2000, 5000);
	const struct metrics_series *series;

	add_process(window, ENGINE_PID, "VLLM::Worker_TP", "VLLM::Worker_TP3");
	add_kind(window, 1, "decode");
	step.record.gap_ns = 70;
	step.complete = false;
	assert_int_equal(metrics_tally__add_step(tally, window, &step), 0);
	step.record.header.flags = FBT_STEP_NO_GAP;
	step.complete = true;
	assert_int_equal(metrics_tally__add_step(tally, window, &step), 0);
	series = only(tally);
	assert_string_equal(series->engine, "VLLM::Worker_TP");
	assert_string_equal(series->kind, "decode");
	assert_string_equal(series->rank, "3");
	assert_int_equal(series->duration.count, 2);
	assert_int_equal(series->duration.sum_ns, 10000);
	assert_int_equal(series->gap_ns, 70);
	assert_int_equal(series->incomplete, 1);
	assert_true(series->last_step_ns == UINT64_C(1700000000000006000));
	window__free(window);
	metrics_tally__free(tally);
}

/* They are in no other figure either; but the engine runs, and its probes cost. */
static void steps_under_a_profiler_are_in_no_figure(void **state)
{
	struct metrics_tally *tally = metrics_tally__new();
	struct window *window = window_at(1000);
	struct step step = step_of(ENGINE_PID, 1, 2000, 5000);

	add_process(window, ENGINE_PID, "e", "");
	add_kind(window, 1, "decode");
	step.record.header.flags |= FBT_STEP_PROFILED;
	assert_int_equal(metrics_tally__add_step(tally, window, &step), 0);
	assert_int_equal(only(tally)->steps, 0);
	assert_int_equal(only(tally)->duration.count, 0);
	assert_int_equal(only(tally)->parts_ns[1][STEP_OWN], 0);
	assert_true(only(tally)->last_step_ns > 0);
	assert_int_equal(tally->window_steps, 1);
	window__free(window);
	metrics_tally__free(tally);
}

static void a_time_that_is_not_known_is_in_no_sum(void **state)
{
	static const enum fbt_step_end ends[] = {FBT_END_UNWOUND, FBT_END_TRUNCATED,
						 FBT_END_EXITED};
	struct metrics_tally *tally = metrics_tally__new();
	struct window *window = window_at(1000);
	struct step step = step_of(ENGINE_PID, 1, 2000, 5000);
	const struct metrics_series *series;

	add_process(window, ENGINE_PID, "e", "");
	add_kind(window, 1, "decode");
	step.complete = true;
	step.record.end = FBT_END_RAISED;
	assert_int_equal(metrics_tally__add_step(tally, window, &step), 0);
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		step.record.end = ends[i];
		assert_int_equal(metrics_tally__add_step(tally, window, &step), 0);
	}
	series = only(tally);
	assert_int_equal(series->steps, 4);
	assert_int_equal(series->duration.count, 1);
	assert_int_equal(series->duration.sum_ns, 5000);
	assert_int_equal(series->parts_ns[1][STEP_OWN], 5000);
	window__free(window);
	metrics_tally__free(tally);
}

static void only_what_says_rank_is_one(void **state)
{
	static const char *const titles[][2] = {{"sglang::scheduler_TP0", "0"},
						{"sglang::scheduler_DP12_TP3", "DP12_TP3"},
						{"VLLM::Worker_DP0_PP1_TP0", "DP0_PP1_TP0"},
						{"app_v2_TP5", "5"},
						{"worker_rank_7", "7"},
						{"/bin/engine4", ""},
						{"python serve.py --port 8000", ""},
						{"x_TP123456", ""}};

	for (size_t i = 0; i < sizeof(titles) / sizeof(*titles); i++) {
		struct metrics_tally *tally = metrics_tally__new();
		struct window *window = window_at(1000);
		struct step step = step_of(ENGINE_PID, 0, 2000, 5000);
		char comm[16];

		snprintf(comm, sizeof(comm), "%.15s", titles[i][0]);
		add_process(window, ENGINE_PID, comm, titles[i][0]);
		assert_int_equal(metrics_tally__add_step(tally, window, &step), 0);
		assert_string_equal(only(tally)->rank, titles[i][1]);
		window__free(window);
		metrics_tally__free(tally);
	}
}

/* A target that renames itself for ever takes no more than one series more. */
static void too_many_series_are_other_and_counted(void **state)
{
	struct metrics_tally *tally = metrics_tally__new();
	struct window *window = window_at(1000);
	char name[16];

	for (uint32_t i = 1; i <= METRICS_SERIES_MAX + 10; i++) {
		struct step step = step_of(i, 0, 2000, 5000);

		snprintf(name, sizeof(name), "e%u", i);
		add_process(window, i, name, "");
		assert_int_equal(metrics_tally__add_step(tally, window, &step), 0);
	}
	assert_int_equal(tally->series.count, METRICS_SERIES_MAX + 1);
	assert_int_equal(tally->folded_steps, 10);
	assert_string_equal(tally->series.items[METRICS_SERIES_MAX]->engine, METRICS_OTHER);
	assert_int_equal(tally->series.items[METRICS_SERIES_MAX]->duration.count, 10);
	window__free(window);
	metrics_tally__free(tally);
}

static void escalations_count_by_reason_and_cause(void **state)
{
	struct metrics_tally *tally = metrics_tally__new();
	struct window *window = window_at(1000);
	struct step step = step_of(ENGINE_PID, 0, 2000, 5000);
	struct escalation escalation = {
		.result.reason = ESCALATION_BOTH,
		.cause = {.kind = CAUSE_GIL, .usual_known = true, .time_ns = 900, .usual_ns = 100},
	};

	assert_int_equal(metrics_tally__add_escalation(tally, window, &step, &escalation), 0);
	escalation.repeated = true;
	escalation.cause.usual_ns = 1000; /* it has not grown */
	assert_int_equal(metrics_tally__add_escalation(tally, window, &step, &escalation), 0);
	assert_int_equal(only(tally)->escalations[ESCALATION_BOTH], 2);
	assert_int_equal(only(tally)->not_shown, 1);
	assert_int_equal(only(tally)->cause_steps[CAUSE_GIL], 2);
	assert_int_equal(only(tally)->cause_extra_ns[CAUSE_GIL], 800);
	window__free(window);
	metrics_tally__free(tally);
}

/* Not the one over the rate limit: it is as wrong as one that is shown. */
static void steps_of_an_unsteady_class_are_counted_apart(void **state)
{
	struct metrics_tally *tally = metrics_tally__new();
	struct window *window = window_at(1000);
	struct step step = step_of(ENGINE_PID, 0, 2000, 5000);
	const struct escalation escalations[] = {
		{.suppressed = true}, {.repeated = true}, {.as_usual = true}, {0}};

	for (size_t i = 0; i < sizeof(escalations) / sizeof(*escalations); i++) {
		struct escalation escalation = escalations[i];

		escalation.result.reason = ESCALATION_CV_EXCEEDED;
		escalation.cause = (struct cause){
			.kind = CAUSE_GIL, .usual_known = true, .time_ns = 900, .usual_ns = 100};
		assert_int_equal(metrics_tally__add_escalation(tally, window, &step, &escalation),
				 0);
	}
	assert_int_equal(only(tally)->escalations[ESCALATION_CV_EXCEEDED], 4);
	assert_int_equal(only(tally)->not_shown, 3);
	assert_int_equal(only(tally)->unsteady, 2);
	assert_int_equal(only(tally)->cause_steps[CAUSE_GIL], 4);
	/* One that is as usual lost no time. */
	assert_int_equal(only(tally)->cause_extra_ns[CAUSE_GIL], 3 * 800);
	window__free(window);
	metrics_tally__free(tally);
}

static void a_clock_that_is_set_back_takes_the_last_step_with_it(void **state)
{
	struct metrics_tally *tally = metrics_tally__new();
	struct window *window = window_at(1000);
	struct step step = step_of(ENGINE_PID, 0, 2000, 5000);
	uint64_t set_ns = UINT64_C(1699990000000000000);

	assert_int_equal(metrics_tally__add_step(tally, window, &step), 0);
	window->clock = (struct fbt_clock){
		.header.type = FBT_EVENT_CLOCK, .time_ns = 8000, .realtime_ns = set_ns};
	see(tally, window, 9000);
	assert_true(only(tally)->last_step_ns == set_ns - 1000);
	step = step_of(ENGINE_PID, 0, 8000, 3000);
	assert_int_equal(metrics_tally__add_step(tally, window, &step), 0);
	assert_true(only(tally)->last_step_ns == set_ns + 3000);
	/* One that ended before, and comes later. */
	step = step_of(ENGINE_PID, 0, 8000, 1000);
	assert_int_equal(metrics_tally__add_step(tally, window, &step), 0);
	assert_true(only(tally)->last_step_ns == set_ns + 3000);
	window__free(window);
	metrics_tally__free(tally);
}

/* Several exports of a window tell the same losses; a second window begins at 0 again. */
static void losses_only_grow(void **state)
{
	struct metrics_tally *tally = metrics_tally__new();
	struct window *first = window_at(1000), *other = window_at(1000), *second = window_at(9000);

	first->lost.count[FBT_LOST_CALLS] = 5;
	other->lost.count[FBT_LOST_CALLS] = 7;
	see(tally, first, 1500);
	see(tally, other, 1500);
	assert_int_equal(tally->lost[FBT_LOST_CALLS], 7);
	assert_true(tally->is_open);
	first->end_ns = 2000;
	see(tally, first, 2500);
	metrics_tally__close(tally);
	assert_false(tally->is_open);
	assert_int_equal(tally->traced_ns, 1000);
	second->lost.count[FBT_LOST_CALLS] = 2;
	see(tally, second, 9500);
	assert_int_equal(tally->lost[FBT_LOST_CALLS], 9);
	assert_int_equal(tally->traced_ns, 1500);
	assert_int_equal(tally->windows, 2);
	see(tally, first, 9900); /* late: changes nothing */
	assert_int_equal(tally->windows, 2);
	assert_int_equal(tally->traced_ns, 1500);
	window__free(first);
	window__free(other);
	window__free(second);
	metrics_tally__free(tally);
}

/* Each export has those of its process. */
static void skipped_records_of_all_exports_add_up(void **state)
{
	struct metrics_tally *tally = metrics_tally__new();
	struct window *first = window_at(1000), *other = window_at(1000);
	uint64_t of_first = 0, of_other = 0;

	first->skipped_records = 5;
	other->skipped_records = 1;
	other->unkept_records = 2;
	for (int i = 0; i < 2; i++) {
		metrics_tally__see(tally, first, &of_first, 1500);
		metrics_tally__see(tally, other, &of_other, 1500);
	}
	assert_int_equal(tally->skipped, 8);
	other->unkept_records = 3;
	metrics_tally__see(tally, first, &of_first, 1600);
	metrics_tally__see(tally, other, &of_other, 1600);
	assert_int_equal(tally->skipped, 9);
	window__free(first);
	window__free(other);
	metrics_tally__free(tally);
}

/* While the window is open it is estimated; what comes at its end may be less, and takes nothing.
 */
static void the_cost_only_grows(void **state)
{
	struct metrics_tally *tally = metrics_tally__new();
	struct window *window = window_at(1000);
	struct step step = step_of(ENGINE_PID, 1, 2000, 5000);

	add_kind(window, 1, "decode");
	assert_int_equal(metrics_tally__add_step(tally, window, &step), 0);
	tally->probes_ns = 4000;
	see(tally, window, 3000);
	assert_int_equal(tally->probe_cost_ns, 4000);
	window->cost.header.size = sizeof(window->cost);
	window->cost.step_ns = 3000;
	see(tally, window, 3000);
	assert_int_equal(tally->probe_cost_ns, 4000);
	assert_int_equal(metrics_tally__add_step(tally, window, &step), 0);
	see(tally, window, 3000);
	assert_int_equal(tally->probe_cost_ns, 6000);
	window__free(window);
	metrics_tally__free(tally);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_is_of_its_engine_and_function),
		cmocka_unit_test(steps_under_a_profiler_are_in_no_figure),
		cmocka_unit_test(a_time_that_is_not_known_is_in_no_sum),
		cmocka_unit_test(only_what_says_rank_is_one),
		cmocka_unit_test(too_many_series_are_other_and_counted),
		cmocka_unit_test(escalations_count_by_reason_and_cause),
		cmocka_unit_test(steps_of_an_unsteady_class_are_counted_apart),
		cmocka_unit_test(a_clock_that_is_set_back_takes_the_last_step_with_it),
		cmocka_unit_test(losses_only_grow),
		cmocka_unit_test(skipped_records_of_all_exports_add_up),
		cmocka_unit_test(the_cost_only_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

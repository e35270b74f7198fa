/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "top/model.h"

#define START (1000 * NS_PER_S)

static struct window *new_window(void)
{
	struct window *window = window__new();

	assert_non_null(window);
	window->record.start_ns = START;
	window->record.realtime_ns = 5000 * NS_PER_S;
	return window;
}

/* A step of kind 1 that ends so long after the begin of the window. */
static struct step make_step(uint64_t end_ns, uint64_t total_ns, uint32_t bits)
{
	return (struct step){
		.number = 1,
		.complete = true,
		.class = {.is_known = true, .bits = bits},
		.record = {.tgid = 7,
			   .tid = 8,
			   .kind = 1,
			   .start_ns = START + end_ns - total_ns,
			   .end_ns = START + end_ns,
			   .thread_ns = total_ns},
	};
}

static void add(struct top_model *model, const struct window *window, uint64_t end_ns,
		uint64_t total_ns, uint32_t bits)
{
	const struct step step = make_step(end_ns, total_ns, bits);

	assert_int_equal(top_model__add_step(model, window, &step), 0);
}

static struct top_figures *figures_at(struct top_model *model, uint64_t now_ns, uint32_t kind)
{
	static struct top_figures figures;

	assert_int_equal(top_model__figures(model, START + now_ns, kind, &figures), 0);
	return &figures;
}

static void test_nothing(void **state)
{
	struct top_model *model = top_model__new();
	const struct top_figures *figures = figures_at(model, 5 * NS_PER_S, TOP_ALL_KINDS);

	assert_int_equal(figures->row_count, 0);
	assert_int_equal(figures->all.sums.count, 0);
	assert_int_equal(figures->all.p99_ns, 0);
	assert_int_equal(figures->last_step_ns, 0);
	assert_null(top_model__slow(model, 0));
	assert_null(top_model__message(model, 0));
	top_model__free(model);
}

/* Ranks are those of base/stats: round(p * (count - 1)). */
static void test_percentiles(void **state)
{
	struct top_model *model = top_model__new();
	struct window *window = new_window();
	const struct top_figures *figures;

	for (uint64_t i = 0; i < 101; i++)
		add(model, window, NS_PER_S + i, 1 + i * 37 % 101, 4);
	figures = figures_at(model, 3 * NS_PER_S, TOP_ALL_KINDS);
	assert_int_equal(figures->all.sums.count, 101);
	assert_int_equal(figures->all.p50_ns, 51);
	assert_int_equal(figures->all.p95_ns, 96);
	assert_int_equal(figures->all.p99_ns, 100);
	assert_int_equal(figures->all.sums.max_ns, 101);
	assert_int_equal(figures->all.sums.total_ns, 101 * 102 / 2);
	assert_false(figures->sampled);
	assert_int_equal(figures->seconds, 3);
	window__free(window);
	top_model__free(model);
}

/* The second that runs does not count; ten whole ones do; the strip has all. */
static void test_seconds(void **state)
{
	struct top_model *model = top_model__new();
	struct window *window = new_window();
	const struct top_figures *figures;

	for (uint64_t i = 0; i < 20; i++)
		add(model, window, i * NS_PER_S + 500, 100 + i, 4);
	figures = figures_at(model, 19 * NS_PER_S + 1000, TOP_ALL_KINDS);
	assert_int_equal(figures->seconds, 10);
	assert_int_equal(figures->all.sums.count, 10);
	assert_int_equal(figures->all.sums.max_ns, 118);
	assert_int_equal(figures->history_seconds, 19);
	assert_int_equal(figures->history[TOP_HISTORY - 1].p99_ns, 118);
	assert_int_equal(figures->history[TOP_HISTORY - 19].max_ns, 100);
	assert_int_equal(figures->history[TOP_HISTORY - 20].steps, 0);
	/* One that comes late, within some seconds, is in its own second. */
	add(model, window, 12 * NS_PER_S + 600, 500, 4);
	figures = figures_at(model, 19 * NS_PER_S + 1000, TOP_ALL_KINDS);
	assert_int_equal(figures->history[TOP_HISTORY - 7].steps, 2);
	assert_int_equal(figures->history[TOP_HISTORY - 7].p99_ns, 500);
	/* Long after the last step nothing is left in the last seconds. */
	figures = figures_at(model, 100 * NS_PER_S, TOP_ALL_KINDS);
	assert_int_equal(figures->all.sums.count, 0);
	assert_int_equal(figures->last_step_ns, START + 19 * NS_PER_S + 500);
	assert_int_equal(figures->history[TOP_HISTORY - 100].max_ns, 100);
	window__free(window);
	top_model__free(model);
}

static void test_classes(void **state)
{
	struct top_model *model = top_model__new();
	struct window *window = new_window();
	const struct top_figures *figures;

	for (uint64_t i = 0; i < 30; i++)
		add(model, window, 500, i % 3 ? 10 : 1000, i % 3 ? 4 : 10);
	figures = figures_at(model, NS_PER_S, TOP_ALL_KINDS);
	assert_int_equal(figures->row_count, 2);
	assert_int_equal(figures->rows[0].key.class.bits, 10);
	assert_int_equal(figures->rows[0].sums.count, 10);
	assert_int_equal(figures->rows[0].p50_ns, 1000);
	assert_int_equal(figures->rows[1].sums.count, 20);
	assert_int_equal(figures->rows[1].p99_ns, 10);
	/* Of another function there is none. */
	assert_int_equal(figures_at(model, NS_PER_S, 2)->row_count, 0);
	assert_int_equal(figures_at(model, NS_PER_S, 1)->all.sums.count, 30);
	window__free(window);
	top_model__free(model);
}

/* More classes than there is room for: the others are summed up, and none is lost. */
static void test_too_many_classes(void **state)
{
	struct top_model *model = top_model__new();
	struct window *window = new_window();
	const struct top_figures *figures;

	for (uint32_t i = 0; i < 200; i++) {
		struct step step = make_step(500, 10, 4);

		step.record.tgid = i;
		assert_int_equal(top_model__add_step(model, window, &step), 0);
	}
	figures = figures_at(model, NS_PER_S, TOP_ALL_KINDS);
	assert_int_equal(figures->row_count, TOP_CLASSES);
	assert_int_equal(figures->all.sums.count, 200);
	assert_int_equal(figures->rows[0].sums.count, 200 - TOP_CLASSES + 1);
	assert_int_equal(figures->rows[0].key.kind, TOP_ALL_KINDS);
	window__free(window);
	top_model__free(model);
}

/* Sums are exact beyond what is kept of a second; percentiles are of a sample. */
static void test_sample(void **state)
{
	struct top_model *model = top_model__new();
	struct window *window = new_window();
	const struct top_figures *figures;

	for (uint64_t i = 0; i < 10 * TOP_SAMPLES; i++)
		add(model, window, 500, 1000 + i % 1000, 10);
	figures = figures_at(model, NS_PER_S, TOP_ALL_KINDS);
	assert_true(figures->sampled);
	assert_int_equal(figures->all.sums.count, 10 * TOP_SAMPLES);
	assert_int_equal(figures->all.sums.max_ns, 1999);
	assert_in_range(figures->all.p50_ns, 1450, 1550);
	assert_in_range(figures->all.p99_ns, 1970, 1999);
	window__free(window);
	top_model__free(model);
}

/* Of a second with very many steps few are kept: each of those stands for many. */
static void test_weights(void **state)
{
	struct top_model *model = top_model__new();
	struct window *window = new_window();
	const struct top_figures *figures;

	for (uint64_t i = 0; i < 10 * TOP_SAMPLES; i++)
		add(model, window, 500, 1000, 10);
	for (uint64_t i = 0; i < TOP_SAMPLES; i++)
		add(model, window, NS_PER_S + NS_PER_S / 2, 50000, 10);
	figures = figures_at(model, 2 * NS_PER_S, TOP_ALL_KINDS);
	assert_int_equal(figures->all.sums.count, 11 * TOP_SAMPLES);
	assert_int_equal(figures->all.p50_ns, 1000);
	assert_int_equal(figures->all.p95_ns, 50000);
	window__free(window);
	top_model__free(model);
}

static struct escalation slow_escalation(void)
{
	return (struct escalation){
		.judged = true,
		.usual_ns = 50,
		.result.reason = ESCALATION_EFFICIENCY_LOW,
		.cause = {.kind = CAUSE_LOCK_CONTENTION,
			  .usual_known = true,
			  .time_ns = 90,
			  .usual_ns = 10},
	};
}

static void test_slow(void **state)
{
	struct top_model *model = top_model__new();
	struct window *window = new_window();
	struct escalation escalation = slow_escalation();
	struct step step = make_step(500, 100, 4);
	const struct top_figures *figures;

	add(model, window, 500, 100, 4);
	top_model__add_escalation(model, window, &step, &escalation);
	step.number = 2;
	top_model__add_escalation(model, window, &step, &escalation);
	escalation.repeated = true;
	step.number = 3;
	top_model__add_escalation(model, window, &step, &escalation);
	assert_int_equal(top_model__slow(model, 0)->number, 2);
	assert_int_equal(top_model__slow(model, 1)->number, 1);
	assert_null(top_model__slow(model, 2));
	assert_true(top_model__slow(model, 0)->times == 2.0);
	assert_int_equal(top_model__slow(model, 0)->realtime_ns, 5000 * NS_PER_S + 500);
	figures = figures_at(model, NS_PER_S, TOP_ALL_KINDS);
	assert_int_equal(figures->cause_count, 1);
	assert_int_equal(figures->causes[0].kind, CAUSE_LOCK_CONTENTION);
	assert_int_equal(figures->causes[0].steps, 2);
	assert_int_equal(figures->causes[0].extra_ns, 160);
	assert_int_equal(figures->slow_total, 2);
	assert_int_equal(figures->history[TOP_HISTORY - 1].slow, 2);
	window__free(window);
	top_model__free(model);
}

/* A storm of slow steps is bounded, and what is left out is counted. */
static void test_many_slow(void **state)
{
	struct top_model *model = top_model__new();
	struct window *window = new_window();
	struct escalation escalation = slow_escalation();
	const struct top_figures *figures;
	size_t kept = 0;

	for (uint64_t i = 1; i <= 1000; i++) {
		struct step step = make_step(i / 250 * NS_PER_S + 500, 100, 4);

		step.number = i;
		top_model__add_escalation(model, window, &step, &escalation);
	}
	while (top_model__slow(model, kept))
		kept++;
	figures = figures_at(model, 6 * NS_PER_S, TOP_ALL_KINDS);
	assert_int_equal(kept, TOP_SLOW);
	assert_int_equal(figures->slow_total, 1000);
	assert_int_equal(figures->slow_left_out, 1000 - 4 * TOP_SLOW_PER_S - 1);
	assert_int_equal(figures->causes[0].steps, 1000);
	window__free(window);
	top_model__free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),		 cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_seconds),		 cmocka_unit_test(test_classes),
		cmocka_unit_test(test_too_many_classes), cmocka_unit_test(test_sample),
		cmocka_unit_test(test_weights),		 cmocka_unit_test(test_slow),
		cmocka_unit_test(test_many_slow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

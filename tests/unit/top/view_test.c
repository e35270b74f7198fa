/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Cells, keys and pages, without a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/text.h"
#include "top/keys.h"
#include "top/view.h"

#define START (1000 * NS_PER_S)

struct page {
	struct top_model *model;
	struct window *window;
	struct top_figures *figures;
	struct top_state state;
	struct trust trust;
	char *text;
	size_t size;
};

static const char hostile[] = "ev\x1b[31mil\x07\xc2\x9b\xe2\x80\xae\n\xff\xe6\xbc\xa2\xcc\x81";

/* All rows, without trailing blanks. */
static void grid_dump(const struct grid *grid, FILE *out)
{
	for (int row = 0; row < grid->rows; row++) {
		const struct cell *cells = &grid->cells[row * grid->columns];
		int count = grid->columns;

		while (count && cells[count - 1].point == ' ')
			count--;
		for (int i = 0; i < count; i++) {
			char bytes[4];

			fwrite(bytes, 1, utf8_put(bytes, cells[i].point), out);
		}
		fputc('\n', out);
	}
}

static void setup(struct page *page)
{
	*page = (struct page){.model = top_model__new(), .window = window__new()};
	page->figures = calloc(1, sizeof(*page->figures));
	assert_true(page->model && page->window && page->figures);
	page->window->record.start_ns = START;
	top_state_init(&page->state);
}

static void teardown(struct page *page)
{
	top_model__free(page->model);
	window__free(page->window);
	free(page->figures);
	free(page->text);
}

static void add_slow(struct page *page, uint64_t number, uint64_t total_ns)
{
	const struct escalation escalation = {
		.judged = true,
		.usual_ns = 1000,
		.result.reason = ESCALATION_EFFICIENCY_LOW,
		.cause = {.kind = number % 2 ? CAUSE_LOCK_CONTENTION : CAUSE_SLEEP,
			  .time_ns = total_ns},
	};
	const struct step step = {
		.number = number,
		.complete = true,
		.record = {.tgid = 7,
			   .tid = 8,
			   .kind = 1,
			   .start_ns = START,
			   .end_ns = START + total_ns,
			   .thread_ns = total_ns},
	};

	assert_int_equal(top_model__add_step(page->model, page->window, &step), 0);
	top_model__add_escalation(page->model, page->window, &step, &escalation);
}

/* As it was drawn last, from what there is now. */
static const char *redraw(struct page *page, int rows, int columns, bool ascii)
{
	const struct top_view view = {
		.model = page->model,
		.figures = page->figures,
		.state = &page->state,
		.trust = &page->trust,
		.window = page->window,
		.notice = "",
		.cpu_percent = 1,
	};
	struct grid grid;
	FILE *out;

	free(page->text);
	assert_int_equal(grid_init(&grid, rows, columns, ascii), 0);
	top_draw(&grid, &view);
	out = open_memstream(&page->text, &page->size);
	grid_dump(&grid, out);
	fclose(out);
	grid_clear(&grid);
	return page->text;
}

static const char *draw(struct page *page, int rows, int columns, bool ascii)
{
	const struct fbt_cost cost = {.call_ps = 1000, .step_ns = 10};

	assert_int_equal(top_model__figures(page->model, START + 3 * NS_PER_S, page->state.kind,
					    page->figures),
			 0);
	trust_find(&page->trust, page->window, &cost, page->model, page->figures);
	return redraw(page, rows, columns, ascii);
}

/* No byte of a page is a control, whatever the target's names are. */
static void assert_harmless(const char *text, bool ascii)
{
	for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
		assert_true(*at == '\n' || *at >= ' ');
		assert_int_not_equal(*at, 0x7f);
		if (ascii)
			assert_true(*at < 0x7f);
	}
	assert_null(strstr(text, "\xc2\x9b"));
	assert_null(strstr(text, "\xe2\x80\xae"));
	assert_null(strstr(text, "\xe6\xbc\xa2"));
}

static void test_cells(void **state)
{
	struct grid grid;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(grid_init(&grid, 3, 40, false), 0);
	assert_int_equal(grid_text(&grid, 0, 38, -1, TOP_PLAIN, "abcdef"), 40);
	assert_int_equal(grid_text(&grid, 1, 0, 3, TOP_PLAIN, "abcdef"), 3);
	grid_text(&grid, 7, 0, -1, TOP_PLAIN, "outside");
	grid_text(&grid, -1, -5, -1, TOP_PLAIN, "outside");
	grid_text(&grid, 2, 0, -1, TOP_PLAIN, hostile);
	grid_block(&grid, 1, 5, 8, TOP_PLAIN);
	grid_block(&grid, 1, 6, 0, TOP_PLAIN);
	grid_dump(&grid, out);
	fclose(out);
	assert_harmless(text, false);
	assert_int_equal(
		strncmp(text, "                                      ab\nabc  \xe2\x96\x88\n", 49),
		0);
	assert_non_null(strstr(text, "\nev\\x1b[31mil\\x07\\xc2\\x9b"));
	free(text);
	grid_clear(&grid);
}

static void test_sizes(void **state)
{
	struct page page;

	setup(&page);
	for (uint64_t i = 1; i <= 40; i++)
		add_slow(&page, i, i * 1000);
	for (int rows = 1; rows < 60; rows += 1) {
		for (int columns = 1; columns < 160; columns += 13) {
			for (int at = TOP_PAGE_MAIN; at <= TOP_PAGE_HELP; at++) {
				page.state.page = (enum top_page)at;
				assert_harmless(draw(&page, rows, columns, columns % 2),
						columns % 2);
			}
		}
	}
	page.state.page = TOP_PAGE_MAIN;
	assert_non_null(strstr(draw(&page, 10, 70, false), "70x10 is too small: 60x16 at least"));
	draw(&page, 24, 80, false);
	assert_non_null(strstr(page.text, "SLOW STEPS newest first, 40 of 40"));
	assert_non_null(strstr(page.text, "#40"));
	assert_non_null(strstr(page.text, "p50 "));
	assert_non_null(strstr(page.text, "q quit"));
	teardown(&page);
}

static void test_no_step(void **state)
{
	struct page page;

	setup(&page);
	assert_non_null(strstr(draw(&page, 24, 80, false), "no step yet"));
	teardown(&page);
}

/* With time in each category of calls. */
static void add_long_slow(struct page *page)
{
	const struct escalation escalation = {.judged = true, .usual_ns = 1000};
	struct step step = {.number = 1, .complete = true};

	step.record.tgid = 7;
	step.record.tid = 8;
	step.record.kind = 1;
	step.record.start_ns = START;
	step.record.thread_ns = 10000;
	step.record.end_ns = START + step.record.thread_ns;
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		step.record.sums[i] = (struct fbt_sum){1000, 1, 0, 1000};
	assert_int_equal(top_model__add_step(page->model, page->window, &step), 0);
	top_model__add_escalation(page->model, page->window, &step, &escalation);
}

/* A small screen does not show all of a step. The rest is reached, and no key goes beyond it. */
static void test_long_step(void **state)
{
	struct page page;

	setup(&page);
	add_long_slow(&page);
	page.state.page = TOP_PAGE_STEP;
	page.state.selected = 1;
	assert_non_null(strstr(draw(&page, 60, 60, false), "gap before it"));
	assert_non_null(strstr(draw(&page, 16, 60, false), "process 7, thread 8"));
	assert_null(strstr(page.text, "gap before it"));
	for (int i = 0; i < 9; i++)
		top_press(&page.state, page.model, TOP_KEY_PAGE_DOWN);
	assert_non_null(strstr(draw(&page, 16, 60, false), "gap before it"));
	assert_null(strstr(page.text, "process 7, thread 8"));
	/* Between the title and the keys. */
	assert_int_equal(strncmp(page.text, "top ", 4), 0);
	assert_non_null(strstr(page.text, "gap before it 0 ns\nq quit"));
	teardown(&page);
}

static void know(struct page *page, uint32_t id, const char *function)
{
	const struct fbt_code code = {.id = id};

	assert_int_equal(
		window__add_code(page->window, &code, (const char *const[]){function, "/x", ""}),
		0);
}

/* Who held the lock is more than what all others did. */
static void test_others(void **state)
{
	struct page page;
	struct escalation escalation = {.judged = true, .usual_ns = 1000};
	const struct step step = {.number = 1, .complete = true};

	setup(&page);
	know(&page, 1, "Cache::evict");
	know(&page, 2, "Pool::wait");
	page.state.page = TOP_PAGE_STEP;
	page.state.selected = 1;
	escalation.cause.others[0] = (struct fbt_look_thread){
		.owner = 9, .threads = 1, .doing = FBT_DOING_CPU, .count = 1, .codes = {2}};
	escalation.cause.other_count = 1;
	top_model__add_escalation(page.model, page.window, &step, &escalation);
	assert_non_null(
		strstr(draw(&page, 40, 80, false), "meanwhile\n  thread 9 on a CPU: Pool::wait"));
	assert_null(strstr(page.text, "held in"));
	escalation.cause.holders[0] = (struct fbt_look_thread){
		.owner = 9, .depth = 1, .doing = FBT_DOING_CPU, .count = 1, .codes = {1}};
	escalation.cause.holder_count = 1;
	page.state.selected = 2;
	top_model__add_escalation(page.model, page.window, &step, &escalation);
	assert_non_null(strstr(draw(&page, 40, 80, false), "held in\n  Cache::evict"));
	assert_null(strstr(page.text, "meanwhile"));
	teardown(&page);
}

static void test_hang(void **state)
{
	struct page page;
	const struct fbt_hang hang = {
		.tgid = 7, .tid = 8, .kind = 1, .time_ns = START + 9, .step_start_ns = START};
	struct hang_look look = {.record = {.tgid = 7, .tid = 8, .start_ns = START, .threads = 4}};
	struct fbt_look_thread group = {.header.flags = FBT_LOOK_GROUP,
					.owner = 9,
					.threads = 3,
					.doing = FBT_DOING_CPU_WAIT,
					.count = 1,
					.codes = {2}};

	setup(&page);
	know(&page, 2, "Pool::wait");
	page.state.page = TOP_PAGE_STEP;
	page.state.selected = 1;
	assert_int_equal(vec_push(&look.threads, group), 0);
	assert_int_equal(window__add_hang_look(page.window, &look), 0);
	top_model__add_hang(page.model, page.window, &hang);
	assert_non_null(strstr(draw(&page, 40, 80, false),
			       "threads\n  3 threads waiting for a CPU: Pool::wait; 1 more"));
	teardown(&page);
}

/* One mark in the first line, and the reasons on a page of their own. */
static void test_trust(void **state)
{
	struct page page;

	setup(&page);
	add_slow(&page, 1, 1000000);
	assert_non_null(strstr(draw(&page, 24, 80, false), "lost 0  [ok]"));
	page.window->lost.count[FBT_LOST_STEPS] = 5;
	top_model__add_message(page.model, LOG_WARN, hostile);
	assert_non_null(strstr(draw(&page, 24, 80, false), "lost 5  [! 2: w]"));
	/* Those that the rate guard has cut off are not lost. */
	page.window->incomplete_steps = 3;
	page.window->sampling[1] = (struct fbt_sampling){.kind = 1, .cut_steps = 3};
	page.state.page = TOP_PAGE_TRUST;
	assert_null(strstr(draw(&page, 24, 80, false), "incomplete"));
	page.window->incomplete_steps = 4;
	assert_non_null(strstr(draw(&page, 24, 80, false), "1 of 0 steps are incomplete"));
	assert_non_null(strstr(draw(&page, 24, 80, false), "lost 5 steps: they are in no figure"));
	assert_harmless(page.text, false);
	teardown(&page);
}

static void press(struct page *page, const char *keys)
{
	for (; *keys; keys++)
		assert_int_equal(top_press(&page->state, page->model, (unsigned char)*keys),
				 TOP_NOTHING);
}

static void test_keys(void **state)
{
	const struct top_slow *list[TOP_SLOW];
	struct page page;

	setup(&page);
	for (uint64_t i = 1; i <= 10; i++)
		add_slow(&page, i, (i * 7 % 11) * 1000);
	assert_int_equal(top_press(&page.state, page.model, 'q'), TOP_QUIT);
	assert_int_equal(top_press(&page.state, page.model, 'd'), TOP_DUMP);
	press(&page, "o");
	assert_int_equal(top_list(&page.state, page.model, list), 10);
	assert_int_equal(list[0]->total_ns, 10000);
	assert_int_equal(list[9]->total_ns, 1000);
	press(&page, "ofSLEEP");
	assert_string_equal(page.state.filter, "SLEEP");
	assert_int_equal(top_list(&page.state, page.model, list), 5);
	top_press(&page.state, page.model, TOP_KEY_ESCAPE);
	assert_int_equal(top_list(&page.state, page.model, list), 10);
	/* The cursor stays on its step when others come. */
	press(&page, "jj");
	assert_int_equal(page.state.selected, 9);
	add_slow(&page, 11, 5000);
	press(&page, "k");
	assert_int_equal(page.state.selected, 10);
	press(&page, "p");
	add_slow(&page, 12, 5000);
	assert_int_equal(top_list(&page.state, page.model, list), 11);
	press(&page, "p");
	assert_int_equal(top_list(&page.state, page.model, list), 12);
	press(&page, "e");
	assert_non_null(strstr(draw(&page, 30, 100, false), "where its time went"));
	press(&page, "2");
	assert_int_equal(top_list(&page.state, page.model, list), 0);
	press(&page, "0");
	top_press(&page.state, page.model, TOP_KEY_ESCAPE);
	assert_int_equal(page.state.page, TOP_PAGE_MAIN);
	teardown(&page);
}

/* While the page is paused more steps come than are kept, records are lost, and the tool tells
 * something: what is read stays. */
static void test_pause(void **state)
{
	struct page page;
	char *before;

	setup(&page);
	add_slow(&page, 1, 1000000);
	add_slow(&page, 2, 2000000);
	draw(&page, 30, 100, false);
	press(&page, "p");
	before = strdup(draw(&page, 30, 100, false));
	assert_non_null(strstr(before, "PAUSED"));
	assert_non_null(strstr(before, "#2 "));
	page.window->lost.count[FBT_LOST_STEPS] = 5;
	for (uint64_t i = 0; i < 2 * TOP_SLOW; i++)
		add_slow(&page, 3 + i, (3 + i) * 20000000);
	assert_string_equal(redraw(&page, 30, 100, false), before);
	press(&page, "jj");
	assert_int_equal(page.state.selected, 1);
	press(&page, "p");
	assert_null(strstr(draw(&page, 30, 100, false), "PAUSED"));
	assert_non_null(strstr(page.text, "lost 5"));
	assert_null(strstr(page.text, "#2 "));
	free(before);
	teardown(&page);
}

/* The headline has what is not the engine's own code, and the parts that it is, the largest first.
 */
static void test_headline(void **state)
{
	struct step step = {
		.number = 1,
		.complete = true,
		.record = {.tgid = 7,
			   .tid = 8,
			   .kind = 1,
			   .start_ns = START + NS_PER_S,
			   .end_ns = START + NS_PER_S + 1000000,
			   .thread_ns = 1000000},
	};
	struct page page;

	setup(&page);
	step.record.sums[FBT_FUTEX] = (struct fbt_sum){.ns = 400000, .calls = 2};
	step.record.sums[FBT_READ] = (struct fbt_sum){.ns = 50000, .calls = 1};
	assert_int_equal(top_model__add_step(page.model, page.window, &step), 0);
	assert_non_null(strstr(draw(&page, 30, 100, false),
			       "\n45.0 % of step time is not the engine's own code: futex 40.0 %, "
			       "read 5.0 %\n"));
	assert_non_null(
		strstr(draw(&page, 30, 80, false),
		       "\n45.0 % of step time is not own code: futex 40.0 %, read 5.0 %\n"));
	teardown(&page);
}

/* The line of a page that begins so, up to its end or to a word. */
static const char *line_of(const char *page, const char *begin, const char *end)
{
	static char line[256];
	const char *at = strstr(page, begin);

	assert_non_null(at);
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
	at = strstr(line, end);
	assert_non_null(at);
	line[at - line] = '\0';
	return line;
}

/* What looks back is of all of them, and says so. */
static void test_one_kind(void **state)
{
	struct page page;

	setup(&page);
	add_slow(&page, 1, 20000);
	draw(&page, 24, 80, false);
	assert_non_null(strstr(line_of(page.text, "steps/s", "p50"), "\xe2\x96\x88"));
	assert_null(strstr(page.text, "of all"));
	page.state.kind = 1;
	draw(&page, 24, 80, false);
	assert_null(strstr(line_of(page.text, "steps/s", "p50"), "\xe2\x96\x88"));
	assert_non_null(strstr(page.text, "\np99 of all"));
	assert_non_null(strstr(page.text, "\nCAUSES 3.00 s of all functions  lock contention"));
	teardown(&page);
}

/* A filter is bounded, whatever is typed. */
static void test_typing(void **state)
{
	struct page page;

	setup(&page);
	press(&page, "f");
	for (int i = 0; i < 100; i++)
		top_press(&page.state, page.model, 'x');
	top_press(&page.state, page.model, 0x1b2);
	assert_int_equal(strlen(page.state.filter), TOP_FILTER_MAX - 1);
	for (int i = 0; i < 100; i++)
		top_press(&page.state, page.model, TOP_KEY_BACKSPACE);
	assert_string_equal(page.state.filter, "");
	teardown(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cells),	  cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_no_step),	  cmocka_unit_test(test_trust),
		cmocka_unit_test(test_long_step), cmocka_unit_test(test_others),
		cmocka_unit_test(test_hang),	  cmocka_unit_test(test_headline),
		cmocka_unit_test(test_keys),	  cmocka_unit_test(test_pause),
		cmocka_unit_test(test_typing),	  cmocka_unit_test(test_one_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "metrics/catalog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "metrics_fixture.h"

static char *read_page(void)
{
	FILE *file = fopen("docs/metrics.md", "r");
	char *text = calloc(1, 65536);

	assert_non_null(file);
	assert_non_null(text);
	assert_true(fread(text, 1, 65535, file) > 0);
	fclose(file);
	return text;
}

struct labels {
	char text[256];
};

static void keep_labels(void *ctx, const struct metric_point *point)
{
	struct labels *labels = ctx;

	labels->text[0] = '\0';
	for (size_t i = 0; i < point->label_count; i++) {
		strcat(labels->text, i ? ", " : "");
		strcat(labels->text, point->labels[i].name);
	}
}

/* A row is: | `name` | type | labels | meaning | */
static void the_page_has_each_metric_and_no_other(void **state)
{
	struct metrics_tally *tally = metrics_tally__new();
	struct metrics_run run = {.tracer = "t"};
	struct window *window = window_at(1000);
	struct step step = step_of(ENGINE_PID, 0, 2000, 5000);
	char *page = read_page(), row[1024], name[METRIC_NAME_SIZE];
	size_t rows = 0;

	assert_int_equal(metrics_tally__add_step(tally, window, &step), 0);
	for (size_t i = 0; i < metric_catalog_count; i++) {
		const struct metric *metric = &metric_catalog[i];
		struct labels labels = {""};

		metric->list(tally, &run, keep_labels, &labels);
		snprintf(row, sizeof(row), "\n| `%s` | %s | %s | %s |\n",
			 metric_full_name(metric, name), metric_type_name(metric->type),
			 labels.text, metric->help);
		if (!strstr(page, row))
			fail_msg("docs/metrics.md has no row %s", row);
	}
	for (const char *at = page; (at = strstr(at, "\n| `" METRIC_PREFIX)); at++)
		rows++;
	assert_int_equal(rows, metric_catalog_count);
	free(page);
	window__free(window);
	metrics_tally__free(tally);
}

static void names_follow_the_conventions(void **state)
{
	char name[METRIC_NAME_SIZE];

	for (size_t i = 0; i < metric_catalog_count; i++) {
		const struct metric *metric = &metric_catalog[i];

		metric_full_name(metric, name);
		assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_"), strlen(name));
		assert_int_equal(metric->type == METRIC_COUNTER,
				 !strcmp(name + strlen(name) - 6, "_total"));
		assert_null(strpbrk(metric->help, "\\\"\n|"));
		assert_true(metric->help[strlen(metric->help) - 1] == '.');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_page_has_each_metric_and_no_other),
		cmocka_unit_test(names_follow_the_conventions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

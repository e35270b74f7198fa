/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "metrics/prom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "metrics/otlp.h"
#include "metrics_fixture.h"

struct texts {
	char *prom;
	char *otlp;
};

/* One step of 3 ms in a hostile process. */
static struct texts write_both(void)
{
	struct metrics_tally *tally = metrics_tally__new();
	struct metrics_run run = {.tracer = "a\"b",
				  .start_unix_ns = UINT64_C(5500000000),
				  .now_unix_ns = UINT64_C(6000000001),
				  .is_up = true};
	struct window *window = window_at(1000);
	struct step step = step_of(ENGINE_PID, 1, 2000, 3000000);
	struct texts texts = {0};
	size_t size;
	FILE *out = open_memstream(&texts.prom, &size);
	struct json json = {0};

	add_process(window, ENGINE_PID, "x\"\n\\{} 1", "");
	add_kind(window, 1, "f<\"\xff>");
	assert_int_equal(metrics_tally__add_step(tally, window, &step), 0);
	prom_write(out, tally, &run);
	fclose(out);
	json.out = open_memstream(&texts.otlp, &size);
	otlp_metrics_write(&json, tally, &run,
			   &(struct otlp_metrics_source){NULL, "host", "host:4711.2"});
	fclose(json.out);
	window__free(window);
	metrics_tally__free(tally);
	return texts;
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no %s in %.3000s", part,
			 strstr(text, "_steps_total{") ? strstr(text, "_steps_total{") : text);
}

#define LABELS "tracer=\"a\\\"b\",engine=\"x\\\"\\\\n\\\\{} 1\",kind=\"f<\\\"\\\\xff>\",rank=\"\""

static void labels_cannot_break_out(void **state)
{
	struct texts texts = write_both();

	has(texts.prom, "\nferrum_bpftrace_steps_total{" LABELS "} 1\n");
	for (const char *line = texts.prom; *line; line = strchr(line, '\n') + 1)
		assert_true(!strncmp(line, "# ", 2) || !strncmp(line, "ferrum_bpftrace_", 16));
	free(texts.prom);
	free(texts.otlp);
}

/* Its first step hangs: that its last step ended in 1970 would be an alarm of its own. */
static void an_engine_without_a_step_has_no_last_one(void **state)
{
	struct metrics_tally *tally = metrics_tally__new();
	struct metrics_run run = {.tracer = "t"};
	struct window *window = window_at(1000);
	struct fbt_hang hang = {.tgid = ENGINE_PID, .kind = 1};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	add_process(window, ENGINE_PID, "e", "");
	add_kind(window, 1, "f");
	assert_int_equal(metrics_tally__add_hang(tally, window, &hang), 0);
	prom_write(out, tally, &run);
	fclose(out);
	has(text, "ferrum_bpftrace_hangs_total{");
	assert_null(strstr(text, "last_step_time_seconds{"));
	free(text);
	window__free(window);
	metrics_tally__free(tally);
}

static void values_are_in_base_units(void **state)
{
	struct texts texts = write_both();

	has(texts.prom, "# HELP ferrum_bpftrace_up 1 while");
	has(texts.prom, "# TYPE ferrum_bpftrace_step_duration_seconds histogram\n"
			"# UNIT ferrum_bpftrace_step_duration_seconds seconds\n");
	has(texts.prom, "_start_time_seconds{tracer=\"a\\\"b\"} 5.500000000\n");
	has(texts.prom, "_step_duration_seconds_bucket{" LABELS ",le=\"0.00276213586\"} 0\n");
	has(texts.prom, "_step_duration_seconds_bucket{" LABELS ",le=\"0.00390625\"} 1\n");
	has(texts.prom, "_step_duration_seconds_bucket{" LABELS ",le=\"+Inf\"} 1\n");
	has(texts.prom, "_step_duration_seconds_sum{" LABELS "} 0.003000000\n");
	has(texts.prom, "_step_duration_seconds_count{" LABELS "} 1\n");
	free(texts.prom);
	free(texts.otlp);
}

/* 3 ms is in the bucket from 2^(-68 / 8) to 2^(-67 / 8) s: 2.76 to 3.01 ms. */
static void otlp_has_the_same(void **state)
{
	struct texts texts = write_both();

	has(texts.otlp,
	    "{\"key\":\"service.instance.id\",\"value\":{\"stringValue\":\"host:4711.2\"}}");
	has(texts.otlp, "\"name\":\"ferrum_bpftrace_step_duration\"");
	has(texts.otlp, "\"count\":\"1\",\"sum\":0.003,\"scale\":3,\"zeroCount\":\"0\"");
	has(texts.otlp, "\"positive\":{\"offset\":-68,\"bucketCounts\":[\"1\"]}");
	has(texts.otlp, "\"unit\":\"s\",\"exponentialHistogram\"");
	has(texts.otlp, "\"startTimeUnixNano\":\"5500000000\",\"timeUnixNano\":\"6000000001\"");
	has(texts.otlp, "\"aggregationTemporality\":2,\"isMonotonic\":true");
	free(texts.prom);
	free(texts.otlp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_cannot_break_out),
		cmocka_unit_test(an_engine_without_a_step_has_no_last_one),
		cmocka_unit_test(values_are_in_base_units),
		cmocka_unit_test(otlp_has_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

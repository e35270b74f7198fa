/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "metrics/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#define HOUR 3600

/* Replaces the clock of metrics/metrics.c: the time of day differs from the machine's by that. */
static time_t set_s;

int clock_gettime(clockid_t id, struct timespec *time)
{
	int err = (int)syscall(SYS_clock_gettime, id, time);

	if (!err && id == CLOCK_REALTIME)
		time->tv_sec += set_s;
	return err;
}

/* The value in the file after the next update. */
static double value_of(struct metrics *metrics, const char *path, const char *name)
{
	char line[512];
	double value = -1;
	FILE *file;

	metrics__poll(metrics);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == '{')
			value = atof(strstr(line, "} ") + 2);
	}
	fclose(file);
	return value;
}

static void the_start_follows_a_clock_that_is_set(void **state)
{
	static const char start[] = "ferrum_bpftrace_start_time_seconds";
	char path[64];
	const struct metrics_options options = {.path = path, .interval_ns = 1};
	double now = (double)time(NULL), first;
	struct metrics *metrics;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/fbt_metrics_%d.prom", getpid());
	set_s = 0;
	metrics = metrics__new(&options);
	assert_non_null(metrics);
	first = value_of(metrics, path, start);
	assert_true(first > now - HOUR && first < now + HOUR);
	set_s = -8 * HOUR;
	now = first - 8 * HOUR;
	first = value_of(metrics, path, start);
	assert_true(first > now - 60 && first < now + 60);
	/* Not by a second: that would look like a reset of all counters. */
	set_s++;
	assert_true(value_of(metrics, path, start) == first);
	unlink(path);
	metrics__free(metrics);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_start_follows_a_clock_that_is_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

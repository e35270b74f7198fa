/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Reads for results.c what run.sh has left of each run. */
#ifndef FBT_TESTS_GPU_RUNS_H
#define FBT_TESTS_GPU_RUNS_H

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/json_read.h"
#include "base/vec.h"

enum mode { BARE, IDLE, ARMED, FULL, MODES };

static const char *const mode_names[MODES] = {"bare", "idle", "armed", "full"};

typedef VEC(double) double_vec;

/* The figures of one run from a tracer: gpu_arm, or the tool's profile. */
struct traced {
	bool is_there;
	bool armed;
	char status[32], detail[160], cupti[32], clock[32], library[256];
	double arm_ns, wall_ns; /* -1: unknown */
	double records, kernels, memcpys, memsets, apis;
	double joined, unjoined, violations, unmeasured;
	double cupti_dropped, ring_lost, no_buffer, unknown;
	double clock_error_ns, clock_steps, shim_ns;
	/* from the tool, about its steps */
	double steps, complete, busy_ns, idle_ns, view_ns, view_busy_ns, step_kernels;
};

struct run {
	char engine[32], variant[32];
	int round, status;
	enum mode mode;
	char device[128], engine_name[64];
	double runtime;
	bool gapless; /* events around a step enclose nothing but its work */
	double steps, done, wall_ns, gpu_ns, kernels;
	double median_ns; /* NaN: no steps */
	struct traced traced;
};

static double number(struct json_object *object, const char *key, double otherwise)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, key, &value) || !value)
		return otherwise;
	return json_object_is_type(value, json_type_boolean) ? json_object_get_boolean(value)
							     : json_object_get_double(value);
}

static void text(struct json_object *object, const char *key, char *to, size_t size)
{
	struct json_object *value;

	if (json_object_object_get_ex(object, key, &value) && value)
		snprintf(to, size, "%s", json_object_get_string(value));
}

static int compare_doubles(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

/* Sorts the values. NaN if there are none. */
static double median(double_vec *values)
{
	if (!values->count)
		return NAN;
	qsort(values->items, values->count, sizeof(double), compare_doubles);
	return (values->items[(values->count - 1) / 2] + values->items[values->count / 2]) / 2;
}

/* Calls on_line with each line that is valid JSON. A killed run may leave an incomplete line. */
static bool read_lines(const char *path, void (*on_line)(struct json_object *, void *), void *ctx)
{
	FILE *file = fopen(path, "r");
	char *line = NULL, error[160];
	size_t capacity = 0;
	ssize_t size;

	if (!file)
		return false;
	while ((size = getline(&line, &capacity, file)) > 0) {
		struct json_object *value = NULL;

		if (!json_read(line, (size_t)size, &value, error, sizeof(error)))
			on_line(value, ctx);
		json_object_put(value);
	}
	free(line);
	fclose(file);
	return true;
}

struct step_reader {
	struct run *run;
	double_vec lengths;
};

static void on_engine_line(struct json_object *line, void *ctx)
{
	struct step_reader *reader = ctx;
	struct run *run = reader->run;
	double start = number(line, "start_ns", -1), end = number(line, "end_ns", -1);

	if (start >= 0 && end >= start) {
		run->steps++;
		run->gpu_ns += number(line, "gpu_ns", 0);
		run->kernels += number(line, "kernels", 0);
		vec_push(&reader->lengths, end - start);
		return;
	}
	text(line, "device", run->device, sizeof(run->device));
	text(line, "engine", run->engine_name, sizeof(run->engine_name));
	run->runtime = number(line, "runtime", run->runtime);
	run->gapless = number(line, "gapless", run->gapless) != 0;
	run->done = number(line, "done", run->done);
	run->wall_ns = number(line, "wall_ns", run->wall_ns);
}

static void on_arm_line(struct json_object *line, void *ctx)
{
	struct traced *traced = ctx;

	traced->is_there = true;
	traced->armed = number(line, "armed", 0) != 0;
	text(line, "status", traced->status, sizeof(traced->status));
	text(line, "detail", traced->detail, sizeof(traced->detail));
	text(line, "cupti", traced->cupti, sizeof(traced->cupti));
	text(line, "clock", traced->clock, sizeof(traced->clock));
	text(line, "library", traced->library, sizeof(traced->library));
	traced->arm_ns = number(line, "arm_ns", -1);
	traced->wall_ns = number(line, "wall_ns", -1);
	traced->records = number(line, "records", 0);
	traced->kernels = number(line, "kernels", 0);
	traced->memcpys = number(line, "memcpys", 0);
	traced->memsets = number(line, "memsets", 0);
	traced->apis = number(line, "apis", 0);
	traced->joined = number(line, "joined", 0);
	traced->unjoined = number(line, "unjoined", 0);
	traced->violations = number(line, "violations", 0);
	traced->unmeasured = number(line, "unmeasured", 0);
	traced->cupti_dropped = number(line, "cupti_dropped", 0);
	traced->ring_lost = number(line, "ring_lost", 0);
	traced->no_buffer = number(line, "no_buffer", 0);
	traced->unknown = number(line, "unknown", 0);
	traced->clock_error_ns = number(line, "clock_error_ns", 0);
	traced->clock_steps = number(line, "clock_steps", 0);
	traced->shim_ns = number(line, "shim_ns", 0);
}

/* The profile's last line, about the whole window. */
static void read_window(struct json_object *shape, struct traced *traced)
{
	traced->is_there = true;
	traced->armed = number(shape, "gpu_armed", 0) != 0;
	text(shape, "gpu_status", traced->status, sizeof(traced->status));
	text(shape, "gpu_detail", traced->detail, sizeof(traced->detail));
	text(shape, "gpu_cupti", traced->cupti, sizeof(traced->cupti));
	text(shape, "gpu_clock", traced->clock, sizeof(traced->clock));
	text(shape, "gpu_library", traced->library, sizeof(traced->library));
	traced->arm_ns = number(shape, "gpu_arm_us", -1e-3) * 1e3;
	traced->records = number(shape, "gpu_records", 0);
	traced->kernels = number(shape, "gpu_kernels", 0);
	traced->memcpys = number(shape, "gpu_memcpys", 0);
	traced->memsets = number(shape, "gpu_memsets", 0);
	traced->apis = number(shape, "gpu_apis", 0);
	traced->joined = number(shape, "gpu_joined", 0);
	traced->unjoined = number(shape, "gpu_unjoined", 0);
	traced->violations = number(shape, "gpu_violations", 0);
	traced->unmeasured = number(shape, "gpu_unmeasured", 0);
	traced->cupti_dropped = number(shape, "gpu_cupti_dropped", 0);
	traced->ring_lost = number(shape, "gpu_ring_lost", 0);
	traced->no_buffer = number(shape, "gpu_no_buffer", 0);
	traced->unknown = number(shape, "gpu_unknown", 0);
	traced->clock_error_ns = number(shape, "gpu_clock_error_ns", 0);
	traced->clock_steps = number(shape, "gpu_clock_steps", 0);
	traced->shim_ns = number(shape, "gpu_shim_us", 0) * 1e3;
}

static void on_profile_line(struct json_object *line, void *ctx)
{
	struct traced *traced = ctx;
	struct json_object *shape, *stage_us;
	char event[32] = "", scope[32] = "";

	text(line, "event", event, sizeof(event));
	if (!json_object_object_get_ex(line, "shape", &shape) ||
	    !json_object_object_get_ex(line, "stage_us", &stage_us))
		return;
	if (!strcmp(event, "window_prof"))
		read_window(shape, traced);
	text(shape, "scope", scope, sizeof(scope));
	traced->steps += !strcmp(event, "step_prof");
	if (strcmp(event, "gpu_prof") || strcmp(scope, "step"))
		return;
	traced->complete += number(shape, "complete", 0);
	traced->step_kernels += number(shape, "kernels", 0);
	traced->busy_ns += number(shape, "busy_ns", 0);
	traced->idle_ns += number(shape, "idle_ns", 0);
	traced->view_ns += number(stage_us, "view", 0) * 1e3;
	traced->view_busy_ns += number(stage_us, "view_busy", 0) * 1e3;
}

/* Missing files leave their part empty: the run has failed, and its status says so. */
static void read_run(struct run *run, const char *folder)
{
	struct step_reader reader = {.run = run};
	char base[512], path[600];

	run->traced.arm_ns = run->traced.wall_ns = -1;
	snprintf(base, sizeof(base), "%s/%s.%s.%d.%s", folder, run->engine, run->variant,
		 run->round, mode_names[run->mode]);
	snprintf(path, sizeof(path), "%s.steps", base);
	read_lines(path, on_engine_line, &reader);
	run->median_ns = median(&reader.lengths);
	vec_free(&reader.lengths);
	snprintf(path, sizeof(path), "%s.arm", base);
	if (run->mode == ARMED)
		read_lines(path, on_arm_line, &run->traced);
	snprintf(path, sizeof(path), "%s.profile", base);
	if (run->mode == FULL)
		read_lines(path, on_profile_line, &run->traced);
}

#endif

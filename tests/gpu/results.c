/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * gpu_results FOLDER: the runs that run.sh left in FOLDER to FOLDER/results.json and a table on
 * stdout. FOLDER/runs has a line "ENGINE VARIANT ROUND MODE STATUS" for each, FOLDER/facts lines
 * "KEY VALUE" of the machine. Exit status: 0 if every check holds.
 */
#include "runs.h"

#define JOIN_LEAST	0.99
#define VIOLATIONS_MOST 0.001
#define SUM_SHARE	0.05
#define SUM_NS_PER_STEP 50000.0

struct results {
	const char *folder;
	VEC(struct run) runs;
	struct json json;
	FILE *checks; /* the JSON array of checks, as text */
	char *checks_text;
	size_t checks_size;
	int failed;
};

static bool is_same(const struct run *a, const struct run *b)
{
	return !strcmp(a->engine, b->engine) && !strcmp(a->variant, b->variant);
}

static int read_runs(struct results *results)
{
	char path[512], mode[16];
	FILE *file;
	int err = 0;

	snprintf(path, sizeof(path), "%s/runs", results->folder);
	file = fopen(path, "r");
	if (!file)
		return -errno;
	while (!err) {
		struct run run = {.median_ns = NAN};

		if (fscanf(file, "%31s %31s %d %15s %d", run.engine, run.variant, &run.round, mode,
			   &run.status) != 5)
			break;
		while (run.mode < MODES && strcmp(mode_names[run.mode], mode))
			run.mode++;
		if (run.mode == MODES)
			continue;
		read_run(&run, results->folder);
		err = vec_push(&results->runs, run);
	}
	fclose(file);
	return err;
}

static void write_facts(struct results *results)
{
	char path[512], line[1024];
	FILE *file;

	snprintf(path, sizeof(path), "%s/facts", results->folder);
	file = fopen(path, "r");
	json_object_begin(&results->json, "machine");
	while (file && fgets(line, sizeof(line), file)) {
		char *value = strchr(line, ' ');

		line[strcspn(line, "\n")] = 0;
		if (!value)
			continue;
		*value++ = 0;
		json_string(&results->json, line, value);
		results->failed += !strcmp(line, "cut_off");
	}
	json_object_end(&results->json);
	if (file)
		fclose(file);
}

/* One check of one variant. It is printed if it fails. */
static void check(struct results *results, const struct run *of, const char *name, bool ok,
		  double got)
{
	struct json json = {.out = results->checks};

	if (ftell(results->checks) > 0)
		fputc(',', results->checks);
	json_object_begin(&json, NULL);
	json_string(&json, "check", name);
	json_string(&json, "engine", of->engine);
	json_string(&json, "variant", of->variant);
	json_string(&json, "mode", mode_names[of->mode]);
	json_int(&json, "round", of->round);
	json_bool(&json, "ok", ok);
	json_double(&json, "got", got);
	json_object_end(&json);
	if (ok)
		return;
	results->failed++;
	printf("not ok - %s: %s %s, %s, round %d: %g\n", name, of->engine, of->variant,
	       mode_names[of->mode], of->round, got);
}

static bool is_close(double got, double truth, double steps)
{
	double off = fabs(got - truth);

	return off <= SUM_SHARE * truth || off <= SUM_NS_PER_STEP * steps;
}

/*
 * The first event is recorded before the first launch, and CUPTI makes launches slower: on an H100
 * a graph of 174 kernels began 230 us later. Where more than work is between the events, the time
 * from the first work to the last may be shorter, by what the GPU was idle.
 */
static bool is_view_close(const struct run *run)
{
	const struct traced *traced = &run->traced;
	double least = traced->view_ns + (run->gapless ? 0 : traced->idle_ns);

	if (is_close(traced->view_ns, run->gpu_ns, run->steps))
		return true;
	return traced->view_ns < run->gpu_ns &&
	       (least >= run->gpu_ns || is_close(least, run->gpu_ns, run->steps));
}

static void check_traced(struct results *results, const struct run *run)
{
	const struct traced *traced = &run->traced;
	double works = traced->joined + traced->unjoined;
	double lost = traced->cupti_dropped + traced->ring_lost + traced->no_buffer;

	check(results, run, "the shim was armed", traced->armed, traced->armed);
	if (!traced->armed)
		return;
	check(results, run, "at least 99 % of the work is joined to its call",
	      works > 0 && traced->joined >= JOIN_LEAST * works,
	      works > 0 ? traced->joined / works : 0);
	check(results, run, "at most 0.1 % of it began before its call",
	      traced->violations <= VIOLATIONS_MOST * works, traced->violations);
	check(results, run, "no record was dropped", lost == 0, lost);
	if (run->kernels > 0)
		check(results, run, "every kernel has a record", traced->kernels == run->kernels,
		      traced->kernels - run->kernels);
	if (run->mode != FULL)
		return;
	check(results, run, "every step was seen", traced->steps == run->steps,
	      traced->steps - run->steps);
	if (run->gpu_ns <= 0)
		return;
	check(results, run, "GPU time of steps is that of CUDA events, within 5 % or 50 us",
	      is_view_close(run), traced->view_ns / run->gpu_ns);
	if (run->gapless)
		check(results, run, "GPU busy time too, where nothing else is between the events",
		      is_close(traced->view_busy_ns, run->gpu_ns, run->steps),
		      traced->view_busy_ns / run->gpu_ns);
}

static void write_spread(struct json *json, const char *key, double_vec *values)
{
	double middle = median(values);

	json_object_begin(json, key);
	json_double(json, "median", middle);
	json_double(json, "min", values->count ? values->items[0] : NAN);
	json_double(json, "max", values->count ? values->items[values->count - 1] : NAN);
	json_uint(json, "rounds", values->count);
	json_object_end(json);
}

static const struct run *find_bare(const struct results *results, const struct run *of)
{
	vec_for_each (run, &results->runs) {
		if (is_same(run, of) && run->round == of->round && run->mode == BARE)
			return run;
	}
	return NULL;
}

static double rate(const struct run *run)
{
	return run->wall_ns > 0 ? run->done * 1e9 / run->wall_ns : NAN;
}

/* Compares each run with the bare run of its own round. */
static void write_mode(struct results *results, const struct run *first, enum mode mode)
{
	double_vec step_us = {0}, steps_per_s = {0}, slower = {0}, fewer = {0};
	struct json *json = &results->json;

	vec_for_each (run, &results->runs) {
		const struct run *bare = find_bare(results, run);

		if (!is_same(run, first) || run->mode != mode || run->status ||
		    isnan(run->median_ns))
			continue;
		vec_push(&step_us, run->median_ns / 1e3);
		if (!isnan(rate(run)))
			vec_push(&steps_per_s, rate(run));
		if (mode == BARE || !bare || bare->status || isnan(bare->median_ns))
			continue;
		vec_push(&slower, (run->median_ns / bare->median_ns - 1) * 100);
		if (!isnan(rate(run)) && !isnan(rate(bare)))
			vec_push(&fewer, (1 - rate(run) / rate(bare)) * 100);
	}
	if (step_us.count) {
		json_object_begin(json, mode_names[mode]);
		write_spread(json, "step_us", &step_us);
		write_spread(json, "steps_per_s", &steps_per_s);
		if (mode != BARE) {
			write_spread(json, "step_overhead_percent", &slower);
			write_spread(json, "throughput_lost_percent", &fewer);
		}
		json_object_end(json);
		printf("%-8s %-13s %-6s %10.1f us %9.1f steps/s", first->engine, first->variant,
		       mode_names[mode], median(&step_us), median(&steps_per_s));
		if (mode != BARE)
			printf("   %+6.2f %% of a step, %+6.2f %% of throughput", median(&slower),
			       -median(&fewer));
		putchar('\n');
	}
	vec_free(&step_us);
	vec_free(&steps_per_s);
	vec_free(&slower);
	vec_free(&fewer);
}

static void print_traced(const struct run *run)
{
	const struct traced *traced = &run->traced;
	double works = traced->joined + traced->unjoined;

	printf("%-8s %-13s %-6s %.0f records, %.4g %% joined, %.0f dropped, %.0f without times, "
	       "%.0f too early, clock %s +- %.0f ns, armed in %.1f ms",
	       run->engine, run->variant, mode_names[run->mode], traced->records,
	       works > 0 ? 100 * traced->joined / works : NAN,
	       traced->cupti_dropped + traced->ring_lost + traced->no_buffer, traced->unmeasured,
	       traced->violations, traced->clock, traced->clock_error_ns, traced->arm_ns / 1e6);
	if (run->mode == FULL && run->gpu_ns > 0)
		printf(", GPU time %.4g %% of CUDA events'", 100 * traced->view_ns / run->gpu_ns);
	putchar('\n');
}

static void write_traced(struct json *json, const struct run *run)
{
	const struct traced *traced = &run->traced;
	double works = traced->joined + traced->unjoined;

	json_object_begin(json, NULL);
	json_string(json, "mode", mode_names[run->mode]);
	json_int(json, "round", run->round);
	json_bool(json, "armed", traced->armed);
	json_string(json, "status", traced->status);
	json_string(json, "detail", traced->detail);
	json_string(json, "cupti", traced->cupti);
	json_string(json, "libcupti", traced->library);
	json_string(json, "clock", traced->clock);
	json_double(json, "clock_error_ns", traced->clock_error_ns);
	json_double(json, "clock_steps", traced->clock_steps);
	json_double(json, "arm_ns", traced->arm_ns < 0 ? NAN : traced->arm_ns);
	json_double(json, "attach_wall_ns", traced->wall_ns < 0 ? NAN : traced->wall_ns);
	json_double(json, "records", traced->records);
	json_double(json, "kernels", traced->kernels);
	json_double(json, "memcpys", traced->memcpys);
	json_double(json, "memsets", traced->memsets);
	json_double(json, "api_calls", traced->apis);
	json_double(json, "join_rate", works > 0 ? traced->joined / works : NAN);
	json_double(json, "causality_violations", traced->violations);
	json_double(json, "zero_timestamps", traced->unmeasured);
	json_double(json, "cupti_dropped", traced->cupti_dropped);
	json_double(json, "ring_lost", traced->ring_lost);
	json_double(json, "no_buffer", traced->no_buffer);
	json_double(json, "unknown_records", traced->unknown);
	json_double(json, "shim_ns", traced->shim_ns);
	json_double(json, "steps_made", run->steps);
	json_double(json, "cuda_events_ns", run->gpu_ns);
	if (run->mode == FULL) {
		json_double(json, "steps_seen", traced->steps);
		json_double(json, "steps_complete", traced->complete);
		json_double(json, "gpu_busy_in_steps_ns", traced->busy_ns);
		json_double(json, "gpu_view_ns", traced->view_ns);
		json_double(json, "gpu_busy_in_view_ns", traced->view_busy_ns);
		json_double(json, "view_to_cuda_events",
			    run->gpu_ns > 0 ? traced->view_ns / run->gpu_ns : NAN);
	}
	json_object_end(json);
}

/* All runs of one engine and variant, beginning with first. */
static void write_variant(struct results *results, const struct run *first)
{
	struct json *json = &results->json;

	json_object_begin(json, NULL);
	json_string(json, "engine", first->engine);
	json_string(json, "program", first->engine_name);
	json_string(json, "variant", first->variant);
	json_string(json, "device", first->device);
	json_double(json, "cuda_runtime", first->runtime);
	json_object_begin(json, "modes");
	for (enum mode mode = BARE; mode < MODES; mode++)
		write_mode(results, first, mode);
	json_object_end(json);
	json_array_begin(json, "traced");
	vec_for_each (run, &results->runs) {
		if (!is_same(run, first))
			continue;
		check(results, run, "it ran to its end",
		      !run->status && run->done > 0 && run->done == run->steps, run->status);
		if (run->mode < ARMED)
			continue;
		if (run->round == first->round && run->traced.armed)
			print_traced(run);
		write_traced(json, run);
		check_traced(results, run);
	}
	json_array_end(json);
	json_object_end(json);
}

static bool is_first(const struct results *results, const struct run *of)
{
	vec_for_each (run, &results->runs) {
		if (is_same(run, of))
			return run == of;
	}
	return false;
}

static int write_results(struct results *results)
{
	char path[512], final[512];

	snprintf(path, sizeof(path), "%s/results.json.part", results->folder);
	snprintf(final, sizeof(final), "%s/results.json", results->folder);
	results->json.out = fopen(path, "w");
	results->checks = open_memstream(&results->checks_text, &results->checks_size);
	if (!results->json.out || !results->checks)
		return -errno;
	json_object_begin(&results->json, NULL);
	write_facts(results);
	json_array_begin(&results->json, "results");
	vec_for_each (run, &results->runs) {
		if (is_first(results, run))
			write_variant(results, run);
	}
	json_array_end(&results->json);
	if (fclose(results->checks))
		return -ENOMEM;
	json_array_begin(&results->json, "checks");
	if (results->checks_size)
		json_raw(&results->json, NULL, results->checks_text);
	json_array_end(&results->json);
	json_bool(&results->json, "ok", results->runs.count && !results->failed);
	json_object_end(&results->json);
	fputc('\n', results->json.out);
	if (fclose(results->json.out) || rename(path, final))
		return -errno;
	return 0;
}

int main(int argc, char **argv)
{
	struct results results = {.folder = argv[1]};
	int err;

	if (argc != 2) {
		fputs("usage: gpu_results FOLDER\n", stderr);
		return 2;
	}
	err = read_runs(&results);
	if (!err)
		err = write_results(&results);
	if (err)
		fprintf(stderr, "gpu_results: %s: %s\n", argv[1], strerror(-err));
	else if (!results.runs.count)
		puts("not ok - nothing was run");
	err = err || results.failed || !results.runs.count;
	free(results.checks_text);
	vec_free(&results.runs);
	return err;
}

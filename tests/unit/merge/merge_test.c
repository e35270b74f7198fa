/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* From trace files to the merged one: what is said of the clock of the second trace. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <json-c/json.h>
#include "merge/merge.h"

#define OFFSET_US 8500 /* what the second clock is ahead */

struct fixture {
	char folder[32];
	char paths[2][64];
	char merged[64];
	char *table;
	size_t table_size;
	struct json_object *result;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	strcpy(fixture->folder, "/tmp/merge_test_XXXXXX");
	assert_non_null(mkdtemp(fixture->folder));
	for (int i = 0; i < 2; i++)
		snprintf(fixture->paths[i], sizeof(fixture->paths[i]), "%s/%c.json",
			 fixture->folder, 'a' + i);
	snprintf(fixture->merged, sizeof(fixture->merged), "%s/merged.json", fixture->folder);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 2; i++)
		unlink(fixture->paths[i]);
	unlink(fixture->merged);
	rmdir(fixture->folder);
	json_object_put(fixture->result);
	free(fixture->table);
	free(fixture);
	return 0;
}

static double random_up_to(uint64_t *seed, double limit)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return limit * (double)(*seed >> 40) / (double)(1 << 24);
}

/*
 * A rank with 20 steps of 64 all-reduces. seed: the same one makes the same all-reduces, which the
 * second rank enters up to 10 us apart. ranks: of the process group, or NULL.
 */
static void write_rank(const struct fixture *fixture, int rank, uint64_t seed, double jitter_us,
		       const char *ranks)
{
	FILE *out = fopen(fixture->paths[rank], "w");
	uint64_t own = (uint64_t)rank + 1;
	double us = 1000;

	assert_non_null(out);
	fprintf(out,
		"{\"baseTimeNanoseconds\":1764108000000000000,\"distributedInfo\":"
		"{\"rank\":%d},\"traceEvents\":[",
		rank);
	for (int i = 0; i < 20 * 64; i++) {
		double begin = us + (i % 2 ? 150 : 60) + random_up_to(&seed, jitter_us);
		double early = random_up_to(&own, 10);

		us = begin + 15 + (i % 64 == 63 ? 2000 + random_up_to(&seed, 50 * jitter_us) : 0);
		fprintf(out,
			"%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":"
			"\"ncclDevKernel_AllReduce_Sum_bf16_RING_LL\",\"pid\":%d,\"tid\":7,"
			"\"ts\":%.3f,\"dur\":%.3f",
			i ? "," : "", 100 + rank, begin - early + rank * OFFSET_US, 15 + early);
		if (ranks)
			fprintf(out,
				",\"args\":{\"Process Group Name\":\"1\","
				"\"Process Group Ranks\":\"%s\"}",
				ranks);
		fputc('}', out);
	}
	fputs("]}", out);
	assert_int_equal(fclose(out), 0);
}

/* Returns the second trace's clock, as the merged trace has it. */
static struct json_object *merge(struct fixture *fixture)
{
	char *const paths[] = {fixture->paths[0], fixture->paths[1]};
	FILE *out = open_memstream(&fixture->table, &fixture->table_size);
	struct json_object *clocks;

	assert_non_null(out);
	assert_int_equal(merge_traces(paths, 2, fixture->merged, out), 0);
	assert_int_equal(fclose(out), 0);
	fixture->result = json_object_from_file(fixture->merged);
	assert_non_null(fixture->result);
	assert_true(json_object_object_get_ex(fixture->result, "ferrum.merge", &clocks));
	return json_object_array_get_idx(clocks, 1);
}

static const char *text_of(struct json_object *clock, const char *key)
{
	return json_object_get_string(json_object_object_get(clock, key));
}

/* The time is not known to be right, and nothing says so. */
static void expect_not_known(struct fixture *fixture, struct json_object *clock)
{
	struct json_object *events = json_object_object_get(fixture->result, "traceEvents"), *value;

	assert_true(json_object_object_get_ex(clock, "error_ns", &value));
	assert_null(value);
	for (size_t i = 0; i < json_object_array_length(events); i++) {
		struct json_object *event = json_object_array_get_idx(events, i);
		struct json_object *args = json_object_object_get(event, "args"), *sure;

		if (json_object_object_get_ex(args, "sure", &sure))
			assert_false(json_object_get_boolean(sure));
	}
}

static void shared_collectives_give_the_clock(void **state)
{
	struct fixture *fixture = *state;
	struct json_object *clock, *error;

	for (int rank = 0; rank < 2; rank++)
		write_rank(fixture, rank, 1, 20, "[0, 1]");
	clock = merge(fixture);
	assert_string_equal(text_of(clock, "by"), "collectives");
	assert_true(json_object_object_get_ex(clock, "error_ns", &error));
	assert_in_range(json_object_get_int64(error), 0, 20000);
	assert_in_range(-json_object_get_int64(json_object_object_get(clock, "offset_ns")),
			OFFSET_US * 1000 - json_object_get_int64(error),
			OFFSET_US * 1000 + json_object_get_int64(error));
}

/* Tensor parallel on each node: the same kernels in the same rhythm, and none in common. */
static void collectives_of_each_node_give_no_clock(void **state)
{
	struct fixture *fixture = *state;
	struct json_object *clock;

	for (int rank = 0; rank < 2; rank++)
		write_rank(fixture, rank, (uint64_t)rank + 1, 20, NULL);
	clock = merge(fixture);
	assert_string_equal(text_of(clock, "by"), "wall_clock");
	assert_non_null(text_of(clock, "why"));
	expect_not_known(fixture, clock);
}

/* Of two groups in step there is nothing but their ranks that tells them apart. */
static void collectives_of_other_ranks_give_no_clock(void **state)
{
	struct fixture *fixture = *state;
	struct json_object *clock;

	write_rank(fixture, 0, 1, 20, "[0, 2]");
	write_rank(fixture, 1, 1, 20, "[1, 3]");
	clock = merge(fixture);
	assert_string_equal(text_of(clock, "by"), "wall_clock");
	assert_non_null(strstr(text_of(clock, "why"), "groups"));
	expect_not_known(fixture, clock);
}

static void a_place_that_is_guessed_has_no_error(void **state)
{
	struct fixture *fixture = *state;
	struct json_object *clock;

	for (int rank = 0; rank < 2; rank++)
		write_rank(fixture, rank, 1, 0, NULL);
	clock = merge(fixture);
	assert_string_equal(text_of(clock, "by"), "collectives");
	expect_not_known(fixture, clock);
	assert_non_null(strstr(fixture->table, "not known"));
}

/* A trace of another kind than write_rank() makes: a wall clock, and then its slices. */
static FILE *begin_trace_of(const struct fixture *fixture, int rank, const char *info)
{
	FILE *out = fopen(fixture->paths[rank], "w");

	assert_non_null(out);
	fprintf(out,
		"{\"baseTimeNanoseconds\":1764108000000000000,%s"
		"\"traceEvents\":[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,"
		"\"args\":{\"name\":\"engine\"}}",
		info, 100 + rank);
	return out;
}

static FILE *begin_trace(const struct fixture *fixture, int rank)
{
	char info[64];

	snprintf(info, sizeof(info), "\"distributedInfo\":{\"rank\":%d},", rank);
	return begin_trace_of(fixture, rank, info);
}

static void end_trace(FILE *out)
{
	fputs("]}", out);
	assert_int_equal(fclose(out), 0);
}

__attribute__((format(printf, 8, 9))) static void put(FILE *out, const char *cat, const char *name,
						      int pid, int tid, double us, double dur_us,
						      const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(out,
		",{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,"
		"\"ts\":%.3f,\"dur\":%.3f,\"args\":{",
		cat, name, pid, tid, us, dur_us);
	vfprintf(out, format, args);
	fputs("}}", out);
	va_end(args);
}

/* The engine runs two functions in turn, and PyTorch's profiler sees its iterations. */
static void write_steps(const struct fixture *fixture, int rank, int first)
{
	static const char *const functions[] = {"execute_model", "sample_tokens"};
	FILE *out = begin_trace(fixture, rank);
	char name[32];

	for (int i = first; i < 40; i++) {
		double us = 1000 + 5000 * i + (i % 2 ? 0 : 500 * rank);

		snprintf(name, sizeof(name), "ProfilerStep#%d", 1 + i - first);
		put(out, "user_annotation", name, 100 + rank, 7, us, 4000, "\"ferrum.step\":\"%s\"",
		    functions[i % 2]);
		snprintf(name, sizeof(name), "ProfilerStep#%d", 1000 + i);
		put(out, "user_annotation", name, 100 + rank, 8, us, 4000, "\"x\":0");
	}
	end_trace(out);
}

static void steps_of_windows_that_began_at_different_times_are_compared(void **state)
{
	struct fixture *fixture = *state;

	write_steps(fixture, 0, 0);
	write_steps(fixture, 1, 11);
	assert_string_equal(text_of(merge(fixture), "by"), "wall_clock");
	assert_non_null(strstr(fixture->table, "Late ranks: 58 steps of 2 ranks, late in 28"));
	assert_non_null(strstr(fixture->table, "left out: 22 "));
}

/* Without a step function, the windows began 30 ms apart. */
static void intervals_are_no_steps_that_ranks_make_together(void **state)
{
	struct fixture *fixture = *state;

	for (int rank = 0; rank < 2; rank++) {
		FILE *out = begin_trace(fixture, rank);

		for (int i = 0; i < 40; i++)
			put(out, "step", "interval", 100 + rank, 0,
			    1000 + 100000 * i + 30000 * rank, 100000,
			    "\"step\":%d,\"step_source\":\"interval\"", 1 + i);
		end_trace(out);
	}
	merge(fixture);
	assert_non_null(strstr(fixture->table, "no steps or collectives of two ranks"));
}

/* What the worst of the late ranks did, as the merged trace says. */
static const char *meanwhile(const struct fixture *fixture)
{
	struct json_object *events = json_object_object_get(fixture->result, "traceEvents"), *worst;
	double longest_us = 0;

	worst = NULL;
	for (size_t i = 0; i < json_object_array_length(events); i++) {
		struct json_object *event = json_object_array_get_idx(events, i);
		const char *cat = text_of(event, "cat");
		double us = json_object_get_double(json_object_object_get(event, "dur"));

		if (!cat || strcmp(cat, "late") != 0 || us <= longest_us)
			continue;
		longest_us = us;
		worst = event;
	}
	assert_non_null(worst);
	return text_of(json_object_object_get(worst, "args"), "meanwhile");
}

/* Step i of a rank: each in turn is late, so that both clocks are known well. */
struct turn {
	double us;
	int late_us;
};

static struct turn turn_of(int rank, int i)
{
	int late_us = i % 2 == rank ? 4000 : 0;

	return (struct turn){10000 + 20000 * i + late_us, late_us};
}

/* Threads that wait for work are in a call all the time. */
static void put_idle(FILE *out, int rank, int lane, double us)
{
	for (int tid = 8; tid < 12; tid++)
		put(out, "syscall", "futex", 100 + rank, lane + tid, us - 5000, 18000, "\"x\":0");
}

static void calls_of_threads_that_run_no_steps_are_not_what_it_did(void **state)
{
	struct fixture *fixture = *state;

	for (int rank = 0; rank < 2; rank++) {
		FILE *out = begin_trace(fixture, rank);

		for (int i = 0; i < 40; i++) {
			struct turn turn = turn_of(rank, i);

			put(out, "user_annotation", "ProfilerStep#1", 100 + rank, 7, turn.us,
			    4100 - turn.late_us, "\"ferrum.step\":\"all_reduce\"");
			put(out, "syscall", "clock_nanosleep", 100 + rank, 100000007,
			    turn.us - 3900, 3800, "\"x\":0");
			put_idle(out, rank, 100000000, turn.us);
		}
		end_trace(out);
	}
	merge(fixture);
	assert_string_equal(meanwhile(fixture), "clock_nanosleep 3.80 ms");
}

/* Of the steps of an async function no single thread is known. */
static void what_is_within_its_like_counts_once(void **state)
{
	struct fixture *fixture = *state;

	for (int rank = 0; rank < 2; rank++) {
		FILE *out = begin_trace(fixture, rank);

		for (int i = 0; i < 40; i++) {
			struct turn turn = turn_of(rank, i);

			put(out, "step", "all_reduce", 100 + rank, 5000000, turn.us,
			    4100 - turn.late_us, "\"polls\":2");
			put_idle(out, rank, 0, turn.us);
		}
		end_trace(out);
	}
	merge(fixture);
	assert_string_equal(meanwhile(fixture), "futex 4.00 ms");
}

/* 30 s with collectives, and with slices of a second that touch. */
static void write_drifting(const struct fixture *fixture, int rank, double drift)
{
	FILE *out = begin_trace(fixture, rank);
	double fast = 1 + drift;
	uint64_t seed = 1;

	for (double us = 1000; us < 30e6; us += 20000 + random_up_to(&seed, 60000))
		put(out, "kernel", "ncclDevKernel_AllReduce_x", rank, 7, us * fast, 20 * fast,
		    "\"x\":0");
	for (int i = 0; i < 30; i++)
		put(out, "cpu_op", "touching", 100 + rank, 9, i * 1e6 * fast, 1e6 * fast,
		    "\"x\":0");
	end_trace(out);
}

/* The largest gap or overlap between the touching slices of the second trace, in us. */
static double largest_gap(const struct fixture *fixture)
{
	struct json_object *events = json_object_object_get(fixture->result, "traceEvents");
	double end_us = -1, largest_us = 0;
	int count = 0;

	for (size_t i = 0; i < json_object_array_length(events); i++) {
		struct json_object *event = json_object_array_get_idx(events, i);
		double us = json_object_get_double(json_object_object_get(event, "ts"));

		if (json_object_get_int(json_object_object_get(event, "pid")) != 101 ||
		    json_object_get_int(json_object_object_get(event, "tid")) != 9)
			continue;
		if (count++)
			largest_us = fmax(largest_us, fabs(us - end_us));
		end_us = us + json_object_get_double(json_object_object_get(event, "dur"));
	}
	assert_int_equal(count, 30);
	return largest_us;
}

static void slices_that_touch_do_so_in_spite_of_a_drift(void **state)
{
	struct fixture *fixture = *state;

	for (int sign = -1; sign <= 1; sign += 2) {
		struct json_object *clock;

		write_drifting(fixture, 0, 0);
		write_drifting(fixture, 1, sign * 100e-6);
		json_object_put(fixture->result);
		free(fixture->table);
		clock = merge(fixture);
		assert_string_equal(text_of(clock, "by"), "collectives");
		assert_true(fabs(json_object_get_double(
				    json_object_object_get(clock, "drift_ppm"))) > 90);
		assert_true(largest_gap(fixture) < 0.0025);
	}
}

/* As PyTorch's profiler writes them without ProfilerStep: kernels are of process 0. */
static void write_device(const struct fixture *fixture, int rank, int hosts)
{
	FILE *out = begin_trace(fixture, rank);
	uint64_t seed = 1;
	double us = 10000;

	for (int i = 0; i < 100; i++, us += 20000 + random_up_to(&seed, 20000)) {
		int late_us = i % 2 == rank ? 4000 : 0;

		put(out, "kernel", "ncclDevKernel_AllReduce_x", 0, 7, us + late_us, 4100 - late_us,
		    "\"x\":0");
		for (int host = 0; host < hosts; host++)
			put(out, "cpu_op", "aten::linear", 100 + rank + 10 * host, 9,
			    us + late_us - 3900, 3800, "\"x\":0");
	}
	end_trace(out);
}

static void a_device_belongs_to_the_only_process_that_runs_on_a_cpu(void **state)
{
	struct fixture *fixture = *state;

	for (int rank = 0; rank < 2; rank++)
		write_device(fixture, rank, 1);
	merge(fixture);
	assert_non_null(strstr(fixture->table, "rank 0, pid 100 "));
	assert_non_null(strstr(fixture->table, "rank 1, pid 101 "));
	assert_string_equal(meanwhile(fixture), "aten::linear 3.80 ms");
}

static void a_device_whose_process_is_not_known_has_no_pid(void **state)
{
	struct fixture *fixture = *state;

	write_device(fixture, 0, 0);
	write_device(fixture, 1, 2);
	merge(fixture);
	assert_non_null(strstr(fixture->table, "rank 0 "));
	assert_null(strstr(fixture->table, "pid"));
}

/* Two GPUs of one process, in a trace without the number of its rank. */
static void without_ranks_devices_are_told_apart(void **state)
{
	struct fixture *fixture = *state;

	for (int rank = 0; rank < 2; rank++) {
		FILE *out = begin_trace_of(fixture, rank, "");

		for (int i = 0; i < 40; i++) {
			struct turn turn = turn_of(rank, i);

			for (int gpu = 0; gpu < 2; gpu++)
				put(out, "kernel", "ncclDevKernel_AllReduce_x", gpu, 7, turn.us,
				    4100 - turn.late_us, "\"x\":0");
			put(out, "cpu_op", "aten::linear", 100 + rank, 9, turn.us - 3900, 3800,
			    "\"x\":0");
		}
		end_trace(out);
	}
	merge(fixture);
	assert_non_null(strstr(fixture->table, ", GPU 0 "));
	assert_non_null(strstr(fixture->table, ", GPU 1 "));
}

/* torch.profiler before its traces had a base. */
static void times_since_1970_are_a_wall_clock(void **state)
{
	struct fixture *fixture = *state;
	struct json_object *base;

	for (int rank = 0; rank < 2; rank++) {
		FILE *out = fopen(fixture->paths[rank], "w");

		assert_non_null(out);
		fputs("{\"traceEvents\":[{\"ph\":\"M\",\"name\":\"x\",\"pid\":1}", out);
		put(out, "cpu_op", "aten::linear", 100 + rank, 9, 1764108000000000.0 + rank, 100,
		    "\"x\":0");
		end_trace(out);
	}
	assert_string_equal(text_of(merge(fixture), "by"), "wall_clock");
	assert_true(json_object_object_get_ex(fixture->result, "baseTimeNanoseconds", &base));
	assert_in_range(json_object_get_int64(base), 1764108000000000000, 1764108000000001000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(shared_collectives_give_the_clock),
		TEST(collectives_of_each_node_give_no_clock),
		TEST(collectives_of_other_ranks_give_no_clock),
		TEST(a_place_that_is_guessed_has_no_error),
		TEST(steps_of_windows_that_began_at_different_times_are_compared),
		TEST(intervals_are_no_steps_that_ranks_make_together),
		TEST(calls_of_threads_that_run_no_steps_are_not_what_it_did),
		TEST(slices_that_touch_do_so_in_spite_of_a_drift),
		TEST(a_device_belongs_to_the_only_process_that_runs_on_a_cpu),
		TEST(a_device_whose_process_is_not_known_has_no_pid),
		TEST(without_ranks_devices_are_told_apart),
		TEST(times_since_1970_are_a_wall_clock),
		TEST(what_is_within_its_like_counts_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include "gpu_step_fixture.h"
#include "output/jsonl.h"

struct fixture {
	struct window *window;
	struct step step;
	struct jsonl_gpu event;
	char *text;
};

static void add_process(struct fixture *fixture)
{
	struct fbt_gpu_state state = {.tgid = GPU_STEP_TGID,
				      .status = FBT_GPU_ARMED,
				      .clock_method = FBT_GPU_CLOCK_CALLBACK};
	struct fbt_gpu_device device = {.tgid = GPU_STEP_TGID, .id = 3};

	assert_int_equal(gpu_table_set_state(&fixture->window->gpus, &state, "", ""), 0);
	assert_int_equal(gpu_table_add_device(&fixture->window->gpus, &device, "NVIDIA \"X\""), 0);
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->window = window__new();
	assert_non_null(fixture->window);
	fixture->window->record.start_ns = 1000000000000;
	fixture->window->record.arch = FBT_ARCH_X86_64;
	fixture->step = (struct step){
		.number = 7,
		.record = {.tgid = GPU_STEP_TGID,
			   .tid = 43,
			   .kind = 1,
			   .start_ns = 1000000000000,
			   .end_ns = 1000000000000 + GPU_STEP_NS},
		.gpu = make_gpu(),
	};
	add_process(fixture);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	step_gpu_free(fixture->step.gpu);
	window__free(fixture->window);
	free(fixture->text);
	free(fixture);
	return 0;
}

static const char *fill(struct fixture *fixture, size_t index)
{
	struct json json = {0};
	size_t size;

	jsonl_gpu_fill(&fixture->event, fixture->window, &fixture->step, index);
	free(fixture->text);
	json.out = open_memstream(&fixture->text, &size);
	assert_non_null(json.out);
	json_object_begin(&json, NULL);
	json_fields_write(&json, "shape", &fixture->event.shape);
	json_fields_write(&json, "stage_us", &fixture->event.stage_us);
	json_object_end(&json);
	assert_int_equal(fclose(json.out), 0);
	return fixture->text;
}

static void expect(struct fixture *fixture, const char *part, bool present)
{
	if (!strstr(fixture->text, part) == present)
		fail_msg("%s: %s", part, fixture->text);
}

static uint64_t number_of(const struct json_fields *fields, const char *key)
{
	for (uint32_t i = 0; i < fields->count; i++) {
		if (!strcmp(fields->items[i].key, key))
			return fields->items[i].u;
	}
	fail_msg("%s is missing", key);
	return 0;
}

static void a_line_has_all_figures_of_a_step(void **state)
{
	fill(*state, 0);
	assert_string_equal(
		((struct fixture *)*state)->text,
		"{\"shape\":{\"bound\":\"wait\",\"bound_empty\":0.9,\"bound_full\":0.0,"
		"\"bound_idle\":0.274,\"bound_work\":0.775,\"busy_ns\":4400999,\"by_time\":1,"
		"\"calls_known\":true,\"clock\":\"callback\",\"clock_error_ns\":0,"
		"\"complete\":true,\"concurrency\":1.5,\"correlated_pct\":97.7778,"
		"\"cupti_dropped\":0,\"cupti_overhead_ns\":0,\"d2d_bytes\":0,\"d2h_bytes\":4096,"
		"\"device\":3,\"device_name\":\"NVIDIA \\\"X\\\"\",\"devices\":1,"
		"\"gpu_host_ns\":1400999,\"gpu_only_ns\":3000000,\"graph_launches\":0,"
		"\"graph_nodes\":40,\"h2d_bytes\":1048576,\"host_wait_ns\":1500001,"
		"\"idle_empty\":0.9,\"idle_ns\":1799001,\"joined\":44,\"kernels\":42,"
		"\"kind\":\"step\",\"launch_api_ns\":4000,\"launch_latency_ns\":6000,"
		"\"launch_ns\":199000,\"launches\":5,\"memcpys\":2,\"memset_bytes\":64,"
		"\"memsets\":1,\"missing\":0,\"p2p_bytes\":0,\"pageable\":0,\"pid\":42,"
		"\"queue_delay_ns\":1000,\"queue_depth\":1.5,\"queue_ns\":100000,"
		"\"ring_lost\":0,\"scope\":\"step\",\"sealed\":\"watermark\",\"shim_ns\":0,"
		"\"step\":7,\"tid\":43,\"total_ns\":6200000,\"unattributed_ns\":0,"
		"\"unmeasured\":0,\"view_end_us\":7001,\"view_start_us\":1,\"violations\":0,"
		"\"wait_behind_ns\":2000,\"wait_blocked_ns\":1100000,"
		"\"wait_blocked_ns.futex\":1100000,\"wait_syscall_ns\":0,"
		"\"wait_unknown_ns\":0,\"wait_user_ns\":400001,\"work_ns\":3100},"
		"\"stage_us\":{\"busy\":4400,\"comm\":0,\"cuda_internal\":2000,"
		"\"dependency\":96,\"exposed_comm\":0,\"exposed_copy\":400,"
		"\"exposed_syscall\":1100,\"gpu_host\":1400,\"gpu_only\":3000,"
		"\"host_wait\":1500,\"hta_host_wait\":1700,\"idle\":1799,\"kernel\":4000,"
		"\"kernel_wait\":4,\"launch\":199,\"memcpy\":500,\"memcpy_d2d\":0,"
		"\"memcpy_d2h\":200,\"memcpy_h2d\":300,\"memcpy_p2p\":0,\"memset\":1,"
		"\"overlapped_syscall\":200,\"queue\":100,\"sync\":3000,\"sync_spin\":1000,"
		"\"sync_tail\":50,\"sync_useful\":2900,\"tklqt\":25,\"total\":6200,"
		"\"transfer\":500,\"unattributed\":0,\"view\":7000,\"view_busy\":5000,"
		"\"wait_blocked\":1100,\"wait_syscall\":0,\"wait_unknown\":0,"
		"\"wait_user\":400}}");
}

static void what_adds_up_does_so_to_the_nanosecond(void **state)
{
	struct fixture *fixture = *state;
	const struct json_fields *shape = &fixture->event.shape;

	fill(fixture, 0);
	assert_int_equal(number_of(shape, "busy_ns") + number_of(shape, "idle_ns"),
			 number_of(shape, "total_ns"));
	assert_int_equal(number_of(shape, "host_wait_ns") + number_of(shape, "launch_ns") +
				 number_of(shape, "queue_ns") + number_of(shape, "unattributed_ns"),
			 number_of(shape, "idle_ns"));
	assert_int_equal(number_of(shape, "wait_blocked_ns") + number_of(shape, "wait_syscall_ns") +
				 number_of(shape, "wait_user_ns") +
				 number_of(shape, "wait_unknown_ns"),
			 number_of(shape, "host_wait_ns"));
}

static void no_field_is_left_out_for_want_of_room(void **state)
{
	struct fixture *fixture = *state;
	struct gpu_figures *all = &fixture->step.gpu->all;

	for (uint32_t i = 0; i < GPU_WAIT_CALLS_MAX; i++)
		all->wait_calls[i] = (struct gpu_wait_call){.nr = i, .ns = 10 - i};
	fill(fixture, 0);
	assert_in_range(fixture->event.shape.count, 1, JSON_FIELDS_MAX - 1);
	assert_in_range(fixture->event.stage_us.count, 1, JSON_FIELDS_MAX - 1);
	expect(fixture, "\"wait_syscall_ns.read\":10,", true);
}

static void without_calls_a_host_wait_has_no_parts(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.record.header.flags |= FBT_STEP_CALLS_UNKNOWN;
	fill(fixture, 0);
	expect(fixture, "\"wait_unknown_ns\":", true);
	expect(fixture, "\"wait_unknown\":", true);
	expect(fixture, "\"host_wait\":", true);
	expect(fixture, "wait_syscall", false);
	expect(fixture, "wait_user", false);
	expect(fixture, "\"wait_blocked\":", false);
	expect(fixture, "\"wait_blocked_ns\":", false);
}

static void what_is_not_known_is_left_out(void **state)
{
	struct fixture *fixture = *state;
	struct step_gpu *gpu = fixture->step.gpu;

	gpu->calls_known = false;
	gpu->bound_work = NAN;
	gpu->joined = 0;
	gpu->by_time = 0;
	gpu->all.queue_depth = NAN;
	gpu->all.launches = 0;
	gpu->all.view_start_ns = 0;
	gpu->all.view_end_ns = 0;
	fixture->step.record.tgid = 1;
	fill(fixture, 0);
	expect(fixture, "\"calls_known\":false", true);
	expect(fixture, "\"launches\":0", true);
	expect(fixture, "exposed_syscall", false);
	expect(fixture, "overlapped_syscall", false);
	expect(fixture, "cuda_internal", false);
	expect(fixture, "sync_spin", false);
	expect(fixture, "gpu_only", false);
	expect(fixture, "gpu_host", false);
	expect(fixture, "bound_work", false);
	expect(fixture, "correlated_pct", false);
	expect(fixture, "queue_depth", false);
	expect(fixture, "launch_latency_ns", false);
	expect(fixture, "view", false);
	expect(fixture, "clock\"", false);
	expect(fixture, "device_name", false);
}

static void a_step_without_work_has_a_line_without_a_device(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.gpu->devices.count = 0;
	assert_int_equal(jsonl_gpu_lines(fixture->step.gpu), 1);
	fill(fixture, 0);
	expect(fixture, "\"devices\":0", true);
	expect(fixture, "\"device\":", false);
}

static void several_devices_have_a_line_each_after_that_of_the_step(void **state)
{
	struct fixture *fixture = *state;
	struct gpu_figures other = make_figures();

	other.device = 5;
	other.busy_ns = 17;
	assert_int_equal(vec_push(&fixture->step.gpu->devices, other), 0);
	assert_int_equal(jsonl_gpu_lines(fixture->step.gpu), 3);
	fill(fixture, 0);
	expect(fixture, "\"scope\":\"step\"", true);
	fill(fixture, 2);
	expect(fixture, "\"scope\":\"device\"", true);
	expect(fixture, "\"device\":5", true);
	expect(fixture, "\"busy_ns\":17", true);
	expect(fixture, "\"complete\":true", true);
	expect(fixture, "bound", false);
	expect(fixture, "sync", false);
	expect(fixture, "exposed_syscall", false);
}

static void step_prof_has_the_figures_that_matter_most(void **state)
{
	struct fixture *fixture = *state;
	struct json_fields shape = {.count = 0}, stage_us = {.count = 0};

	jsonl_gpu_add_to_step(&shape, &stage_us, &fixture->step);
	assert_int_equal(number_of(&shape, "gpu_complete"), 1);
	assert_int_equal(number_of(&stage_us, "gpu_busy"), 4400);
	assert_int_equal(number_of(&stage_us, "gpu_idle"), 1799);
	assert_int_equal(number_of(&stage_us, "gpu_host_wait"), 1500);
	assert_int_equal(number_of(&stage_us, "gpu_launch"), 199);
	assert_int_equal(number_of(&stage_us, "gpu_queue"), 100);
}

static void graphs_are_known_by_their_launches(void **state)
{
	struct fixture *fixture = *state;
	struct step cpu_only = {0};

	assert_false(jsonl_gpu_has_graph(&cpu_only));
	assert_false(jsonl_gpu_has_graph(&fixture->step));
	fixture->step.gpu->all.graph_launches = 1;
	assert_true(jsonl_gpu_has_graph(&fixture->step));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_line_has_all_figures_of_a_step),
		TEST(what_adds_up_does_so_to_the_nanosecond),
		TEST(no_field_is_left_out_for_want_of_room),
		TEST(without_calls_a_host_wait_has_no_parts),
		TEST(what_is_not_known_is_left_out),
		TEST(a_step_without_work_has_a_line_without_a_device),
		TEST(several_devices_have_a_line_each_after_that_of_the_step),
		TEST(step_prof_has_the_figures_that_matter_most),
		TEST(graphs_are_known_by_their_launches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "escalation_fixture.h"
#include "base/json_read.h"
#include "output/kineto.h"
#include "commands/validate_trace.h"

#define START_NS    5000000000ull
#define REALTIME_NS 1790000000000000000ull
#define BASE_NS	    (REALTIME_NS - REALTIME_NS % (7889238 * 1000000000ull))
#define TGID	    70
#define TID	    71

struct fixture {
	struct window *window;
	struct classifier *classifier;
	struct step step;
	struct sink *sink;
	FILE *out;
	char *text;
	size_t size;
	struct gpu_records gpu;
};

static void add_name(struct fixture *fixture, uint32_t tgid, uint32_t id, uint32_t kind,
		     const char *name)
{
	struct fbt_gpu_name record = {.tgid = tgid, .id = id, .kind = kind};

	assert_int_equal(gpu_table_add_name(&fixture->window->gpus, &record, name), 0);
}

static int set_up(void **state)
{
	static const struct kineto_options options = {3, 8, "a/\"b\".json"};
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	fixture->window = window__new();
	fixture->classifier = make_classifier();
	fixture->window->record.start_ns = START_NS;
	fixture->window->record.realtime_ns = REALTIME_NS;
	fixture->window->record.arch = FBT_ARCH_X86_64;
	fixture->window->record.detail = FBT_DETAIL_ALL;
	fixture->window->kinds[1].name = strdup("llama_decode");
	fixture->window->kind_known[1] = true;
	add_name(fixture, TGID, 1, FBT_GPU_NAME_KERNEL, "_Z3mulPf");
	add_name(fixture, TGID, 2, FBT_GPU_NAME_API, "cudaLaunchKernel_v7000");
	add_name(fixture, TGID, 3, FBT_GPU_NAME_API, "cuLaunchKernel");
	fixture->step = (struct step){
		.number = 7,
		.kind_number = 1,
		.complete = true,
		.record = {.header.flags = FBT_STEP_NO_GAP,
			   .tgid = TGID,
			   .tid = TID,
			   .kind = 1,
			   .start_ns = START_NS + 1000,
			   .end_ns = START_NS + 101001,
			   .thread_ns = 100001},
	};
	fixture->out = open_memstream(&fixture->text, &fixture->size);
	fixture->sink = sink_kineto__new(fixture->out, &options);
	assert_non_null(fixture->sink);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	fixture->sink->free(fixture->sink);
	fclose(fixture->out);
	free(fixture->text);
	vec_free(&fixture->step.calls);
	gpu_records_free(&fixture->gpu);
	classifier__free(fixture->classifier);
	window__free(fixture->window);
	free(fixture);
	return 0;
}

static struct fbt_gpu_api *add_api(struct fixture *fixture, uint64_t at, uint64_t length,
				   uint32_t correlation)
{
	struct fbt_gpu_api api = {.tgid = TGID,
				  .tid = TID,
				  .start_ns = START_NS + at,
				  .end_ns = START_NS + at + length,
				  .correlation = correlation,
				  .cbid = 211,
				  .name = 2,
				  .api_class = FBT_GPU_API_LAUNCH};

	assert_int_equal(vec_push(&fixture->gpu.apis, api), 0);
	return &fixture->gpu.apis.items[fixture->gpu.apis.count - 1];
}

static struct fbt_gpu_work *add_kernel(struct fixture *fixture, uint64_t at, uint64_t length,
				       uint32_t correlation)
{
	struct fbt_gpu_work work = {.tgid = TGID,
				    .kind = FBT_GPU_KERNEL,
				    .start_ns = START_NS + at,
				    .end_ns = START_NS + at + length,
				    .device = 1,
				    .context = 2,
				    .stream = 7,
				    .correlation = correlation,
				    .name = 1,
				    .kernel = {.grid = {8, 1, 1}, .block = {64, 1, 1}}};

	assert_int_equal(vec_push(&fixture->gpu.works, work), 0);
	return &fixture->gpu.works.items[fixture->gpu.works.count - 1];
}

static void write_batch_of(struct fixture *fixture, uint32_t tgid)
{
	const struct gpu_batch batch = {tgid, 7, &fixture->gpu};
	struct sink *sink = fixture->sink;

	assert_int_equal(sink->write_gpu(sink, fixture->window, &batch), 0);
	fixture->gpu.works.count = fixture->gpu.apis.count = 0;
	fixture->gpu.syncs.count = fixture->gpu.overheads.count = 0;
}

static void write_batch(struct fixture *fixture)
{
	write_batch_of(fixture, TGID);
}

static void write_step(struct fixture *fixture)
{
	struct sink *sink = fixture->sink;

	assert_int_equal(sink->write_step(sink, fixture->window, &fixture->step), 0);
}

/* Ends the file, which must be valid. */
static void finish(struct fixture *fixture)
{
	struct sink *sink = fixture->sink;
	struct trace_facts facts;
	char error[256] = "";
	FILE *in;

	assert_int_equal(sink->finish(sink, fixture->window, fixture->classifier), 0);
	fflush(fixture->out);
	in = fmemopen(fixture->text, fixture->size, "r");
	assert_non_null(in);
	if (validate_trace(in, false, &facts, error, sizeof(error)) || !facts.is_trace)
		fail_msg("%s: %s", error, fixture->text);
	fclose(in);
}

static unsigned int count_of(struct fixture *fixture, const char *part)
{
	unsigned int count = 0;

	fflush(fixture->out);
	for (const char *at = fixture->text; (at = strstr(at, part)); at++)
		count++;
	return count;
}

static void expect(struct fixture *fixture, const char *part)
{
	if (count_of(fixture, part) != 1)
		fail_msg("%u times %s: %s", count_of(fixture, part), part, fixture->text);
}

static void expect_none(struct fixture *fixture, const char *part)
{
	if (count_of(fixture, part))
		fail_msg("%s: %s", part, fixture->text);
}

/* Time since the window began, in the file's form. */
static const char *ts(uint64_t ns, char text[64])
{
	ns += REALTIME_NS - BASE_NS;
	snprintf(text, 64, "\"ts\":%llu.%03llu", (unsigned long long)(ns / 1000),
		 (unsigned long long)(ns % 1000));
	return text;
}

static void empty_file_has_head_and_end(void **state)
{
	struct fixture *fixture = *state;

	finish(fixture);
	expect(fixture, "\"distributedInfo\": {\"rank\": 3, \"world_size\": 8}\n");
	expect(fixture, "\"traceName\":\"a/\\\"b\\\".json\"\n}\n");
	expect(fixture, "\"deviceProperties\":[]");
	expect_none(fixture, "cupti_version");
}

static void base_is_a_quarter_and_leads_back_to_both_clocks(void **state)
{
	struct fixture *fixture = *state;
	char text[64];

	write_step(fixture);
	finish(fixture);
	snprintf(text, sizeof(text), "\"baseTimeNanoseconds\":%llu\n", (unsigned long long)BASE_NS);
	expect(fixture, text);
	snprintf(text, sizeof(text), "\"ferrum.mono_base_ns\":%lld\n",
		 (long long)(START_NS - (REALTIME_NS - BASE_NS)));
	expect(fixture, text);
	expect(fixture, ts(1000, text));
	expect(fixture, "\"dur\":100.001,");
}

static void step_is_a_profiler_step_on_its_thread(void **state)
{
	struct fixture *fixture = *state;

	write_step(fixture);
	finish(fixture);
	expect(fixture, "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#7\","
			"\"pid\":70,\"tid\":71,");
	expect(fixture, "\"ferrum.step\":\"llama_decode\"");
	expect_none(fixture, "gpu_busy_us");
}

static void hang_is_beside_the_escalations_of_its_thread(void **state)
{
	struct fixture *fixture = *state;
	struct sink *sink = fixture->sink;
	const struct fbt_hang hang = {.tgid = 70, .tid = 71, .time_ns = 9, .step_start_ns = 2};

	assert_int_equal(sink->write_hang(sink, fixture->window, &hang), 0);
	finish(fixture);
	expect(fixture, "{\"ph\":\"X\",\"cat\":\"hang\",\"name\":\"hang\",\"pid\":70,"
			"\"tid\":200000071,");
	expect(fixture, "has not returned for 7 ns");
}

static void step_has_its_gpu_figures(void **state)
{
	struct fixture *fixture = *state;
	struct step_gpu gpu = {.complete = true, .bound = GPU_BOUND_LAUNCH};

	gpu.all.busy_ns = 60999;
	gpu.all.idle_ns = 39002;
	gpu.all.host_wait_ns = 20000;
	fixture->step.gpu = &gpu;
	write_step(fixture);
	expect(fixture, "\"gpu_bound\":\"launch\",\"gpu_busy_us\":60,\"gpu_host_wait_us\":20,"
			"\"gpu_idle_us\":39,\"gpu_launch_us\":0,\"gpu_queue_us\":0,");
	gpu.complete = false;
	write_step(fixture);
	expect(fixture, "\"gpu_complete\":false");
}

static void first_event_names_a_process(void **state)
{
	struct fixture *fixture = *state;
	char text[64], expected[160];

	add_api(fixture, 2000, 500, 5);
	add_kernel(fixture, 3000, 500, 5);
	write_batch(fixture);
	snprintf(expected, sizeof(expected),
		 "\"traceEvents\":[\n{\"name\":\"process_name\",\"ph\":\"M\",%s,\"pid\":70",
		 ts(0, text));
	expect(fixture, expected);
}

static void kernel_has_kinetos_args_in_order(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_gpu_device device = {.tgid = TGID, .id = 1, .sms = 4, .warp_size = 32};
	struct fbt_gpu_work *work;
	char text[64], expected[512];

	assert_int_equal(gpu_table_add_device(&fixture->window->gpus, &device, "GPU"), 0);
	add_api(fixture, 2000, 500, 5);
	work = add_kernel(fixture, 3001, 77, 5);
	work->kernel.static_shared = 1000;
	work->kernel.dynamic_shared = 24;
	work->kernel.registers = 40;
	work->graph = 3;
	work->graph_node = 9;
	write_batch(fixture);
	finish(fixture);
	snprintf(expected, sizeof(expected),
		 "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"mul(float*)\",\"pid\":1,\"tid\":7,%s,"
		 "\"dur\":0.077,\"args\":{\"queued\":0,\"device\":1,\"context\":2,\"stream\":7,"
		 "\"correlation\":5,\"registers per thread\":40,\"shared memory\":1024,"
		 "\"blocks per SM\":2.0,\"warps per SM\":4.0,\"grid\":[8,1,1],\"block\":[64,1,1],"
		 "\"graph id\":3,\"graph node id\":9}}",
		 ts(3001, text));
	expect(fixture, expected);
	expect(fixture, "{\"id\":1,\"name\":\"GPU\",\"totalGlobalMem\":0,\"computeMajor\":0,");
}

static void kernel_on_an_unknown_device_tells_nothing_by_sm(void **state)
{
	struct fixture *fixture = *state;

	add_kernel(fixture, 3000, 77, 5);
	write_batch(fixture);
	finish(fixture);
	expect_none(fixture, "per SM");
}

static void arrow_leads_from_the_call_to_all_its_work(void **state)
{
	struct fixture *fixture = *state;
	char text[64], expected[160];

	add_api(fixture, 2000, 500, 5)->api_class = FBT_GPU_API_GRAPH;
	add_kernel(fixture, 3000, 500, 5);
	add_kernel(fixture, 4000, 500, 5);
	write_batch(fixture);
	finish(fixture);
	snprintf(expected, sizeof(expected),
		 "{\"ph\":\"s\",\"id\":5,\"pid\":70,\"tid\":71,%s,\"cat\":\"ac2g\",\"name\":"
		 "\"ac2g\"}",
		 ts(2000, text));
	expect(fixture, expected);
	snprintf(expected, sizeof(expected),
		 "{\"ph\":\"f\",\"id\":5,\"pid\":1,\"tid\":7,%s,\"cat\":\"ac2g\",\"name\":\"ac2g\","
		 "\"bp\":\"e\"}",
		 ts(4000, text));
	expect(fixture, expected);
	assert_int_equal(count_of(fixture, "\"ph\":\"f\""), 2);
}

/* Chakra fails on two launches with the same correlation, and on two without one. */
static void nested_driver_calls_are_no_launches_to_chakra(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t i = 5; i < 7; i++) {
		struct fbt_gpu_api *nested;

		add_api(fixture, i * 1000, 500, i);
		nested = add_api(fixture, i * 1000 + 100, 300, i);
		nested->header.flags = FBT_GPU_API_DRIVER | FBT_GPU_API_NESTED;
		nested->name = 3;
		add_kernel(fixture, i * 1000 + 700, 100, i);
	}
	write_batch(fixture);
	finish(fixture);
	assert_int_equal(
		count_of(fixture, "\"cat\":\"cuda_uncorrelated\",\"name\":\"cuLaunchKernel\""), 2);
	assert_int_equal(count_of(fixture, "\"cat\":\"cuda_driver\""), 0);
	assert_int_equal(count_of(fixture, "\"ferrum.correlation\":5"), 1);
	assert_int_equal(count_of(fixture, "\"ph\":\"s\""), 2);
}

static void second_host_event_of_a_correlation_does_not_have_it(void **state)
{
	struct fixture *fixture = *state;

	add_api(fixture, 2000, 500, 5);
	add_api(fixture, 3000, 500, 5);
	write_batch(fixture);
	add_api(fixture, 4000, 500, 5);
	write_batch(fixture);
	finish(fixture);
	assert_int_equal(count_of(fixture, "\"correlation\":5"), 1);
	assert_int_equal(count_of(fixture, "\"ferrum.correlation\":5"), 2);
}

static void work_without_its_call_is_set_apart(void **state)
{
	struct fixture *fixture = *state;

	add_kernel(fixture, 3000, 500, 5);
	add_kernel(fixture, 4000, 500, 0);
	write_batch(fixture);
	/* The call comes later and gets no arrow, because the arrow's end is already written. */
	add_api(fixture, 2000, 500, 5);
	write_batch(fixture);
	finish(fixture);
	assert_int_equal(count_of(fixture, "\"cat\":\"kernel_uncorrelated\""), 2);
	expect(fixture, "\"ferrum.correlation\":5");
	expect(fixture, "\"correlation\":5}");
	expect_none(fixture, "ac2g");
}

static void work_that_comes_later_than_its_call_is_linked_without_an_arrow(void **state)
{
	struct fixture *fixture = *state;

	add_api(fixture, 2000, 500, 5);
	write_batch(fixture);
	add_kernel(fixture, 3000, 500, 5);
	write_batch(fixture);
	finish(fixture);
	expect(fixture, "\"cat\":\"kernel\"");
	expect_none(fixture, "ac2g");
}

static void unmeasured_work_is_not_drawn(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_gpu_work *work;

	add_api(fixture, 2000, 500, 5);
	work = add_kernel(fixture, 0, 0, 5);
	work->start_ns = work->end_ns = 0;
	write_batch(fixture);
	finish(fixture);
	expect_none(fixture, "mul(float*)");
	expect_none(fixture, "ac2g");
}

static void sync_has_no_stream_and_no_correlation_for_readers(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_gpu_sync sync = {.tgid = TGID,
				    .kind = FBT_GPU_SYNC_STREAM,
				    .start_ns = START_NS + 2100,
				    .end_ns = START_NS + 2400,
				    .correlation = 5,
				    .context = 2,
				    .stream = 7};

	add_api(fixture, 2000, 500, 5)->api_class = FBT_GPU_API_SYNC;
	add_kernel(fixture, 1500, 500, 4);
	assert_int_equal(vec_push(&fixture->gpu.syncs, sync), 0);
	sync.kind = FBT_GPU_SYNC_CONTEXT;
	sync.stream = FBT_GPU_NO_STREAM;
	sync.correlation = 6;
	assert_int_equal(vec_push(&fixture->gpu.syncs, sync), 0);
	write_batch(fixture);
	finish(fixture);
	expect(fixture,
	       "\"cat\":\"cuda_sync\",\"name\":\"Stream Sync\",\"pid\":1,\"tid\":1000007,");
	expect(fixture, "\"args\":{\"cuda_sync_kind\":\"Stream Sync\",\"wait_stream\":7,"
			"\"ferrum.correlation\":5,\"device\":1,\"context\":2}");
	expect(fixture, "\"name\":\"Context Sync\",\"pid\":1,\"tid\":999999,");
	expect(fixture,
	       "\"args\":{\"cuda_sync_kind\":\"Context Sync\",\"correlation\":6,\"device\":1,"
	       "\"context\":2}");
	assert_int_equal(count_of(fixture, "ac2g\",\"name"), 2);
}

static void copies_tell_kind_and_bandwidth(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_gpu_work *work = add_kernel(fixture, 3000, 1000, 0);

	work->kind = FBT_GPU_MEMCPY;
	memset(&work->kernel, 0, sizeof(work->kernel));
	work->copy.kind = FBT_GPU_COPY_H2D;
	work->copy.source_memory = FBT_GPU_MEMORY_PAGEABLE;
	work->copy.target_memory = FBT_GPU_MEMORY_DEVICE;
	work->copy.bytes = 1500;
	work = add_kernel(fixture, 5000, 0, 0);
	work->kind = FBT_GPU_MEMSET;
	memset(&work->kernel, 0, sizeof(work->kernel));
	work->copy.target_memory = FBT_GPU_MEMORY_DEVICE;
	work->copy.bytes = 64;
	write_batch(fixture);
	finish(fixture);
	expect(fixture, "\"name\":\"Memcpy HtoD (Pageable -> Device)\"");
	expect(fixture, "\"bytes\":1500,\"memory bandwidth (GB/s)\":1.5}");
	expect(fixture, "\"name\":\"Memset (Device)\"");
	expect(fixture, "\"memory bandwidth (GB/s)\":\"N/A\"}");
}

/* The two clocks differ by some ns, and a slice that exceeds its parent breaks the lane. */
static void call_that_sticks_out_of_its_step_is_cut(void **state)
{
	struct fixture *fixture = *state;

	write_step(fixture);
	add_api(fixture, 101000 - 500, 1000, 5);
	add_api(fixture, 101500, 1000, 6);
	write_batch(fixture);
	finish(fixture);
	expect(fixture, "\"dur\":0.501,");
	expect(fixture, "\"dur\":1.000,");
}

static void second_process_has_devices_and_correlations_of_its_own(void **state)
{
	struct fixture *fixture = *state;

	add_api(fixture, 2000, 500, 5);
	add_kernel(fixture, 3000, 500, 5);
	write_batch(fixture);
	add_api(fixture, 2000, 500, 5)->tgid = 90;
	add_kernel(fixture, 3000, 500, 5)->tgid = 90;
	write_batch_of(fixture, 90);
	finish(fixture);
	expect(fixture, "\"cat\":\"kernel\",\"name\":\"kernel\",\"pid\":5001001,\"tid\":7,");
	assert_int_equal(count_of(fixture, "\"correlation\":4294967301"), 2);
	assert_int_equal(count_of(fixture, "\"correlation\":5"), 2);
}

static void calls_and_escalations_have_lanes_of_their_own(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_call call = {.tgid = TGID,
				.tid = TID,
				.nr = 202,
				.start_ns = START_NS + 2500,
				.duration_ns = 10};
	struct escalation escalation = {.result.reason = ESCALATION_CV_EXCEEDED};
	struct sink *sink = fixture->sink;

	write_step(fixture);
	assert_int_equal(sink->write_escalation(sink, fixture->window, &fixture->step, &escalation),
			 0);
	assert_int_equal(vec_push(&fixture->step.calls, call), 0);
	assert_int_equal(sink->write_calls(sink, fixture->window, &fixture->step), 0);
	call.nr = 1;
	call.duration_ns = UINT64_MAX;
	assert_int_equal(sink->write_call(sink, fixture->window, &call), 0);
	finish(fixture);
	expect(fixture, "\"cat\":\"syscall\",\"name\":\"futex\",\"pid\":70,\"tid\":100000071,");
	expect(fixture, "\"cat\":\"syscall\",\"name\":\"write\",\"pid\":70,\"tid\":100000071,");
	expect(fixture, "\"cat\":\"escalation\",\"name\":\"escalation: ");
	expect(fixture, "{\"name\":\"thread 71 syscalls\"}");
	expect(fixture, "{\"name\":\"thread 71 escalations\"}");
}

static void overhead_is_apart_from_processes(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_gpu_overhead overhead = {.tgid = TGID,
					    .tid = TID,
					    .start_ns = START_NS + 10,
					    .end_ns = START_NS + 20,
					    .kind = FBT_GPU_OVERHEAD_COMMAND_BUFFER_FULL};

	assert_int_equal(vec_push(&fixture->gpu.overheads, overhead), 0);
	write_batch(fixture);
	finish(fixture);
	expect(fixture,
	       "\"cat\":\"overhead\",\"name\":\"Command Buffer Full\",\"pid\":-1,\"tid\":71,");
}

static void lanes_are_named_once(void **state)
{
	struct fixture *fixture = *state;

	for (int i = 0; i < 3; i++) {
		write_step(fixture);
		add_kernel(fixture, 3000 + 1000u * (unsigned int)i, 500, 0);
		write_batch(fixture);
	}
	expect(fixture, "{\"name\":\"stream 7 \"}");
	expect(fixture, "{\"labels\":\"GPU 1\"}");
	expect(fixture, "{\"name\":\"thread 71\"}");
	expect(fixture, "{\"labels\":\"CPU\"}");
}

/* Each event is a line, so a file that a killed tracer leaves can be repaired. */
static void each_event_is_a_line(void **state)
{
	struct fixture *fixture = *state;
	struct json_object *value = NULL;
	char error[64], *end;
	size_t size;

	write_step(fixture);
	add_kernel(fixture, 3000, 500, 0);
	write_batch(fixture);
	fflush(fixture->out);
	end = memrchr(fixture->text, '\n', fixture->size);
	assert_non_null(end);
	size = (size_t)(end - fixture->text);
	strcpy(end, "]}");
	assert_int_equal(json_read(fixture->text, size + 2, &value, error, sizeof(error)), 0);
	json_object_put(value);
}

static void names_of_the_target_are_escaped(void **state)
{
	struct fixture *fixture = *state;

	add_name(fixture, TGID, 1, FBT_GPU_NAME_KERNEL, "evil\"\n\x1b[2J\xff");
	add_kernel(fixture, 3000, 500, 0);
	write_batch(fixture);
	finish(fixture);
	expect(fixture, "\"name\":\"evil\\\"\\n\\u001b[2J\xef\xbf\xbd\"");
}

static void full_disk_gives_the_errno(void **state)
{
	static const struct kineto_options options = {0, 1, "x.json"};
	struct fixture *fixture = *state;
	FILE *full = fopen("/dev/full", "w");
	struct sink *sink = sink_kineto__new(full, &options);

	assert_int_equal(sink->finish(sink, fixture->window, fixture->classifier), -ENOSPC);
	sink->free(sink);
	fclose(full);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(empty_file_has_head_and_end),
		TEST(base_is_a_quarter_and_leads_back_to_both_clocks),
		TEST(step_is_a_profiler_step_on_its_thread),
		TEST(hang_is_beside_the_escalations_of_its_thread),
		TEST(step_has_its_gpu_figures),
		TEST(first_event_names_a_process),
		TEST(kernel_has_kinetos_args_in_order),
		TEST(kernel_on_an_unknown_device_tells_nothing_by_sm),
		TEST(arrow_leads_from_the_call_to_all_its_work),
		TEST(nested_driver_calls_are_no_launches_to_chakra),
		TEST(second_host_event_of_a_correlation_does_not_have_it),
		TEST(work_without_its_call_is_set_apart),
		TEST(work_that_comes_later_than_its_call_is_linked_without_an_arrow),
		TEST(unmeasured_work_is_not_drawn),
		TEST(sync_has_no_stream_and_no_correlation_for_readers),
		TEST(copies_tell_kind_and_bandwidth),
		TEST(call_that_sticks_out_of_its_step_is_cut),
		TEST(second_process_has_devices_and_correlations_of_its_own),
		TEST(calls_and_escalations_have_lanes_of_their_own),
		TEST(overhead_is_apart_from_processes),
		TEST(lanes_are_named_once),
		TEST(each_event_is_a_line),
		TEST(names_of_the_target_are_escaped),
		TEST(full_disk_gives_the_errno),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

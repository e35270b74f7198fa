/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "escalation_fixture.h"
#include "output/trace_encoder.h"
#include "output/trace_slices.h"

#define EPOCH_NS 1000000500ull

struct fixture {
	struct window *window;
	struct classifier *classifier;
	struct step step;
	struct sink *sink;
	FILE *out;
	char *text;
	size_t size;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct kind *kind;

	assert_non_null(fixture);
	fixture->window = window__new();
	fixture->classifier = make_classifier();
	fixture->window->record.start_ns = EPOCH_NS;
	fixture->window->record.arch = FBT_ARCH_X86_64;
	fixture->window->record.detail = FBT_DETAIL_ESCALATED;
	kind = &fixture->window->kinds[1];
	kind->name = strdup("llama_decode");
	kind->arg_names[0] = strdup("n_tokens");
	fixture->window->kind_known[1] = true;
	fixture->step = (struct step){
		.number = 7,
		.kind_number = 1,
		.complete = true,
		.record = {.header.flags = FBT_STEP_NO_GAP,
			   .tgid = 100,
			   .tid = 101,
			   .kind = 1,
			   .start_ns = EPOCH_NS + 1999,
			   .end_ns = EPOCH_NS + 1001000,
			   .thread_ns = 999001},
	};
	fixture->out = open_memstream(&fixture->text, &fixture->size);
	fixture->sink = sink_ferrum_trace__new(fixture->out);
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
	classifier__free(fixture->classifier);
	window__free(fixture->window);
	free(fixture);
	return 0;
}

static void write_step(struct fixture *fixture)
{
	struct sink *sink = fixture->sink;

	assert_int_equal(sink->write_step(sink, fixture->window, &fixture->step), 0);
}

static void write_calls(struct fixture *fixture)
{
	struct sink *sink = fixture->sink;

	assert_int_equal(sink->write_calls(sink, fixture->window, &fixture->step), 0);
}

static void write_escalation(struct fixture *fixture, const struct escalation *escalation)
{
	struct sink *sink = fixture->sink;

	assert_int_equal(sink->write_escalation(sink, fixture->window, &fixture->step, escalation),
			 0);
}

static void write_call(struct fixture *fixture, const struct fbt_call *call)
{
	struct sink *sink = fixture->sink;

	assert_int_equal(sink->write_call(sink, fixture->window, call), 0);
}

static void expect_trace(struct fixture *fixture, const char *expected)
{
	struct sink *sink = fixture->sink;

	assert_int_equal(sink->finish(sink, fixture->window, fixture->classifier), 0);
	assert_string_equal(fixture->text, expected);
}

static void expect_part(struct fixture *fixture, const char *part, bool present)
{
	fflush(fixture->out);
	if (!strstr(fixture->text, part) == present)
		fail_msg("%s: %s", part, fixture->text);
}

static struct fbt_call make_call(uint32_t nr, int64_t ret)
{
	return (struct fbt_call){.tgid = 100,
				 .tid = 102,
				 .nr = nr,
				 .ret = ret,
				 .start_ns = EPOCH_NS + 2500,
				 .duration_ns = 1000};
}

static void trace_that_cannot_be_written_gives_the_errno(void **state)
{
	struct fixture *fixture = *state;
	FILE *full = fopen("/dev/full", "w");
	struct sink *sink = sink_ferrum_trace__new(full);

	assert_int_equal(sink->finish(sink, fixture->window, fixture->classifier), -ENOSPC);
	sink->free(sink);
	fclose(full);
}

static void trace_reports_a_full_disk_at_the_step_that_meets_it(void **state)
{
	struct fixture *fixture = *state;
	FILE *full = fopen("/dev/full", "w");
	struct sink *sink;

	setvbuf(full, NULL, _IONBF, 0);
	sink = sink_ferrum_trace__new(full);
	assert_int_equal(sink->write_step(sink, fixture->window, &fixture->step), -ENOSPC);
	sink->free(sink);
	fclose(full);
}

static void trace_of_an_empty_window_is_an_empty_array(void **state)
{
	expect_trace(*state, "[]");
}

static void trace_has_the_seeds_form(void **state)
{
	struct fixture *fixture = *state;

	write_step(fixture);
	expect_trace(
		fixture,
		"[{\"name\":\"llama_decode\",\"cat\":\"step\",\"ph\":\"X\",\"ts\":1,\"dur\":1000,"
		"\"pid\":100,\"tid\":101,\"args\":{\"calls\":0,\"compute_us\":999,"
		"\"dominant\":\"none\",\"errors\":0,\"futex_us\":0,\"ioctl_us\":0,"
		"\"kind_number\":1,\"mmap_us\":0,\"other_us\":0,\"overhead_percent\":0.0,"
		"\"read_us\":0,\"step\":7,\"syscall_us\":0,\"write_us\":0}}]");
}

static void trace_puts_a_step_before_its_calls(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(vec_push(&fixture->step.calls, make_call(0, 5)), 0);
	write_step(fixture);
	write_calls(fixture);
	expect_part(fixture,
		    "\"write_us\":0}},{\"name\":\"read\",\"cat\":\"syscall\",\"ph\":\"X\",\"ts\":2,"
		    "\"dur\":1,\"pid\":100,\"tid\":102,\"args\":{\"ret\":5}}",
		    true);
}

static void trace_names_the_error_of_a_call(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_call call = make_call(202, -11);

	write_call(fixture, &call);
	expect_part(fixture, "\"args\":{\"errno\":\"EAGAIN\",\"ret\":-11}", true);
	call = make_call(202, -512);
	write_call(fixture, &call);
	expect_part(fixture, "\"args\":{\"errno\":\"ERESTARTSYS\",\"ret\":-512}", true);
}

static void trace_takes_an_address_for_no_error(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_call call = make_call(9, -4096);

	write_call(fixture, &call);
	expect_part(fixture, "\"args\":{\"ret\":-4096}", true);
	call = make_call(9, INT64_MIN);
	write_call(fixture, &call);
	expect_part(fixture, "\"args\":{\"ret\":-9223372036854775808}", true);
}

static void trace_marks_a_call_that_did_not_return(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_call call = make_call(202, -11);

	call.header.flags = FBT_CALL_UNFINISHED;
	write_call(fixture, &call);
	expect_part(fixture, "\"args\":{\"truncated\":true}", true);
}

static void trace_labels_a_call_without_a_name(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_call call = make_call(500, 0);

	write_call(fixture, &call);
	expect_part(fixture, "{\"name\":\"syscall_500\"", true);
}

static void trace_begins_at_0_for_what_was_open_already(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_call call = make_call(0, 0);

	call.start_ns = EPOCH_NS - 5000;
	call.duration_ns = 8000;
	write_call(fixture, &call);
	expect_part(fixture, "\"ts\":0,\"dur\":3,", true);
	call.duration_ns = UINT64_MAX;
	write_call(fixture, &call);
	expect_part(fixture, "\"ts\":0,\"dur\":18446744072709551,", true);
}

static void trace_slices_nest_after_rounding(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_call call = make_call(0, 0);

	/* 1.999 to 1001.000 us. Rounding the duration would end the call 1 us after its step. */
	call.start_ns = EPOCH_NS + 1999;
	call.duration_ns = 999001;
	write_call(fixture, &call);
	expect_part(fixture, "\"ts\":1,\"dur\":1000,", true);
}

static void trace_holds_calls_of_a_step_only_when_they_are_evidence(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(vec_push(&fixture->step.calls, make_call(0, 5)), 0);
	write_step(fixture);
	expect_part(fixture, "\"cat\":\"syscall\"", false);
	write_calls(fixture);
	expect_part(fixture, "\"cat\":\"syscall\"", true);
}

static void trace_shows_what_a_call_worked_on(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_file file = {.id = 1, .fd = 3};
	struct fbt_call call = make_call(0, 5);

	assert_int_equal(window__add_file(fixture->window, &file, "/models/\x1b\xff"), 0);
	call.header.flags = FBT_CALL_ARGS;
	call.file = 1;
	write_call(fixture, &call);
	expect_part(fixture,
		    "\"args\":{\"fd\":3,\"path\":\"/models/\\u001b\xef\xbf\xbd\",\"ret\":5}", true);
}

static void trace_shows_what_is_wrong_with_a_step(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.complete = false;
	fixture->step.calls_truncated = true;
	fixture->step.record.lost_calls = 3;
	fixture->step.record.end = FBT_END_UNWOUND;
	write_step(fixture);
	expect_part(fixture, "\"calls_truncated\":true,\"complete\":false,", true);
	expect_part(fixture, "\"end\":\"unwound\",", true);
	expect_part(fixture, "\"lost_calls\":3,", true);
}

static void trace_shows_the_gap_if_there_was_a_step_before(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.record.header.flags = 0;
	fixture->step.record.gap_ns = 5999;
	write_step(fixture);
	expect_part(fixture, "\"gap_us\":5,", true);
}

static void trace_shows_step_arguments_that_were_read(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.record.args[0] = -3;
	write_step(fixture);
	expect_part(fixture, "n_tokens", false);
	fixture->step.record.arg_mask = 1;
	write_step(fixture);
	expect_part(fixture, "\"mmap_us\":0,\"n_tokens\":-3,\"other_us\":0", true);
}

static void trace_keeps_step_arguments_and_figures_apart(void **state)
{
	struct fixture *fixture = *state;

	free(fixture->window->kinds[1].arg_names[0]);
	fixture->window->kinds[1].arg_names[0] = strdup("calls");
	fixture->step.record.arg_mask = 1;
	fixture->step.record.args[0] = 9;
	write_step(fixture);
	expect_part(fixture, "\"args\":{\"arg0.calls\":9,\"calls\":0,", true);
}

static void trace_says_that_steps_are_intervals(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.record.kind = 0;
	write_step(fixture);
	expect_part(fixture, "{\"name\":\"interval\",\"cat\":\"step\"", true);
	expect_part(fixture, "\"step_source\":\"interval\"", true);
}

static void trace_has_a_slice_over_an_escalated_step(void **state)
{
	struct fixture *fixture = *state;
	struct escalation escalation = make_escalation();

	write_step(fixture);
	write_escalation(fixture, &escalation);
	/*
	 * The escalation follows its step: of two slices with equal times, the later one is the
	 * inner one.
	 */
	expect_part(fixture,
		    "\"write_us\":0}},{\"name\":\"escalation: efficiency_low\","
		    "\"cat\":\"escalation\",\"ph\":\"X\",\"ts\":1,\"dur\":1000,\"pid\":100,"
		    "\"tid\":101,\"args\":{\"brick.actual_us\":\"312400\","
		    "\"brick.budget_us\":\"21000\",\"brick.efficiency\":\"6.7\","
		    "\"brick.name\":\"llama_decode\",\"brick.over_budget\":\"true\","
		    "\"cause\":\"lock_contention\",\"cause_evidence\":\"",
		    true);
	expect_part(fixture,
		    "\",\"class_steps\":64,\"cv_percent\":12.35,"
		    "\"escalation.reason\":\"efficiency_low\",\"fired\":\"efficiency_low\","
		    "\"syscall.dominant\":\"futex\",\"syscall.overhead_percent\":\"93.3\"}}",
		    true);
}

static void trace_leaves_out_what_is_not_shown(void **state)
{
	struct fixture *fixture = *state;
	struct escalation escalation = make_escalation();

	escalation.suppressed = true;
	write_escalation(fixture, &escalation);
	escalation.suppressed = false;
	escalation.repeated = true;
	write_escalation(fixture, &escalation);
	expect_trace(fixture, "[]");
}

static void trace_says_that_an_escalated_step_is_incomplete(void **state)
{
	struct fixture *fixture = *state;
	struct escalation escalation = make_escalation();

	fixture->step.complete = false;
	escalation.cv_percent = NAN;
	write_escalation(fixture, &escalation);
	expect_part(fixture, "\",\"class_steps\":64,\"complete\":false,\"escalation.reason\"",
		    true);
}

static void trace_keeps_an_escalated_interval_beside_the_threads(void **state)
{
	struct fixture *fixture = *state;
	struct escalation escalation = make_escalation();

	fixture->step.record.kind = 0;
	write_escalation(fixture, &escalation);
	expect_part(fixture, "\"pid\":100,\"tid\":0,\"args\"", true);
}

static void trace_can_be_read_before_it_is_finished(void **state)
{
	struct fixture *fixture = *state;

	/* The first event is flushed at once, because the last flush was more than a second ago. */
	write_step(fixture);
	assert_true(fixture->size > 100);
}

struct gpu_fixture {
	struct gpu_records records;
	struct step_gpu step;
};

static void add_gpu_name(struct fixture *fixture, uint32_t id, uint32_t kind, const char *name)
{
	struct fbt_gpu_name record = {.tgid = 100, .id = id, .kind = kind};

	assert_int_equal(gpu_table_add_name(&fixture->window->gpus, &record, name), 0);
}

/* Writes the GPU records of the fixture's step. */
static void write_gpu(struct fixture *fixture, const struct gpu_fixture *gpu)
{
	const struct gpu_batch batch = {100, 7, &gpu->records};
	struct sink *sink = fixture->sink;

	assert_int_equal(sink->write_gpu(sink, fixture->window, &batch), 0);
}

static void clear_gpu(struct gpu_fixture *gpu)
{
	gpu_records_free(&gpu->records);
	gpu_records_free(&gpu->step.records);
}

static struct fbt_gpu_work make_kernel(uint32_t device, uint32_t stream)
{
	return (struct fbt_gpu_work){.tgid = 100,
				     .kind = FBT_GPU_KERNEL,
				     .start_ns = EPOCH_NS + 10999,
				     .end_ns = EPOCH_NS + 12000,
				     .device = device,
				     .stream = stream,
				     .correlation = 5,
				     .name = 1,
				     .kernel = {.grid = {8, 2, 1}, .block = {64, 1, 1}}};
}

static struct fbt_gpu_api make_api(uint64_t at, uint64_t length)
{
	return (struct fbt_gpu_api){.tgid = 100,
				    .tid = 101,
				    .start_ns = EPOCH_NS + at,
				    .end_ns = EPOCH_NS + at + length,
				    .correlation = 5,
				    .name = 2};
}

static void work_of_gpus_has_lanes_by_device_and_stream(void **state)
{
	struct fixture *fixture = *state;
	struct gpu_fixture gpu = {0};
	struct fbt_gpu_work copy = make_kernel(0, 14);

	add_gpu_name(fixture, 1, FBT_GPU_NAME_KERNEL, "_Z3mulPf");
	vec_push(&gpu.records.works, make_kernel(2, 7));
	memset(&copy.kernel, 0, sizeof(copy.kernel));
	copy.kind = FBT_GPU_MEMCPY;
	copy.copy.kind = FBT_GPU_COPY_D2H;
	copy.copy.source_memory = FBT_GPU_MEMORY_DEVICE;
	copy.copy.target_memory = FBT_GPU_MEMORY_PAGEABLE;
	copy.copy.bytes = 64;
	copy.graph = 3;
	vec_push(&gpu.records.works, copy);
	/* It begins before the work ahead of it in its stream has ended. */
	copy.kind = FBT_GPU_MEMSET;
	copy.correlation = 0;
	vec_push(&gpu.records.works, copy);
	write_gpu(fixture, &gpu);
	expect_trace(
		fixture,
		"[{\"name\":\"mul(float*)\",\"cat\":\"kernel\",\"ph\":\"X\",\"ts\":10,\"dur\":2,"
		"\"pid\":100,\"tid\":10200007,\"args\":{\"block\":\"64x1x1\",\"correlation\":5,"
		"\"grid\":\"8x2x1\",\"step\":7}},"
		"{\"name\":\"Memcpy DtoH (Device -> "
		"Pageable)\",\"cat\":\"gpu_memcpy\",\"ph\":\"X\","
		"\"ts\":10,\"dur\":2,\"pid\":100,\"tid\":10000014,\"args\":{\"bytes\":64,"
		"\"correlation\":5,\"graph\":3,\"step\":7}},"
		"{\"name\":\"Memset (Pageable)\",\"cat\":\"gpu_memset\",\"ph\":\"X\",\"ts\":10,"
		"\"dur\":2,\"pid\":100,\"tid\":10050014,\"args\":{\"bytes\":64,\"graph\":3,"
		"\"step\":7}}]");
	clear_gpu(&gpu);
}

/* Whatever its number, a stream must not use a lane of the next device. */
static void streams_beyond_a_devices_lanes_share_the_last(void **state)
{
	struct fixture *fixture = *state;
	struct gpu_fixture gpu = {0};

	vec_push(&gpu.records.works, make_kernel(0, 49998));
	vec_push(&gpu.records.works, make_kernel(1, 100000));
	vec_push(&gpu.records.works, make_kernel(UINT32_MAX, UINT32_MAX));
	write_gpu(fixture, &gpu);
	expect_part(fixture,
		    "\"tid\":10049998,\"args\":{\"block\":\"64x1x1\",\"correlation\":5,"
		    "\"grid\":\"8x2x1\",\"step\":7}",
		    true);
	expect_part(fixture, "\"tid\":10149999,", true);
	expect_part(fixture, "\"stream\":100000}", true);
	expect_part(fixture, "\"tid\":4010049999,", true);
	clear_gpu(&gpu);
}

static void calls_to_cuda_are_on_their_thread_and_end_in_its_step(void **state)
{
	struct fixture *fixture = *state;
	struct gpu_fixture gpu = {0};
	struct fbt_gpu_api other = make_api(1000000, 2000);

	add_gpu_name(fixture, 2, FBT_GPU_NAME_API, "cudaLaunchKernel_v7000");
	/* The step ends at 1001000. */
	vec_push(&gpu.records.apis, make_api(1000000, 2000));
	other.tid = 102;
	other.correlation = 0;
	other.header.flags = FBT_GPU_API_DRIVER;
	other.result = 700;
	vec_push(&gpu.records.apis, other);
	write_step(fixture);
	write_gpu(fixture, &gpu);
	expect_part(
		fixture,
		"{\"name\":\"cudaLaunchKernel\",\"cat\":\"cuda_runtime\",\"ph\":\"X\",\"ts\":1000,"
		"\"dur\":1,\"pid\":100,\"tid\":101,\"args\":{\"correlation\":5}}",
		true);
	expect_part(
		fixture,
		"{\"name\":\"cudaLaunchKernel\",\"cat\":\"cuda_driver\",\"ph\":\"X\",\"ts\":1000,"
		"\"dur\":2,\"pid\":100,\"tid\":102,\"args\":{\"result\":700}}",
		true);
	clear_gpu(&gpu);
}

static void gpu_records_without_times_are_not_drawn(void **state)
{
	struct fixture *fixture = *state;
	struct gpu_fixture gpu = {0};
	struct fbt_gpu_work work = make_kernel(0, 7);
	struct fbt_gpu_api api = make_api(0, 0);

	work.start_ns = work.end_ns = 0;
	api.start_ns = api.end_ns = 0;
	vec_push(&gpu.records.works, work);
	vec_push(&gpu.records.apis, api);
	write_gpu(fixture, &gpu);
	expect_trace(fixture, "[]");
	clear_gpu(&gpu);
}

/* Of slices with equal times, the first in the file is the outer one. */
static void calls_to_cuda_come_before_the_syscalls_in_them_and_once(void **state)
{
	struct fixture *fixture = *state;
	struct gpu_fixture gpu = {0};
	const char *api, *call;

	vec_push(&gpu.records.apis, make_api(2400, 1200));
	vec_push(&gpu.step.records.apis, gpu.records.apis.items[0]);
	fixture->step.gpu = &gpu.step;
	vec_push(&fixture->step.calls, make_call(16, 0));
	write_step(fixture);
	write_calls(fixture);
	write_gpu(fixture, &gpu);
	fflush(fixture->out);
	api = strstr(fixture->text, "cuda_runtime");
	assert_non_null(api);
	assert_null(strstr(api + 1, "cuda_runtime"));
	call = strstr(fixture->text, "\"cat\":\"syscall\"");
	assert_true(api < call);
	clear_gpu(&gpu);
}

static void step_has_what_the_gpu_did_in_it(void **state)
{
	struct fixture *fixture = *state;
	struct step_gpu gpu = {.bound = GPU_BOUND_WAIT};

	gpu.all.busy_ns = 600999;
	gpu.all.idle_ns = 398002;
	gpu.all.host_wait_ns = 300000;
	gpu.all.launch_ns = 1000;
	gpu.all.queue_ns = 2000;
	fixture->step.gpu = &gpu;
	write_step(fixture);
	expect_part(fixture,
		    "\"gpu_bound\":\"wait\",\"gpu_busy_us\":600,\"gpu_complete\":false,"
		    "\"gpu_host_wait_us\":300,\"gpu_idle_us\":398,\"gpu_launch_us\":1,"
		    "\"gpu_queue_us\":2,",
		    true);
}

/* A format that has stacks: what it was given last. */
struct stack_encoder {
	struct trace_encoder encoder; /* first */
	uint32_t code;
};

static int keep_code(struct trace_encoder *encoder, const struct window *window,
		     const struct slice *slice, const struct json_fields *args)
{
	((struct stack_encoder *)encoder)->code = slice->stack ? slice->stack->codes[0] : 0;
	return 0;
}

static void keep(struct trace_encoder *encoder)
{
}

/* The look at the call has functions of Python, which the copy of its end does not have. */
static void call_has_the_stack_with_functions_of_scripts(void **state)
{
	struct fixture *fixture = *state;
	struct stack_encoder encoder = {.encoder = {.slice = keep_code, .free = keep}};
	struct sink *sink = sink_slices__new(fixture->out, &encoder.encoder);
	struct fbt_call call = make_call(0, 0);
	struct fbt_code code = {.header.flags = FBT_CODE_SCRIPT, .id = 2};
	struct fbt_stack copy = {.tid = 102, .start_ns = call.start_ns, .count = 1, .codes = {1}};
	struct fbt_look_thread look = {
		.tid = 102, .start_ns = call.start_ns, .count = 1, .codes = {2}};

	assert_non_null(sink);
	assert_int_equal(window__add_code(fixture->window, &code,
					  (const char *const[]){"Engine.forward", "/x.py", ""}),
			 0);
	assert_int_equal(vec_push(&fixture->step.calls, call), 0);
	assert_int_equal(vec_push(&fixture->step.stacks, copy), 0);
	assert_int_equal(sink->write_calls(sink, fixture->window, &fixture->step), 0);
	assert_int_equal(encoder.code, 1);
	assert_int_equal(vec_push(&fixture->step.looks, look), 0);
	assert_int_equal(sink->write_calls(sink, fixture->window, &fixture->step), 0);
	assert_int_equal(encoder.code, 2);
	vec_free(&fixture->step.stacks);
	vec_free(&fixture->step.looks);
	sink->free(sink);
}

/* In the middle of the step that hangs, which comes later: it is no slice around that. */
static void hang_is_a_moment_on_the_thread_of_its_step(void **state)
{
	struct fixture *fixture = *state;
	struct sink *sink = fixture->sink;
	const struct fbt_hang hang = {.tgid = 100,
				      .tid = 102,
				      .kind = 1,
				      .step_start_ns = EPOCH_NS + 1999,
				      .time_ns = EPOCH_NS + 900999,
				      .call = {.header.type = FBT_EVENT_CALL,
					       .tgid = 100,
					       .tid = 102,
					       .nr = 202,
					       .duration_ns = 800000}};

	assert_int_equal(sink->write_hang(sink, fixture->window, &hang), 0);
	expect_part(fixture,
		    "{\"name\":\"hang\",\"cat\":\"hang\",\"ph\":\"X\",\"ts\":900,\"dur\":0,"
		    "\"pid\":100,\"tid\":102,\"args\":{\"call\":\"futex\",\"call_us\":800,"
		    "\"evidence\":\"llama_decode has not returned for 899 us",
		    true);
	expect_part(fixture, "\"kind\":\"llama_decode\",\"open_us\":899}}", true);
}

static void hang_has_the_stack_of_its_thread(void **state)
{
	struct fixture *fixture = *state;
	struct stack_encoder encoder = {.encoder = {.slice = keep_code, .free = keep}};
	struct sink *sink = sink_slices__new(fixture->out, &encoder.encoder);
	const struct fbt_hang hang = {.tgid = 100, .tid = 102, .step_start_ns = 1, .time_ns = 2};
	struct hang_look look = {.record = {.tgid = 100, .tid = 102, .start_ns = 1}};
	struct fbt_look_thread groups[] = {
		{.owner = 90, .threads = 1, .count = 1, .codes = {8}},
		{.owner = 91,
		 .depth = 1,
		 .threads = 2,
		 .tids = {91, 102},
		 .count = 1,
		 .codes = {9}},
		{.owner = 102, .count = 1, .codes = {7}},
	};

	assert_non_null(sink);
	for (size_t i = 0; i < 2; i++) {
		groups[i].header.flags = FBT_LOOK_GROUP;
		assert_int_equal(vec_push(&look.threads, groups[i]), 0);
	}
	assert_int_equal(window__add_hang_look(fixture->window, &look), 0);
	assert_int_equal(sink->write_hang(sink, fixture->window, &hang), 0);
	assert_int_equal(encoder.code, 9);
	assert_int_equal(vec_push(&fixture->window->hang_looks.items[0].threads, groups[2]), 0);
	assert_int_equal(sink->write_hang(sink, fixture->window, &hang), 0);
	assert_int_equal(encoder.code, 7);
	sink->free(sink);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(trace_that_cannot_be_written_gives_the_errno),
		TEST(trace_reports_a_full_disk_at_the_step_that_meets_it),
		TEST(trace_of_an_empty_window_is_an_empty_array),
		TEST(trace_has_the_seeds_form),
		TEST(trace_puts_a_step_before_its_calls),
		TEST(trace_names_the_error_of_a_call),
		TEST(trace_takes_an_address_for_no_error),
		TEST(trace_marks_a_call_that_did_not_return),
		TEST(trace_labels_a_call_without_a_name),
		TEST(trace_begins_at_0_for_what_was_open_already),
		TEST(trace_slices_nest_after_rounding),
		TEST(trace_holds_calls_of_a_step_only_when_they_are_evidence),
		TEST(trace_shows_what_a_call_worked_on),
		TEST(trace_shows_what_is_wrong_with_a_step),
		TEST(trace_shows_the_gap_if_there_was_a_step_before),
		TEST(trace_shows_step_arguments_that_were_read),
		TEST(trace_keeps_step_arguments_and_figures_apart),
		TEST(trace_says_that_steps_are_intervals),
		TEST(trace_has_a_slice_over_an_escalated_step),
		TEST(trace_leaves_out_what_is_not_shown),
		TEST(trace_says_that_an_escalated_step_is_incomplete),
		TEST(trace_keeps_an_escalated_interval_beside_the_threads),
		TEST(trace_can_be_read_before_it_is_finished),
		TEST(work_of_gpus_has_lanes_by_device_and_stream),
		TEST(streams_beyond_a_devices_lanes_share_the_last),
		TEST(calls_to_cuda_are_on_their_thread_and_end_in_its_step),
		TEST(gpu_records_without_times_are_not_drawn),
		TEST(calls_to_cuda_come_before_the_syscalls_in_them_and_once),
		TEST(step_has_what_the_gpu_did_in_it),
		TEST(call_has_the_stack_with_functions_of_scripts),
		TEST(hang_is_a_moment_on_the_thread_of_its_step),
		TEST(hang_has_the_stack_of_its_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "escalation_fixture.h"
#include "gpu_step_fixture.h"
#include "commands/validate.h"
#include "output/jsonl.h"

#define EPOCH_NS 1000000500ull

struct fixture {
	struct window *window;
	struct classifier *classifier;
	struct metadata metadata;
	struct process process[2];
	struct step step;
	struct sink *sink;
	char path[64];
	int fd;
	char text[16384];
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct kind *kind;

	assert_non_null(fixture);
	fixture->window = window__new();
	assert_non_null(fixture->window);
	fixture->classifier = make_classifier();
	fixture->window->record.start_ns = EPOCH_NS;
	fixture->window->record.realtime_ns = 1700000000123456789ull;
	fixture->window->record.arch = FBT_ARCH_X86_64;
	fixture->window->record.detail = FBT_DETAIL_ESCALATED;
	kind = &fixture->window->kinds[1];
	kind->name = strdup("llama_decode");
	kind->arg_names[0] = strdup("n_tokens");
	kind->record.address = 0x1234;
	fixture->window->kind_known[1] = true;
	fixture->step = (struct step){
		.number = 7,
		.kind_number = 2,
		.complete = true,
		.record = {.tgid = 100,
			   .tid = 101,
			   .kind = 1,
			   .start_ns = EPOCH_NS + 2999,
			   .end_ns = EPOCH_NS + 403000,
			   .thread_ns = 400001,
			   .gap_ns = 5999,
			   .gap_syscall_ns = 1999,
			   .other_syscall_ns = 3999,
			   .run_delay_ns = 7999,
			   .minor_faults = 2,
			   .major_faults = 1},
	};
	fixture->step.record.sums[FBT_FUTEX] = (struct fbt_sum){100999, 3, 1, 90000};
	fixture->metadata = (struct metadata){.env_hash = "sha256:env",
					      .model = "model",
					      .concurrency = 32,
					      .runtime_flags = "{\"a\":1}"};
	strcpy(fixture->path, "/tmp/ferrum-jsonl-test-XXXXXX");
	fixture->fd = mkostemp(fixture->path, O_APPEND);
	assert_true(fixture->fd >= 0);
	fixture->sink = sink_jsonl__new(fixture->fd, NULL, &fixture->metadata);
	assert_non_null(fixture->sink);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	fixture->sink->free(fixture->sink);
	close(fixture->fd);
	unlink(fixture->path);
	fixture->window->processes.count = 0; /* the fixture owns them */
	window__free(fixture->window);
	classifier__free(fixture->classifier);
	free(fixture);
	return 0;
}

static void write_step(struct fixture *fixture)
{
	struct sink *sink = fixture->sink;

	assert_int_equal(sink->write_step(sink, fixture->window, &fixture->step), 0);
}

static void write_escalation(struct fixture *fixture, const struct escalation *escalation)
{
	struct sink *sink = fixture->sink;

	assert_int_equal(sink->write_escalation(sink, fixture->window, &fixture->step, escalation),
			 0);
}

static void finish(struct fixture *fixture)
{
	struct sink *sink = fixture->sink;

	assert_int_equal(sink->finish(sink, fixture->window, fixture->classifier), 0);
}

static const char *read_text(struct fixture *fixture)
{
	ssize_t size = pread(fixture->fd, fixture->text, sizeof(fixture->text) - 1, 0);

	assert_true(size >= 0);
	fixture->text[size] = '\0';
	return fixture->text;
}

static void expect_part(struct fixture *fixture, const char *part, bool present)
{
	if (!strstr(read_text(fixture), part) == present)
		fail_msg("%s: %s", part, fixture->text);
}

static void profile_that_cannot_be_written_gives_the_errno(void **state)
{
	struct fixture *fixture = *state;
	int full = open("/dev/full", O_WRONLY);
	struct sink *sink = sink_jsonl__new(full, NULL, &fixture->metadata);

	assert_int_equal(sink->write_step(sink, fixture->window, &fixture->step), -ENOSPC);
	sink->free(sink);
	close(full);
}

/* Under a limit of the file's size, a write is cut short as on a full disk. */
static void profile_keeps_whole_lines_when_there_is_no_more_room(void **state)
{
	struct fixture *fixture = *state;
	struct sink *sink = fixture->sink;
	struct rlimit limit, saved;
	size_t whole;

	write_step(fixture);
	whole = strlen(read_text(fixture));
	getrlimit(RLIMIT_FSIZE, &saved);
	signal(SIGXFSZ, SIG_IGN);
	limit = (struct rlimit){whole + 100, saved.rlim_max};
	setrlimit(RLIMIT_FSIZE, &limit);
	assert_int_equal(sink->write_step(sink, fixture->window, &fixture->step), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &saved);
	assert_int_equal(strlen(read_text(fixture)), whole);
}

static void step_prof_has_the_seeds_envelope(void **state)
{
	struct fixture *fixture = *state;
	const char *line =
		"{\"event\":\"step_prof\",\"commit_sha\":null,\"env_hash\":\"sha256:env\","
		"\"model\":\"model\",\"concurrency\":32,\"shape\":{\"arg.n_tokens\":null,"
		"\"calls\":3,\"complete\":true,\"end\":\"return\",\"errors\":1,"
		"\"kind\":\"llama_decode\",\"kind_number\":2,\"lost_calls\":0,"
		"\"major_faults\":1,\"max_call_us\":90,\"minor_faults\":2,"
		"\"pid\":100,\"start_us\":2,\"step\":7,\"step_address\":\"0x1234\","
		"\"step_source\":\"function\",\"tid\":101},\"stage_us\":{\"compute\":300,\"gap\":5,"
		"\"gap_syscall\":1,\"other_threads_syscall\":3,\"run_delay\":7,\"syscall\":100,"
		"\"total\":400},\"graph_enabled\":false,\"runtime_flags\":{\"a\":1},"
		"\"source\":\"ferrum-bpftrace\"}\n";

	write_step(fixture);
	read_text(fixture);
	fixture->text[strcspn(fixture->text, "\n") + 1] = '\0';
	assert_string_equal(fixture->text, line);
}

static void syscall_prof_has_the_seeds_figures(void **state)
{
	struct fixture *fixture = *state;
	const char *line;

	write_step(fixture);
	line = strchr(read_text(fixture), '\n') + 1;
	assert_string_equal(
		line,
		"{\"event\":\"syscall_prof\",\"commit_sha\":null,\"env_hash\":\"sha256:env\","
		"\"model\":\"model\",\"concurrency\":32,\"shape\":{\"calls\":3,"
		"\"dominant\":\"futex\",\"futex_calls\":3,\"futex_errors\":1,\"futex_max_us\":90,"
		"\"ioctl_calls\":0,\"ioctl_errors\":0,\"ioctl_max_us\":0,\"mmap_calls\":0,"
		"\"mmap_errors\":0,\"mmap_max_us\":0,\"other_calls\":0,\"other_errors\":0,"
		"\"other_max_us\":0,\"overhead_percent\":25.0,\"read_calls\":0,\"read_errors\":0,"
		"\"read_max_us\":0,\"step\":7,\"write_calls\":0,\"write_errors\":0,"
		"\"write_max_us\":0},\"stage_us\":{\"compute\":300,\"futex\":100,\"ioctl\":0,"
		"\"mmap\":0,\"other\":0,\"read\":0,\"total\":400,\"write\":0},"
		"\"graph_enabled\":false,\"runtime_flags\":{\"a\":1},"
		"\"source\":\"ferrum-bpftrace\"}\n");
}

static void step_prof_has_parts_that_sum_to_its_total(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_step *record = &fixture->step.record;

	record->header.flags |= FBT_STEP_CPU_KNOWN;
	record->cpu_ns = 200999;
	record->asleep_ns = 40500;
	record->call_delay_ns[FBT_FUTEX] = 1999;
	write_step(fixture);
	/* The sum 144 + 9 + 99 + 148 is 400, although all parts but the first are rounded down. */
	expect_part(
		fixture,
		"\"stage_us\":{\"compute\":300,\"cpu_wait\":9,\"disk_wait\":0,\"futex_net\":99,"
		"\"gap\":5,"
		"\"gap_syscall\":1,\"ioctl_net\":0,\"mmap_net\":0,\"off_cpu\":148,\"other_net\":0,"
		"\"other_threads_syscall\":3,\"own\":144,\"read_net\":0,\"run_delay\":7,"
		"\"syscall\":100,\"total\":400,\"write_net\":0},",
		true);
}

/* The two page faults of the test before were not timed, so they have no time. That is not 0. */
static void step_prof_has_the_time_of_faults_that_were_timed(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_step *record = &fixture->step.record;

	record->header.flags |= FBT_STEP_CPU_KNOWN | FBT_STEP_FAULTS_TIMED;
	record->cpu_ns = 200999;
	record->asleep_ns = 40500;
	record->fault_wait_ns = 10000;
	record->faults.cpu_ns = 50000;
	record->faults.asleep_ns = 4000;
	record->faults.ns[FBT_MAPPING_FILE] = 30500;
	record->faults.ns[FBT_MAPPING_ANON] = 999;
	record->faults.ns[FBT_MAPPING_STACK] = 32501;
	record->faults.major_count = 1;
	record->faults.major_ns = 12000;
	write_step(fixture);
	expect_part(fixture,
		    "\"disk_wait\":10,\"faults\":54,\"faults_file\":30,\"faults_major\":12,"
		    "\"faults_stack\":32,\"futex_net\":100,",
		    true);
	expect_part(fixture, "fault_file", false);
	expect_part(fixture, "faults_anon", false);
}

static void step_prof_leaves_out_what_is_not_known(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.record.header.flags =
		FBT_STEP_NO_GAP | FBT_STEP_OTHER_UNKNOWN | FBT_STEP_SCHED_UNKNOWN;
	write_step(fixture);
	expect_part(fixture, "\"stage_us\":{\"compute\":300,\"syscall\":100,\"total\":400},", true);
	expect_part(fixture, "faults", false);
}

static void a_step_whose_calls_were_not_traced_has_no_figure_of_them(void **state)
{
	struct fixture *fixture = *state;

	fixture->window->record.detail = FBT_DETAIL_PROBES;
	fixture->step.record.header.flags = FBT_STEP_CALLS_UNKNOWN | FBT_STEP_OTHER_UNKNOWN;
	memset(fixture->step.record.sums, 0, sizeof(fixture->step.record.sums));
	write_step(fixture);
	expect_part(fixture, "\"stage_us\":{\"gap\":5,\"run_delay\":7,\"total\":400},", true);
	expect_part(fixture, "\"calls_traced\":false,", true);
	expect_part(fixture, "\"minor_faults\":2", true);
	expect_part(fixture, "\"calls\"", false);
	expect_part(fixture, "errors", false);
	expect_part(fixture, "lost_calls", false);
	expect_part(fixture, "max_call_us", false);
	expect_part(fixture, "syscall_prof", false);
	finish(fixture);
	expect_part(fixture, "\"lost_steps\":0", true);
	expect_part(fixture, "lost_calls", false);
	expect_part(fixture, "lost_files", false);
}

static void step_prof_shows_what_is_wrong_with_a_step(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.complete = false;
	fixture->step.calls_truncated = true;
	fixture->step.record.lost_calls = 3;
	fixture->step.record.end = FBT_END_EXITED;
	fixture->step.record.threads = 4;
	write_step(fixture);
	expect_part(fixture, "\"calls_truncated\":true,\"complete\":false,\"end\":\"exited\"",
		    true);
	expect_part(fixture, "\"lost_calls\":3,", true);
	expect_part(fixture, "\"threads\":4,", true);
}

static void step_prof_has_step_arguments_that_were_read(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.record.arg_mask = 1;
	fixture->step.record.args[0] = -3;
	write_step(fixture);
	expect_part(fixture, "\"arg.n_tokens\":-3,", true);
}

static void step_prof_of_an_interval_has_its_wall_time(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.record.kind = 0;
	fixture->step.record.thread_ns = 1600000;
	write_step(fixture);
	expect_part(fixture, "\"kind\":\"interval\",", true);
	expect_part(fixture, "\"step_source\":\"interval\",", true);
	expect_part(fixture, "\"total\":1600,\"wall\":400}", true);
}

static void escalation_prof_has_the_verdict_and_its_evidence(void **state)
{
	struct fixture *fixture = *state;
	struct escalation escalation = make_escalation();

	write_escalation(fixture, &escalation);
	expect_part(fixture,
		    "{\"event\":\"escalation_prof\",\"commit_sha\":null,"
		    "\"env_hash\":\"sha256:env\",\"model\":\"model\",\"concurrency\":32,"
		    "\"shape\":{\"actual_us\":312400,\"brick.actual_us\":\"312400\","
		    "\"brick.budget_us\":\"21000\",\"brick.efficiency\":\"6.7\","
		    "\"brick.name\":\"llama_decode\",\"brick.over_budget\":\"true\","
		    "\"budget_us\":21000,\"cause\":\"lock_contention\","
		    "\"cause_evidence\":\"",
		    true);
	expect_part(fixture,
		    "\",\"cause_us\":291000,\"cause_usual_us\":100,\"class_steps\":64,"
		    "\"complete\":true,\"cv_percent\":12.35,\"drop_percent\":93.3,"
		    "\"efficiency_percent\":6.72,\"escalation.reason\":\"efficiency_low\","
		    "\"fired\":\"efficiency_low\",\"judged\":true,\"kind_number\":2,"
		    "\"number\":3,\"over_budget\":true,\"overhead_percent\":93.3,\"pid\":100,"
		    "\"start_us\":2,\"step\":7,\"syscall.dominant\":\"futex\","
		    "\"syscall.overhead_percent\":\"93.3\",\"tid\":101,"
		    "\"time\":\"2023-11-14T22:13:20.123859Z\",\"usual_us\":20500,\"worst_call\":"
		    "\"futex\","
		    "\"worst_call_us\":290800},\"stage_us\":{\"actual\":312400,"
		    "\"budget\":21000},\"graph_enabled\":false,\"runtime_flags\":{\"a\":1},"
		    "\"source\":\"ferrum-bpftrace\"}\n",
		    true);
}

static void escalation_prof_leaves_out_what_is_not_known(void **state)
{
	struct fixture *fixture = *state;
	struct escalation escalation = make_escalation();

	escalation.judged = false;
	escalation.cause.usual_known = false;
	escalation.cv_percent = NAN;
	escalation.drop_percent = NAN;
	escalation.worst.duration_ns = 0;
	for (int i = 0; i < FBT_CATEGORY_COUNT; i++)
		fixture->step.record.sums[i].max_ns = 0;
	fixture->step.complete = false;
	write_escalation(fixture, &escalation);
	expect_part(fixture, "\"complete\":false,", true);
	expect_part(fixture, "\"judged\":false,", true);
	expect_part(fixture, "cv_percent", false);
	expect_part(fixture, "drop_percent", false);
	expect_part(fixture, "usual_us", false);
	expect_part(fixture, "worst", false);
	expect_part(fixture, "estimated", false);
}

static void the_longest_call_may_be_one_that_was_lost(void **state)
{
	struct fixture *fixture = *state;
	struct escalation escalation = make_escalation();

	escalation.cause.estimated = true;
	fixture->step.complete = false;
	fixture->step.record.sums[FBT_READ] =
		(struct fbt_sum){.ns = 300000999, .max_ns = 291000999};
	write_escalation(fixture, &escalation);
	expect_part(fixture, "\"worst_category\":\"read\",\"worst_category_us\":291000}", true);
	expect_part(fixture, "worst_call", false);
	expect_part(fixture, ",\"cause_estimated\":true,", true);
}

static void escalation_prof_says_why_others_do_not_show_it(void **state)
{
	struct fixture *fixture = *state;
	struct escalation escalation = make_escalation();

	write_escalation(fixture, &escalation);
	expect_part(fixture, "not_shown", false);
	escalation.suppressed = true;
	write_escalation(fixture, &escalation);
	expect_part(fixture, ",\"not_shown\":\"rate_limit\",\"number\":3,", true);
	expect_part(fixture, "repeated", false);
	escalation.suppressed = false;
	escalation.repeated = true;
	write_escalation(fixture, &escalation);
	expect_part(fixture, ",\"not_shown\":\"repeated\",\"number\":3,", true);
	escalation.repeated = false;
	escalation.as_usual = true;
	write_escalation(fixture, &escalation);
	expect_part(fixture, ",\"not_shown\":\"as_usual\",\"number\":3,", true);
}

static void without_a_clock_there_is_no_time(void **state)
{
	struct fixture *fixture = *state;
	struct escalation escalation = make_escalation();

	fixture->window->record.realtime_ns = 0;
	write_escalation(fixture, &escalation);
	expect_part(fixture, "\"time\"", false);
	expect_part(fixture, "\"start_us\":2,", true);
}

static void window_prof_says_what_was_traced_and_lost(void **state)
{
	struct fixture *fixture = *state;
	struct window *window = fixture->window;

	window->end_ns = EPOCH_NS + 5000999;
	window->steps = 9;
	window->incomplete_steps = 1;
	window->skipped_records = 2;
	for (int i = 0; i < FBT_LOST_COUNT; i++)
		window->lost.count[i] = 10 + i;
	for (int i = 0; i < 2; i++) {
		fixture->process[i].record.tgid = 100 + i;
		assert_int_equal(vec_push(&window->processes, &fixture->process[i]), 0);
	}
	window->kinds[2].name = strdup("f(int, int)");
	window->kind_known[2] = true;
	finish(fixture);
	expect_part(fixture,
		    "\"shape\":{\"arch\":\"x86_64\",\"cut_off\":false,\"detail\":\"escalated\","
		    "\"epoch_monotonic_us\":1000000,\"epoch_realtime_us\":1700000000123456,"
		    "\"escalations\":0,\"escalations_repeated\":0,\"escalations_suppressed\":0,"
		    "\"host\":\"\",\"incomplete_steps\":1,\"judged_steps\":0,\"kernel\":\"\","
		    "\"lost_begins\":13,"
		    "\"lost_calls\":10,\"lost_files\":15,\"lost_processes\":14,\"lost_steps\":11,"
		    "\"lost_threads\":12,"
		    "\"pids\":\"100,101\",\"schema\":3,\"skipped_records\":2,"
		    "\"step_functions\":\"llama_decode; f(int, int)\",\"steps\":9,\"tag\":\"\","
		    "\"targets\":2,\"tool_version\":\"\","
		    "\"unjudged_steps\":0},\"stage_us\":{\"total\":5000},",
		    true);
	free(window->processes.items);
	window->processes.items = NULL;
}

static void window_prof_says_how_many_processes_were_not_kept(void **state)
{
	struct fixture *fixture = *state;

	fixture->window->overflow_processes = 3;
	finish(fixture);
	expect_part(fixture, "\"processes_left_out\":3,", true);
}

static void window_prof_says_nothing_of_processes_if_all_were_kept(void **state)
{
	struct fixture *fixture = *state;

	finish(fixture);
	expect_part(fixture, "processes_left_out", false);
}

static void window_prof_has_the_cost_that_was_measured(void **state)
{
	struct fixture *fixture = *state;

	fixture->window->cost.call_ps = 123500;
	fixture->window->cost.cpu_ns = 7000999;
	finish(fixture);
	expect_part(fixture, "\"call_overhead_ns\":123.5,", true);
	expect_part(fixture, "\"tool_cpu_us\":7000,", true);
	expect_part(fixture, "neighbor_overhead_ns", false);
}

static void window_prof_tells_how_long_intervals_were(void **state)
{
	struct fixture *fixture = *state;

	fixture->window->record.interval_ns = 100000000;
	finish(fixture);
	expect_part(fixture, "\"interval_us\":100000,", true);
}

static void add_gpu_state(struct fixture *fixture, uint32_t tgid, enum fbt_gpu_status status,
			  const char *detail)
{
	struct fbt_gpu_state state = {.tgid = tgid,
				      .status = status,
				      .cupti_version = 130001,
				      .driver_version = 13000,
				      .shim_version = 1,
				      .clock_method = FBT_GPU_CLOCK_REALTIME,
				      .arm_ns = 12000999};
	struct gpu_table *gpus = &fixture->window->gpus;

	assert_int_equal(gpu_table_set_state(gpus, &state, detail, "/lib/libcupti.so"), 0);
}

static void window_prof_says_how_things_stand_with_gpus(void **state)
{
	struct fixture *fixture = *state;
	struct fbt_gpu_flush flush = {.tgid = 100, .records = 9, .clock_error_ns = 80};

	add_gpu_state(fixture, 100, FBT_GPU_ARMED, "");
	add_gpu_state(fixture, 101, FBT_GPU_BUSY, "held by \"nsys\"");
	add_gpu_state(fixture, 102, FBT_GPU_NOT_CUDA, "");
	assert_int_equal(gpu_table_set_flush(&fixture->window->gpus, &flush), 0);
	gpu_table_find(&fixture->window->gpus, 100)->counts.kernels = 7;
	finish(fixture);
	expect_part(fixture,
		    "\"gpu_apis\":0,\"gpu_arm_us\":12000,\"gpu_armed\":1,"
		    "\"gpu_clock\":\"realtime\",\"gpu_clock_error_ns\":80,"
		    "\"gpu_clock_steps\":0,\"gpu_cupti\":\"13.0 U1\",\"gpu_cupti_dropped\":0,"
		    "\"gpu_cupti_version\":130001,\"gpu_detail\":\"held by \\\"nsys\\\"\","
		    "\"gpu_driver_version\":13000,\"gpu_joined\":0,\"gpu_kernels\":7,"
		    "\"gpu_library\":\"/lib/libcupti.so\",",
		    true);
	expect_part(fixture, "\"gpu_pids\":\"100,101\",\"gpu_records\":9,", true);
	expect_part(fixture, "\"gpu_status\":\"armed,busy\",", true);
}

static void window_prof_of_processes_without_cuda_says_so(void **state)
{
	struct fixture *fixture = *state;

	add_gpu_state(fixture, 100, FBT_GPU_NOT_CUDA, "");
	finish(fixture);
	expect_part(fixture, "\"gpu_pids\":\"\",", true);
	expect_part(fixture, "\"gpu_status\":\"not_cuda\",", true);
	expect_part(fixture, "gpu_cupti_version", false);
}

static void a_step_with_gpu_records_has_a_gpu_prof(void **state)
{
	struct fixture *fixture = *state;
	struct step_gpu *gpu = make_gpu();
	struct escalation escalation = make_escalation();

	gpu->all.graph_launches = 1;
	assert_int_equal(vec_push(&gpu->devices, gpu->all), 0);
	fixture->step.gpu = gpu;
	write_step(fixture);
	write_escalation(fixture, &escalation);
	finish(fixture);
	step_gpu_free(gpu);
	expect_part(fixture, ",\"gpu_complete\":true,", true);
	expect_part(fixture, "\"gpu_busy\":4400,\"gpu_host_wait\":1500,\"gpu_idle\":1799,", true);
	expect_part(fixture, "{\"event\":\"gpu_prof\",\"commit_sha\":null,\"env_hash\":", true);
	expect_part(fixture, "\"scope\":\"device\"", true);
	expect_part(fixture, "\"scope\":\"step\"", true);
	expect_part(fixture, "},\"graph_enabled\":true,\"runtime_flags\":{\"a\":1},", true);
	/* The window has no step. */
	expect_part(fixture, "\"stage_us\":{\"total\":0},\"graph_enabled\":false,", true);
}

static void profile_of_a_shorter_line_holds_no_rest_of_the_longer(void **state)
{
	struct fixture *fixture = *state;

	fixture->step.number = UINT64_MAX;
	write_step(fixture);
	fixture->step.number = 1;
	write_step(fixture);
	finish(fixture);
	read_text(fixture);
	for (char *line = fixture->text; *line; line = strchr(line, '\n') + 1)
		assert_int_equal(strncmp(line, "{\"event\":\"", 10), 0);
}

static void profile_is_appended_to_what_is_there(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(write(fixture->fd, "first\n", 6), 6);
	lseek(fixture->fd, 0, SEEK_SET);
	write_step(fixture);
	assert_int_equal(strncmp(read_text(fixture), "first\n{", 7), 0);
}

static void profile_passes_its_own_validation(void **state)
{
	struct fixture *fixture = *state;
	struct escalation escalation = make_escalation();
	char *paths[] = {fixture->path};
	char *said = NULL;
	size_t size;
	FILE *out = open_memstream(&said, &size);

	fixture->step.record.arg_mask = 1;
	write_step(fixture);
	write_escalation(fixture, &escalation);
	fixture->step.record.kind = 0;
	fixture->step.gpu = make_gpu();
	write_step(fixture);
	step_gpu_free(fixture->step.gpu);
	finish(fixture);
	assert_true(validate_files(
		paths, 1, "step_prof,syscall_prof,gpu_prof,escalation_prof,window_prof", out, out));
	fclose(out);
	assert_non_null(strstr(said, ": 7 events, ok\n"));
	free(said);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(profile_that_cannot_be_written_gives_the_errno),
		TEST(profile_keeps_whole_lines_when_there_is_no_more_room),
		TEST(step_prof_has_the_seeds_envelope),
		TEST(syscall_prof_has_the_seeds_figures),
		TEST(step_prof_has_parts_that_sum_to_its_total),
		TEST(step_prof_has_the_time_of_faults_that_were_timed),
		TEST(step_prof_leaves_out_what_is_not_known),
		TEST(a_step_whose_calls_were_not_traced_has_no_figure_of_them),
		TEST(step_prof_shows_what_is_wrong_with_a_step),
		TEST(step_prof_has_step_arguments_that_were_read),
		TEST(step_prof_of_an_interval_has_its_wall_time),
		TEST(escalation_prof_has_the_verdict_and_its_evidence),
		TEST(escalation_prof_leaves_out_what_is_not_known),
		TEST(the_longest_call_may_be_one_that_was_lost),
		TEST(escalation_prof_says_why_others_do_not_show_it),
		TEST(without_a_clock_there_is_no_time),
		TEST(window_prof_says_what_was_traced_and_lost),
		TEST(window_prof_says_how_many_processes_were_not_kept),
		TEST(window_prof_says_nothing_of_processes_if_all_were_kept),
		TEST(window_prof_has_the_cost_that_was_measured),
		TEST(window_prof_tells_how_long_intervals_were),
		TEST(window_prof_says_how_things_stand_with_gpus),
		TEST(window_prof_of_processes_without_cuda_says_so),
		TEST(a_step_with_gpu_records_has_a_gpu_prof),
		TEST(profile_of_a_shorter_line_holds_no_rest_of_the_longer),
		TEST(profile_is_appended_to_what_is_there),
		TEST(profile_passes_its_own_validation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "report_fixture.h"

#include <json-c/json.h>
#include "gpu_step_fixture.h"

static int setup(void **state)
{
	*state = new_fixture(REPORT_TEXT);
	return 0;
}

static int teardown(void **state)
{
	free_fixture(*state);
	return 0;
}

static void add_gpu_state(struct fixture *fixture, uint32_t tgid, enum fbt_gpu_status status,
			  const char *detail)
{
	struct fbt_gpu_state state = {.tgid = tgid,
				      .status = status,
				      .cupti_version = 130001,
				      .driver_version = 13010,
				      .clock_method = FBT_GPU_CLOCK_REALTIME};

	/* Only the armed state has a time of arming. */
	if (status == FBT_GPU_ARMED)
		state.arm_ns = 12 * MS;
	assert_int_equal(gpu_table_set_state(&fixture->window->gpus, &state, detail, ""), 0);
}

/* A process with GPU records and their counts. */
static struct gpu_process *add_gpu(struct fixture *fixture)
{
	struct fbt_gpu_flush flush = {
		.tgid = 42, .records = 1234, .shim_ns = 3 * MS, .clock_error_ns = 80};
	struct fbt_gpu_device device = {.tgid = 42, .memory_bytes = UINT64_C(80) << 30, .sms = 132};
	struct gpu_process *process;

	add_gpu_state(fixture, 42, FBT_GPU_ARMED, "");
	assert_int_equal(gpu_table_set_flush(&fixture->window->gpus, &flush), 0);
	assert_int_equal(gpu_table_add_device(&fixture->window->gpus, &device, "NVIDIA\033H100"),
			 0);
	add_gpu_state(fixture, 42, FBT_GPU_ENDED, "");
	process = gpu_table_find(&fixture->window->gpus, 42);
	process->counts = (struct gpu_counts){
		.kernels = 1000, .memcpys = 200, .apis = 1300, .joined = 1200, .outside = 7};
	return process;
}

static void add_gpu_step(struct fixture *fixture, struct step_gpu *gpu)
{
	struct step step = make_step(fixture, GPU_STEP_NS);

	step.gpu = gpu;
	write_step(fixture, &step);
	step_gpu_free(gpu);
}

static void without_a_word_on_gpus_there_is_none(void **state)
{
	add_steps(*state, 1, MS);
	assert_has_not(finish(*state), "GPU  ");
}

static void the_headline_says_what_the_gpu_waited_for(void **state)
{
	struct fixture *fixture = *state;

	add_gpu(fixture);
	add_gpu_step(fixture, make_gpu());
	assert_says(finish(fixture),
		    "\nGPU             busy 71.0 % of the step time, wait-bound in 100 % of steps\n"
		    "                idle 1.80 ms of 6.20 ms: 1.10 ms futex (blocked), 400 us user "
		    "code, 199 us in launch calls, 100 us queued (mean step)\n");
}

static void the_figures_of_a_kind_are_shown_per_step(void **state)
{
	struct fixture *fixture = *state;
	const char *text;

	add_gpu(fixture);
	add_gpu_step(fixture, make_gpu());
	add_gpu_step(fixture, make_gpu());
	text = finish(fixture);
	assert_has(text, "  busy              4.40 ms   71.0 %   8.80 ms");
	assert_has(text, "  idle              1.80 ms   29.0 %   3.60 ms");
	assert_has(text, "    host wait       1.50 ms   24.2 %   3.00 ms         -         -\n");
	assert_has(text, "  host wait     1.10 ms futex (blocked), 400 us user code (mean step)\n");
	assert_has(text, "  verdict       wait-bound in 100 % of steps\n");
	assert_says(text,
		    "  GPU work      42.0 kernels, 2.00 copies, 1.00 memsets per step, 1.50 at");
	assert_says(text,
		    "the call takes 4.00 us, the work starts 6.00 us after it and takes 3.10 us");
	assert_has(text, "  copies        1.00 MiB to the GPU, 4.00 KiB from it,");
	assert_has(text, "  GPU sync      3.00 ms per step in calls");
	assert_says(text, "  syscalls      1.10 ms per step while the GPU was idle, 200 us");
	assert_has(text, "  GPU records   2 steps, 0 incomplete; 97.8 % of the work");
	assert_has(text, "  #1            busy 4.40 ms, idle 1.80 ms of 6.20 ms: 1.10 ms futex");
	assert_has_not(text, "unattributed");
	assert_has_not(text, "communication");
	assert_has_not(text, "! ");
}

static void spinning_is_told_of_steps_in_which_it_is_known(void **state)
{
	struct fixture *fixture = *state;
	struct step_gpu *gpu = make_gpu();

	gpu->calls_known = false;
	gpu->sync_spin_ns = 0;
	add_gpu_step(fixture, gpu);
	add_gpu_step(fixture, make_gpu());
	assert_says(finish(fixture), "; 1.00 ms spinning");
}

static void verdicts_are_shared_out(void **state)
{
	struct fixture *fixture = *state;
	struct step_gpu *gpu;

	for (int i = 0; i < 8; i++) {
		gpu = make_gpu();
		gpu->bound = i ? GPU_BOUND_LAUNCH : GPU_BOUND_GPU;
		add_gpu_step(fixture, gpu);
	}
	finish(fixture);
	assert_has(fixture->text, ", launch-bound in 88 % of steps\n");
	assert_has(fixture->text, "  verdict       launch-bound in 88 %, GPU-bound in 12 % of");
}

static void incomplete_steps_are_marked(void **state)
{
	struct fixture *fixture = *state;
	struct step_gpu *gpu = make_gpu();

	gpu->complete = false;
	gpu->sealed = GPU_SEAL_TIMEOUT;
	add_gpu_step(fixture, gpu);
	add_gpu_step(fixture, make_gpu());
	finish(fixture);
	assert_has(fixture->text, "busy at least 4.40 ms of 6.20 ms, GPU records missing\n");
	assert_has(fixture->text, "excluding 1 step ");
	assert_has(fixture->text, "2 steps, 1 incomplete");
	assert_has(fixture->text, "wait-bound in 100 % of steps\n");
}

static void of_incomplete_steps_no_mean_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct step_gpu *gpu = make_gpu();

	gpu->complete = false;
	add_gpu_step(fixture, gpu);
	finish(fixture);
	assert_has(fixture->text, "GPU             unknown: the GPU records of every step (1)");
	assert_null(strstr(fixture->text, "idle"));
	assert_null(strstr(fixture->text, "-bound"));
}

static void a_process_with_records_has_its_setup_and_counts(void **state)
{
	struct fixture *fixture = *state;
	const char *text;

	add_gpu(fixture);
	text = finish(fixture);
	assert_says(text, "GPU             CUPTI 13.0 U1, driver 13.1, armed in 12.0 ms; clock by "
			  "realtime, error up to 80 ns\n");
	assert_has(text, "                device 0: NVIDIA\\x1bH100, 80.0 GiB, 132 SMs\n");
	assert_has(text,
		   "                kernels 1,000, copies 200, memsets 0, calls 1,300; launched");
	assert_says(text,
		    "                1,234 records, dropped by CUPTI 0, lost 0, without times");
	assert_has_not(text, "GPU records until");
}

static void what_makes_gpu_figures_doubtful_is_warned_of(void **state)
{
	struct fixture *fixture = *state;
	struct gpu_process *process = add_gpu(fixture);
	const char *text;

	process->counts.violations = 2;
	process->counts.unmeasured = 3;
	process->counts.unnamed = 9;
	process->counts.unjoined = 4;
	process->counts.steps = 9;
	process->counts.timeouts = 5;
	process->flush.cupti_dropped = 6;
	process->flush.ring_lost = 7;
	process->flush.no_buffer = 8;
	process->flush.clock_steps = 1;
	text = finish(fixture);
	assert_has(text, "! the GPU clock of process 42 is suspect: 2 of 1,200 ");
	assert_has(text, "! CUPTI's clock in process 42 jumped 1 time: ");
	assert_has(text, "! GPU records of process 42: 6 dropped by CUPTI");
	assert_has(text, "! GPU records of process 42: 7 lost, the ring was full");
	assert_has(text, "! GPU records of process 42: 3 without timestamps");
	assert_has(text, "! GPU records of process 42: 9 kernels without their names");
	assert_has(text, "! GPU records of process 42: 4 without the call that launched them");
	assert_has(text, "! GPU records of process 42: 8 buffers lost");
	assert_has(text, "! 5 of 9 steps of process 42 were closed before");
}

/* Both see two devices. The first device of the one is the second of the other. */
static void add_second_engine(struct fixture *fixture, uint64_t devices)
{
	struct fbt_gpu_flush flush = {.tgid = 43, .records = 1};
	struct gpu_process *process = add_gpu(fixture);

	add_gpu_state(fixture, 43, FBT_GPU_ARMED, "");
	assert_int_equal(gpu_table_set_flush(&fixture->window->gpus, &flush), 0);
	for (uint32_t tgid = 42; tgid <= 43; tgid++) {
		for (uint32_t id = 0; id < 2; id++) {
			struct fbt_gpu_device device = {
				.tgid = tgid, .id = id, .uuid = {1, tgid == 42 ? id : 1 - id}};

			assert_int_equal(
				gpu_table_add_device(&fixture->window->gpus, &device, "H100"), 0);
		}
	}
	process->counts.devices = 1;
	gpu_table_find(&fixture->window->gpus, 43)->counts.devices = devices;
}

static void a_device_that_two_engines_use_is_told(void **state)
{
	add_second_engine(*state, 2);
	assert_has(finish(*state), "! device 1 of process 43 is used by process 42 too");
}

static void a_device_that_two_engines_only_see_is_not(void **state)
{
	add_second_engine(*state, 1);
	assert_has_not(finish(*state), "is used by");
}

static void graphs_that_name_wrong_calls_are_warned_of(void **state)
{
	struct fixture *fixture = *state;
	struct gpu_process *process = add_gpu(fixture);
	const char *text;

	process->counts.graph_nodes = 900;
	process->counts.misnumbered = 10;
	text = finish(fixture);
	assert_has(text, "! GPU records of process 42: 10 of 900 of CUDA graphs name a call");
	assert_says(text, "restart the engine");
}

static void a_few_graphs_that_name_wrong_calls_are_not(void **state)
{
	struct fixture *fixture = *state;
	struct gpu_process *process = add_gpu(fixture);

	process->counts.graph_nodes = 900;
	process->counts.misnumbered = 9;
	assert_has_not(finish(fixture), "of CUDA graphs name a call");
}

/* The field of a label, without line breaks. */
static void read_field(const char *text, const char *label, char *field, size_t size)
{
	const char *at = strstr(text, label);
	size_t used = 0;

	assert_non_null(at);
	for (at += strlen(label); *at && used + 2 < size; at++) {
		if (*at != '\n') {
			field[used++] = *at;
		} else if (!strncmp(at + 1, "                ", 16)) {
			field[used++] = ' ';
			at += 16;
		} else {
			break;
		}
	}
	field[used] = '\0';
}

#define RESTART "restart the process with the shim "

/* Each status has one sentence, in the words of the log: the state, and what to do. */
static void without_records_one_line_says_why_and_how_to_get_them(void **state)
{
	static const char *const sentences[FBT_GPU_STATUS_COUNT] = {
		[FBT_GPU_ABSENT] = "no GPU records: it uses CUDA, but was started without the shim "
				   "(why); " RESTART "(see ferrum-bpftrace engine-env)",
		[FBT_GPU_ARMED] = NULL, /* its records are reported instead */
		[FBT_GPU_ENDED] = "GPU records until the end of the window (why)",
		[FBT_GPU_EXITED] = "no GPU records: the process ended before they began (why)",
		[FBT_GPU_STALLED] =
			"no GPU records: the shim does not respond (why); check whether "
			"the process is stopped",
		[FBT_GPU_NO_CUPTI] = "no GPU records: libcupti was not found (why); install the "
				     "CUDA toolkit or the nvidia-cuda-cupti wheel where the "
				     "process runs, or start it with FERRUM_CUPTI_LIBRARY=FILE",
		[FBT_GPU_OLD_CUPTI] = "no GPU records: its CUPTI is too old (why); use CUPTI of "
				      "CUDA 12.6 or newer, but not 13.0 without an update",
		[FBT_GPU_NO_DRIVER] = "no GPU records: CUPTI finds no NVIDIA driver (why); run "
				      "nvidia-smi where the process runs to see why",
		[FBT_GPU_BUSY] = "no GPU records: another tool holds CUPTI (why); end nsys, ncu, "
				 "cuda-gdb or the PyTorch profiler in that process",
		[FBT_GPU_FAILED] = "no GPU records: CUPTI does not collect (why); to try another "
				   "libcupti, start the process with FERRUM_CUPTI_LIBRARY=FILE",
		[FBT_GPU_BAD_RING] = "no GPU records: its shared memory is not that of a shim "
				     "(why); check that its libferrum_cupti.so is the one that "
				     "ferrum-bpftrace engine-env names",
		[FBT_GPU_OTHER_SHIM] =
			"no GPU records: its shim is of another version than this "
			"program (why); " RESTART "that ferrum-bpftrace engine-env names",
		[FBT_GPU_TAKEN] = "no GPU records: another tracer reads them (why); end that "
				  "tracer first",
		[FBT_GPU_OFF] = "off (--gpu off) (why)",
		[FBT_GPU_NOT_CUDA] = "no GPU records: it does not use CUDA (why)",
		[FBT_GPU_NOT_INJECTED] = "no GPU records: the shim was not injected (why); " RESTART
					 "(see ferrum-bpftrace engine-env)",
	};
	char field[400];

	(void)state;
	for (int status = 0; status < FBT_GPU_STATUS_COUNT; status++) {
		struct fixture *fixture = new_fixture(REPORT_TEXT);

		add_gpu_state(fixture, 42, (enum fbt_gpu_status)status, "why");
		finish(fixture);
		if (sentences[status]) {
			read_field(fixture->text, "\nGPU             ", field, sizeof(field));
			assert_string_equal(field, sentences[status]);
		}
		free_fixture(fixture);
	}
}

static void processes_that_are_alike_share_a_line(void **state)
{
	struct fixture *fixture = *state;

	add_gpu_state(fixture, 42, FBT_GPU_ABSENT, "");
	add_gpu_state(fixture, 43, FBT_GPU_ABSENT, "");
	add_gpu_state(fixture, 44, FBT_GPU_BUSY, "held by nsys\n");
	add_gpu_state(fixture, 45, FBT_GPU_NOT_CUDA, "");
	finish(fixture);
	assert_has(fixture->text, "GPU             2 processes: no GPU records: it uses CUDA");
	assert_has(fixture->text, "44: no GPU records: another tool");
	assert_has(fixture->text, "nsys\\n)");
	assert_has_not(fixture->text, "does not use CUDA");
}

static void records_that_ended_early_are_warned_of_and_explained(void **state)
{
	static const struct {
		enum fbt_gpu_status status;
		const char *why;
	} ends[] = {
		{FBT_GPU_STALLED, "the shim does not respond"},
		{FBT_GPU_BUSY, "another tool holds CUPTI"},
		{FBT_GPU_FAILED, "CUPTI does not collect"},
		{FBT_GPU_BAD_RING, "its shared memory is not that of a shim"},
	};
	char said[128];

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct fixture *fixture = new_fixture(REPORT_TEXT);

		add_gpu(fixture);
		add_gpu_state(fixture, 42, ends[i].status, "");
		finish(fixture);
		snprintf(said, sizeof(said), "! GPU records of process 42 end early: %s",
			 ends[i].why);
		assert_says(fixture->text, said);
		assert_has(fixture->text, "GPU             CUPTI 13.0 U1");
		snprintf(said, sizeof(said), "GPU records ended early: %s", ends[i].why);
		assert_says(fixture->text, said);
		assert_null(strstr(fixture->text, "no GPU records"));
		free_fixture(fixture);
	}
}

/* Of two processes of a status, one had records. */
static void processes_with_and_without_records_have_lines_of_their_own(void **state)
{
	struct fixture *fixture = *state;

	add_gpu(fixture);
	add_gpu_state(fixture, 42, FBT_GPU_BUSY, "");
	add_gpu_state(fixture, 43, FBT_GPU_BUSY, "");
	finish(fixture);
	assert_has(fixture->text, "42: GPU records ended early: another tool");
	assert_has(fixture->text, "43: no GPU records: another tool");
	assert_has_not(fixture->text, "process 43 end early");
}

static void records_until_a_process_ended_are_complete(void **state)
{
	struct fixture *fixture = *state;

	add_gpu(fixture);
	add_gpu_state(fixture, 42, FBT_GPU_EXITED, "");
	finish(fixture);
	assert_has_not(fixture->text, "no GPU records");
	assert_has_not(fixture->text, "early");
}

static void no_line_is_wider_than_eighty_columns(void **state)
{
	struct fixture *fixture = *state;
	struct step_gpu *gpu = make_gpu();
	struct gpu_process *process = add_gpu(fixture);

	for (uint32_t i = 0; i < GPU_WAIT_CALLS_MAX; i++)
		gpu->all.wait_calls[i] = (struct gpu_wait_call){300 + i, true, 99900000};
	gpu->all.comm_ns = MS;
	add_gpu_step(fixture, gpu);
	process->counts.violations = 1234567;
	process->flush.clock_steps = 1234567;
	process->counts.timeouts = 1234567;
	process->counts.steps = 1234567;
	finish(fixture);
	for (char *line = strtok(fixture->text, "\n"); line; line = strtok(NULL, "\n"))
		if (strlen(line) > 80)
			fail_msg("%s", line);
}

static struct json_object *member(struct json_object *object, const char *key)
{
	assert_true(json_object_object_get_ex(object, key, &object));
	return object;
}

static void the_report_for_programs_has_them_in_nanoseconds(void **state)
{
	struct fixture *fixture = new_fixture(REPORT_JSON);
	struct json_object *root, *gpu, *process, *slowest;

	(void)state;
	add_gpu(fixture);
	add_gpu_step(fixture, make_gpu());
	root = json_tokener_parse(finish(fixture));
	assert_non_null(root);
	gpu = member(json_object_array_get_idx(member(root, "kinds"), 0), "gpu");
	assert_int_equal(json_object_get_int64(member(gpu, "steps")), 1);
	assert_int_equal(json_object_get_int64(member(gpu, "idle_ns")), 1799001);
	assert_int_equal(json_object_get_int64(member(member(gpu, "bound"), "wait")), 1);
	assert_int_equal(json_object_get_int64(member(member(gpu, "busy"), "max_ns")), 4400999);
	assert_int_equal(json_object_array_length(member(gpu, "wait_calls")), 1);
	slowest = json_object_array_get_idx(member(gpu, "slowest"), 0);
	assert_int_equal(json_object_get_int64(member(slowest, "host_wait_ns")), 1500001);
	process = json_object_array_get_idx(member(root, "gpu_processes"), 0);
	assert_string_equal(json_object_get_string(member(process, "status")), "ended");
	assert_string_equal(json_object_get_string(member(process, "cupti")), "13.0 U1");
	assert_int_equal(json_object_get_int64(member(process, "kernels")), 1000);
	assert_false(json_object_get_boolean(member(process, "clock_suspect")));
	json_object_put(root);
	free_fixture(fixture);
}

static void of_incomplete_steps_no_share_is_told_to_programs(void **state)
{
	struct fixture *fixture = new_fixture(REPORT_JSON);
	struct step_gpu *gpu = make_gpu();
	struct json_object *root, *kind;

	(void)state;
	gpu->complete = false;
	add_gpu(fixture);
	add_gpu_step(fixture, gpu);
	root = json_tokener_parse(finish(fixture));
	assert_non_null(root);
	kind = member(json_object_array_get_idx(member(root, "kinds"), 0), "gpu");
	assert_int_equal(json_object_get_int64(member(kind, "complete_steps")), 0);
	assert_null(member(kind, "busy_percent"));
	json_object_put(root);
	free_fixture(fixture);
}

static void without_records_the_report_for_programs_says_null(void **state)
{
	struct fixture *fixture = new_fixture(REPORT_JSON);
	struct json_object *root;

	(void)state;
	add_steps(fixture, 1, MS);
	root = json_tokener_parse(finish(fixture));
	assert_non_null(root);
	assert_null(member(json_object_array_get_idx(member(root, "kinds"), 0), "gpu"));
	assert_int_equal(json_object_array_length(member(root, "gpu_processes")), 0);
	json_object_put(root);
	free_fixture(fixture);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_word_on_gpus_there_is_none),
		TEST(the_headline_says_what_the_gpu_waited_for),
		TEST(the_figures_of_a_kind_are_shown_per_step),
		TEST(spinning_is_told_of_steps_in_which_it_is_known),
		TEST(verdicts_are_shared_out),
		TEST(incomplete_steps_are_marked),
		TEST(of_incomplete_steps_no_mean_is_told),
		TEST(a_process_with_records_has_its_setup_and_counts),
		TEST(what_makes_gpu_figures_doubtful_is_warned_of),
		TEST(a_device_that_two_engines_use_is_told),
		TEST(a_device_that_two_engines_only_see_is_not),
		TEST(graphs_that_name_wrong_calls_are_warned_of),
		TEST(a_few_graphs_that_name_wrong_calls_are_not),
		cmocka_unit_test(without_records_one_line_says_why_and_how_to_get_them),
		TEST(processes_that_are_alike_share_a_line),
		cmocka_unit_test(records_that_ended_early_are_warned_of_and_explained),
		TEST(processes_with_and_without_records_have_lines_of_their_own),
		TEST(records_until_a_process_ended_are_complete),
		TEST(no_line_is_wider_than_eighty_columns),
		cmocka_unit_test(the_report_for_programs_has_them_in_nanoseconds),
		cmocka_unit_test(of_incomplete_steps_no_share_is_told_to_programs),
		cmocka_unit_test(without_records_the_report_for_programs_says_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

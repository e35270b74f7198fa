/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "model/env_host.h"
#include "stderr_fixture.h"

/*
 * The output of "nvidia-smi --query-gpu=… --format=csv,noheader,nounits" on a machine with two
 * GPUs.
 */
#define TWO_GPUS                                                                                   \
	"NVIDIA GeForce RTX 4090, 555.42.06, 2520, 350.00, Enabled\n"                              \
	"NVIDIA GeForce RTX 3060, 555.42.06, 1800, 170.00, Disabled\n"

/* Programs and files of a machine, in a folder that is removed together with them. */
struct machine {
	char folder[64];
	char cpuinfo[96];
	char driver[96];	/* set as a tool's by tests */
	const char *folders[3]; /* the first is "/nowhere" by default */
	struct env_tools tools;
	struct env_host host;
};

static struct machine machine_new(void)
{
	struct machine machine = {.folder = "/tmp/env_host_test.XXXXXX"};

	assert_non_null(mkdtemp(machine.folder));
	snprintf(machine.cpuinfo, sizeof(machine.cpuinfo), "%s/cpuinfo", machine.folder);
	snprintf(machine.driver, sizeof(machine.driver), "%s/version", machine.folder);
	return machine;
}

static void put_file(const char *folder, const char *name, const char *text, mode_t mode)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	chmod(path, mode);
}

static void put_program(struct machine *machine, const char *name, const char *script)
{
	char text[1024];

	/* PATH has no folder with standard tools, so the script sets its own. */
	snprintf(text, sizeof(text), "#!/bin/sh\ngiven=$PATH\nPATH=/usr/bin:/bin\n%s\n", script);
	put_file(machine->folder, name, text, 0755);
}

/*
 * An nvidia-smi that answers this one query with text and fails for any other, such as
 * cuda_version.
 */
static void put_gpu(struct machine *machine, const char *text)
{
	char script[768];

	snprintf(script, sizeof(script),
		 "[ \"$*\" = '--query-gpu=name,driver_version,clocks.gr,power.limit,"
		 "persistence_mode --format=csv,noheader,nounits' ] ||\n"
		 "{ echo 'Field \"cuda_version\" is not a valid field to query.'; exit 2; }\n"
		 "cat <<'END'\n%sEND",
		 text);
	put_program(machine, "nvidia-smi", script);
}

static const struct env_host *collect(struct machine *machine)
{
	if (!machine->folders[0])
		machine->folders[0] = "/nowhere";
	machine->folders[1] = machine->folder;
	machine->tools.folders = machine->folders;
	machine->tools.cpuinfo = machine->cpuinfo;
	if (!machine->tools.timeout_ms)
		machine->tools.timeout_ms = 60000;
	env_host_clear(&machine->host);
	assert_int_equal(env_host_collect(&machine->host, &machine->tools), 0);
	return &machine->host;
}

static void machine_remove(struct machine *machine)
{
	char command[128];

	env_host_clear(&machine->host);
	snprintf(command, sizeof(command), "rm -r %s", machine->folder);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
}

static void assert_text(const char *text, const char *expected)
{
	if (!expected)
		assert_null(text);
	else
		assert_string_equal(text ? text : "(none)", expected);
}

static void env_host_knows_a_gpu(void **state)
{
	struct machine machine = machine_new();
	const struct env_host *host;

	put_gpu(&machine, TWO_GPUS);
	host = collect(&machine);
	assert_text(host->hw_id, "rtx-4090");
	assert_text(host->driver, "555.42.06");
	assert_true(host->has_clock);
	assert_int_equal(host->clock_mhz, 2520);
	assert_true(host->has_power_limit);
	assert_int_equal(host->power_limit_w, 350);
	assert_true(host->has_persistence);
	assert_true(host->persistence);
	machine_remove(&machine);
}

static void env_host_names_a_gpu_as_the_engine_does(void **state)
{
	static const char *const names[][2] = {
		{"NVIDIA H100 80GB HBM3", "h100-80gb-hbm3"},
		{"Tesla V100-SXM2-16GB", "tesla-v100-sxm2-16gb"},
		{"NVIDIA A100-SXM4-40GB", "a100-sxm4-40gb"},
		{"NVIDIA  GeForce  GTX 1080", "gtx-1080"},
		{"NVIDIA GEFORCE nvidia X", "x"},
		{"NVIDIA", "nvidia"},
	};
	struct machine machine = machine_new();
	char text[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(text, sizeof(text), "%s, 1, 1, 1, Enabled\n", names[i][0]);
		put_gpu(&machine, text);
		assert_text(collect(&machine)->hw_id, names[i][1]);
	}
	machine_remove(&machine);
}

static void env_host_leaves_out_what_the_gpu_does_not_say(void **state)
{
	struct machine machine = machine_new();
	const struct env_host *host;

	put_file(machine.folder, "cpuinfo", "model name\t: Some CPU\n", 0644);
	put_gpu(&machine, "[N/A], [Not Supported], [N/A], , [N/A]\n");
	host = collect(&machine);
	assert_text(host->hw_id, "some-cpu");
	assert_null(host->driver);
	assert_false(host->has_clock);
	assert_false(host->has_power_limit);
	assert_false(host->has_persistence);
	/* An incomplete line. */
	put_gpu(&machine, "Tesla T4, 535.1\n");
	host = collect(&machine);
	assert_text(host->hw_id, "tesla-t4");
	assert_text(host->driver, "535.1");
	assert_false(host->has_clock);
	assert_false(host->has_persistence);
	machine_remove(&machine);
}

static void env_host_reads_numbers_as_the_engine_does(void **state)
{
	static const struct {
		const char *clock;
		const char *power;
		bool has_clock;
		bool has_power;
		uint32_t watts;
	} cases[] = {
		{"0", "0.99", true, true, 0},
		{"2520.5", "450", false, true, 450},
		{"-1", "-1.00", false, false, 0},
		{"4294967296", "4294967295.00", false, true, UINT32_MAX},
		{"2520 MHz", "350.00 W", false, true, 350},
		{"[Unknown Error]", ".5", false, false, 0},
	};
	struct machine machine = machine_new();
	const struct env_host *host;
	char text[128];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text), "X, 1, %s, %s, Disabled\n", cases[i].clock,
			 cases[i].power);
		put_gpu(&machine, text);
		host = collect(&machine);
		assert_int_equal(host->has_clock, cases[i].has_clock);
		assert_int_equal(host->has_power_limit, cases[i].has_power);
		if (host->has_power_limit)
			assert_true(host->power_limit_w == cases[i].watts);
		assert_true(host->has_persistence);
		assert_false(host->persistence);
	}
	machine_remove(&machine);
}

static void env_host_without_a_gpu_is_its_processor(void **state)
{
	static const char *const cpus[][2] = {
		{"processor\t: 0\nmodel name\t: AMD EPYC 7763 64-Core Processor\n"
		 "model name\t: other\n",
		 "amd-epyc-7763-64-core-processor"},
		{"model name\t: Intel(R) Xeon(R) CPU @ 2.20GHz\n",
		 "intel(r)-xeon(r)-cpu-@-2.20ghz"},
		{"model name\t: A: B\n", "a"},
		{"model name without\nmodel name : NVIDIA GeForce CPU\n", "nvidia-geforce-cpu"},
		{"CPU implementer\t: 0x41\n", "unknown"},
		{"", "unknown"},
	};
	struct machine machine = machine_new();
	const struct env_host *host;

	for (size_t i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++) {
		put_file(machine.folder, "cpuinfo", cpus[i][0], 0644);
		host = collect(&machine);
		assert_text(host->hw_id, cpus[i][1]);
		assert_null(host->driver);
		assert_null(host->cuda);
		assert_text(host->rust, "unknown");
		assert_false(host->has_clock);
	}
	unlink(machine.cpuinfo);
	assert_text(collect(&machine)->hw_id, "unknown");
	machine_remove(&machine);
}

static void env_host_takes_the_toolkits_cuda_version(void **state)
{
	static const char *const outputs[][2] = {
		{"echo 'nvcc: NVIDIA (R) Cuda compiler driver'; echo 'Cuda compilation tools, "
		 "release "
		 "12.4, V12.4.131'",
		 "12.4"},
		{"echo 'release none'; echo 'release 11.8 , x'", "11.8"},
		/* The engine ignores the exit status. */
		{"echo 'release 13.0,'; exit 1", "13.0"},
		{"echo nothing", NULL},
	};
	struct machine machine = machine_new();

	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
		put_program(&machine, "nvcc", outputs[i][0]);
		assert_text(collect(&machine)->cuda, outputs[i][1]);
	}
	put_program(&machine, "nvcc", "[ \"$*\" = --version ] && echo 'release 1.2, x'");
	assert_text(collect(&machine)->cuda, "1.2");
	machine_remove(&machine);
}

static void env_host_else_takes_the_drivers_cuda_version(void **state)
{
	struct machine machine = machine_new();

	put_program(&machine, "nvidia-smi",
		    "case \"$*\" in\n"
		    "'--query-gpu=cuda_version --format=csv,noheader,nounits') echo ' 12.9 ' ;;\n"
		    "*) exit 1 ;;\nesac");
	assert_text(collect(&machine)->cuda, "12.9");
	/* nvidia-smi has no such field today. */
	put_gpu(&machine, TWO_GPUS);
	assert_text(collect(&machine)->cuda, NULL);
	machine_remove(&machine);
}

static void env_host_takes_the_second_word_of_rustc(void **state)
{
	static const char *const outputs[][2] = {
		{"echo 'rustc 1.78.0 (9b00956e5 2024-04-29)'", "1.78.0"},
		{"echo rustc; echo 1.79.0", "1.79.0"},
		{"echo rustc", "unknown"},
		{"exit 0", "unknown"},
		{"[ \"$*\" = --version ] && echo 'rustc x'", "x"},
	};
	struct machine machine = machine_new();

	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
		put_program(&machine, "rustc", outputs[i][0]);
		assert_text(collect(&machine)->rust, outputs[i][1]);
	}
	machine_remove(&machine);
}

static void env_host_runs_the_rustc_that_is_named(void **state)
{
	struct machine machine = machine_new();
	char path[128];

	put_program(&machine, "rustc", "echo 'rustc 1.78.0'");
	put_program(&machine, "nightly", "echo 'rustc 1.99.0-nightly'");
	snprintf(path, sizeof(path), "%s/nightly", machine.folder);
	machine.tools.rustc = path;
	assert_text(collect(&machine)->rust, "1.99.0-nightly");
	machine.tools.rustc = "/nowhere/rustc";
	assert_text(collect(&machine)->rust, "unknown");
	/* The program is not searched in PATH, nor in the current folder. */
	machine.tools.rustc = "nightly";
	assert_text(collect(&machine)->rust, "1.78.0");
	assert_int_equal(chdir(machine.folder), 0);
	machine.tools.rustc = "./nightly";
	assert_text(collect(&machine)->rust, "1.78.0");
	assert_int_equal(chdir("/"), 0);
	machine_remove(&machine);
}

static void env_host_runs_only_programs(void **state)
{
	struct machine machine = machine_new();
	char first[128], path[256];

	/* A file that is not executable, and a folder, come first in PATH. */
	snprintf(first, sizeof(first), "%s/first", machine.folder);
	assert_int_equal(mkdir(first, 0755), 0);
	put_file(first, "rustc", "#!/bin/sh\necho 'rustc 1'\n", 0644);
	snprintf(path, sizeof(path), "%s/nvcc", first);
	assert_int_equal(mkdir(path, 0755), 0);
	put_program(&machine, "rustc", "echo 'rustc 2'");
	put_program(&machine, "nvcc", "echo 'release 2,'");
	machine.folders[0] = first;
	assert_text(collect(&machine)->rust, "2");
	assert_text(machine.host.cuda, "2");
	machine_remove(&machine);
}

static void env_host_takes_nothing_from_an_nvidia_smi_that_fails(void **state)
{
	struct machine machine = machine_new();
	const struct env_host *host;

	put_program(&machine, "nvidia-smi",
		    "echo 'NVIDIA-SMI has failed because it could not communicate, x, 1'; exit 9");
	host = collect(&machine);
	assert_text(host->hw_id, "unknown");
	assert_null(host->driver);
	assert_false(host->has_clock);
	assert_silent(*state);
	machine_remove(&machine);
}

static void env_host_says_that_a_gpu_is_left_out(void **state)
{
	struct machine machine = machine_new();

	put_file(machine.folder, "version", "NVRM version", 0644);
	machine.tools.gpu_driver = "/nowhere/version";
	collect(&machine);
	put_gpu(&machine, TWO_GPUS);
	machine.tools.gpu_driver = machine.driver;
	collect(&machine);
	assert_silent(*state);
	put_program(&machine, "nvidia-smi", "exit 9");
	collect(&machine);
	assert_one_line(*state,
			"NVIDIA's driver is loaded, but nvidia-smi fails or is in none of "
			"the usual folders: the env hash is that of a machine without a GPU");
	machine_remove(&machine);
}

static void env_host_says_that_a_program_hangs(void **state)
{
	struct machine machine = machine_new();
	const struct env_host *host;

	put_program(&machine, "rustc", "exec sleep 1000");
	machine.tools.timeout_ms = 100;
	host = collect(&machine);
	assert_text(host->rust, "unknown");
	assert_one_line(*state, "/rustc: no answer within 100 ms: what it says is not in the env "
				"hash");
	machine_remove(&machine);
}

/* A driver that hangs is asked only once. */
static void env_host_does_not_ask_a_hanging_driver_again(void **state)
{
	struct machine machine = machine_new();

	put_program(&machine, "nvidia-smi", "exec sleep 1000");
	machine.tools.timeout_ms = 100;
	collect(&machine);
	assert_one_line(*state, "/nvidia-smi: no answer within 100 ms");
	machine_remove(&machine);
}

static void env_host_gives_its_programs_a_small_environment(void **state)
{
	struct machine machine = machine_new();
	char expected[256];

	setenv("FERRUM_SECRET", "1", 1);
	setenv("LD_PRELOAD_OF_THE_TOOL", "1", 1);
	setenv("HOME", "/some/home", 1);
	setenv("RUSTUP_HOME", "/some/rustup", 1);
	/* The shell itself sets PWD and _. */
	put_program(&machine, "rustc",
		    "echo \"rustc $given|$(env | grep -vE '^(PATH|PWD|OLDPWD|SHLVL|_)=' | sort | "
		    "tr '\\n' '|')\"");
	snprintf(expected, sizeof(expected),
		 "/nowhere:%s|HOME=/some/home|LC_ALL=C|RUSTUP_HOME=/some/rustup|", machine.folder);
	assert_text(collect(&machine)->rust, expected);
	machine_remove(&machine);
}

static void env_host_runs_the_programs_of_the_machine_from_fixed_folders(void **state)
{
	static const char *const folders[] = {"/usr/local/cuda/bin",
					      "/usr/local/sbin",
					      "/usr/local/bin",
					      "/usr/sbin",
					      "/usr/bin",
					      "/sbin",
					      "/bin"};
	struct env_tools tools;

	setenv("PATH", "/tmp", 1);
	unsetenv("RUSTC");
	tools = env_tools_default();
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		assert_string_equal(tools.folders[i], folders[i]);
	assert_null(tools.folders[7]);
	assert_null(tools.rustc);
	assert_string_equal(tools.cpuinfo, "/proc/cpuinfo");
	assert_int_equal(tools.timeout_ms, 5000);
	setenv("RUSTC", "/opt/rustc", 1);
	assert_string_equal(env_tools_default().rustc, "/opt/rustc");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stderr_setup, stderr_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(env_host_knows_a_gpu),
		cmocka_unit_test(env_host_names_a_gpu_as_the_engine_does),
		cmocka_unit_test(env_host_leaves_out_what_the_gpu_does_not_say),
		cmocka_unit_test(env_host_reads_numbers_as_the_engine_does),
		cmocka_unit_test(env_host_without_a_gpu_is_its_processor),
		cmocka_unit_test(env_host_takes_the_toolkits_cuda_version),
		cmocka_unit_test(env_host_else_takes_the_drivers_cuda_version),
		cmocka_unit_test(env_host_takes_the_second_word_of_rustc),
		cmocka_unit_test(env_host_runs_the_rustc_that_is_named),
		cmocka_unit_test(env_host_runs_only_programs),
		TEST(env_host_takes_nothing_from_an_nvidia_smi_that_fails),
		TEST(env_host_says_that_a_gpu_is_left_out),
		TEST(env_host_says_that_a_program_hangs),
		TEST(env_host_does_not_ask_a_hanging_driver_again),
		cmocka_unit_test(env_host_gives_its_programs_a_small_environment),
		cmocka_unit_test(env_host_runs_the_programs_of_the_machine_from_fixed_folders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Doctor's checks of clocks, memory and directories, and trials that fail. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "commands/doctor_room.h"
#include "doctor_fixture.h"

static struct doctor_room good(void)
{
	struct doctor_room room = {
		.clock_source = "tsc",
		.clock_ps = 25000,
		.cpu_count = 8,
		.memory_bytes = 8ull << 30,
		.dirs = {{.path = ".", .disk = {.free_bytes = 9ull << 30}}},
		.dir_count = 1,
		.authorities = "/etc/ssl/certs/ca-certificates.crt",
	};

	return room;
}

static struct findings judge(const struct doctor_room *room)
{
	struct findings checks = {.tgid = 0};

	doctor_room_judge(room, &checks);
	return checks;
}

static void a_good_room_has_nothing_to_mend(void **state)
{
	struct doctor_room room = good();
	struct findings checks = judge(&room);

	(void)state;
	assert_int_equal(findings_count(&checks, FINDING_OK), checks.items.count);
	assert_check(&checks, "clock", FINDING_OK, "tsc, 25 ns", NULL);
	assert_check(&checks, "memory", FINDING_OK, "8.00 GiB available, 8 CPUs", NULL);
	assert_check(&checks, "files", FINDING_OK, "the current directory is writable, 9.00 GiB",
		     NULL);
	end_checks(&checks);
}

static void a_slow_clock_is_a_limit(void **state)
{
	struct doctor_room room = good();
	struct findings checks;

	(void)state;
	strcpy(room.clock_source, "hpet");
	room.clock_ps = 1200000;
	checks = judge(&room);
	assert_check(&checks, "clock", FINDING_WARN, "hpet, 1.20 us", "dmesg");
	end_checks(&checks);
	/* A clock source that the check does not know, but a fast one. */
	strcpy(room.clock_source, "xen");
	room.clock_ps = 60000;
	checks = judge(&room);
	assert_check(&checks, "clock", FINDING_OK, "xen", NULL);
	end_checks(&checks);
}

static void little_memory_and_disk_are_limits(void **state)
{
	struct doctor_room room = good();
	struct findings checks;

	(void)state;
	room.memory_bytes = DOCTOR_MEMORY_MIN - 1;
	room.dirs[0].disk.free_bytes = DOCTOR_DISK_MIN - 1;
	checks = judge(&room);
	assert_check(&checks, "memory", FINDING_WARN, "only", "--ring-records");
	assert_check(&checks, "files", FINDING_WARN, "only", "--dir");
	end_checks(&checks);
	room.memory_bytes = UINT64_MAX;
	checks = judge(&room);
	assert_check(&checks, "memory", FINDING_OK, "unknown amount", NULL);
	end_checks(&checks);
}

static void less_than_is_kept_free_is_an_obstacle(void **state)
{
	struct doctor_room room = good();
	struct findings checks;

	(void)state;
	room.dirs[0].disk.free_bytes = (2ull << 30) - 1;
	room.dirs[0].disk.keep_bytes = 2ull << 30;
	checks = judge(&room);
	assert_check(&checks, "files", FINDING_FAIL, "--keep-free is 2.00 GiB", "--keep-free");
	end_checks(&checks);
	room.dirs[0].disk.free_bytes++;
	checks = judge(&room);
	assert_check(&checks, "files", FINDING_OK, "2.00 GiB free", NULL);
	end_checks(&checks);
}

static void a_read_only_directory_is_an_obstacle(void **state)
{
	struct doctor_room room = good();
	struct findings checks;

	(void)state;
	room.dirs[0].err = -EROFS;
	checks = judge(&room);
	assert_check(&checks, "files", FINDING_FAIL, "Read-only", "--trace none");
	end_checks(&checks);
}

static void other_tracers_and_missing_authorities_are_no_limits(void **state)
{
	struct doctor_room room = good();
	struct findings checks;

	(void)state;
	room.tracers = 2;
	room.authorities = NULL;
	checks = judge(&room);
	assert_check(&checks, "other tracers", FINDING_NOTE, "2 BPF programs", NULL);
	assert_check(&checks, "--otlp", FINDING_NOTE, "https is not possible", NULL);
	end_checks(&checks);
	room.tracers = -1;
	checks = judge(&room);
	assert_check(&checks, "other tracers", FINDING_NOTE, "CAP_SYS_ADMIN", NULL);
	end_checks(&checks);
}

/* 0 or -errno for the one directory that the options write to; 1 if there is none. */
static int write_err(const char *trace, const char *profile, const char *dir)
{
	struct options options = {.trace = trace, .profile = profile};
	struct doctor_room room;

	options.windows.dir = dir;
	doctor_room_read(&room, &options);
	assert_in_range(room.dir_count, 0, 1);
	return room.dir_count ? room.dirs[0].err : 1;
}

static void the_directories_are_those_that_options_name(void **state)
{
	char dir[] = "/tmp/doctor_room_XXXXXX", path[64];

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(write_err(NULL, NULL, dir), 0);
	snprintf(path, sizeof(path), "%s/a/b/trace.json", dir);
	/* The directory a/b would be created. */
	assert_int_equal(write_err(path, "none", NULL), 0);
	assert_int_equal(write_err("none", "none", NULL), 1);
	assert_int_equal(write_err("/dev/stdout", "none", NULL), 1);
	assert_int_equal(write_err("/proc/version/x/t", "none", NULL), -ENOTDIR);
	assert_int_equal(rmdir(dir), 0);
}

static void each_output_has_its_directory(void **state)
{
	const struct options options = {.trace = "/proc/version/trace/t",
					.profile = "/proc/version/profile/p",
					.record = "/proc/version/record/r",
					.html = "/proc/version/html/h",
					.folded = "/proc/version/folded/f",
					.metrics = "/proc/version/metrics/m.prom"};
	struct doctor_room room;

	(void)state;
	doctor_room_read(&room, &options);
	assert_int_equal(room.dir_count, 6);
	for (size_t i = 0; i < room.dir_count; i++)
		assert_int_equal(room.dirs[i].err, -ENOTDIR);
}

static void a_trial_says_why_it_failed(void **state)
{
	struct doctor_trial trial = {.err = -EINVAL};
	struct findings checks = {.tgid = 0};

	(void)state;
	hear(&trial.words, "load: what the kernel said");
	doctor_trial_judge(&trial, &checks);
	assert_check(&checks, "trial", FINDING_FAIL, "what the kernel said", "-v");
	end_checks(&checks);
	trial.err = -ENOMEM;
	doctor_trial_judge(&trial, &checks);
	assert_check(&checks, "trial", FINDING_FAIL, "load", "memory");
	end_checks(&checks);
	trial.skipped = true;
	doctor_trial_judge(&trial, &checks);
	assert_check(&checks, "trial", FINDING_NOTE, "not run", NULL);
	end_checks(&checks);
	trial = (struct doctor_trial){.took_ns = 30000000, .ring_bytes = 1 << 20};
	trial.cost = (struct fbt_cost){.call_ps = 120000, .step_ns = 9000};
	doctor_trial_judge(&trial, &checks);
	assert_check(&checks, "trial", FINDING_OK, "30.0 ms; costs 120 ns a call, 9.00 us a step",
		     NULL);
	end_checks(&checks);
}

static void a_trial_says_what_the_kernel_lacks(void **state)
{
	struct doctor_trial trial = {.took_ns = 30000000, .ring_bytes = 1 << 20};
	struct findings checks = {.tgid = 0};

	(void)state;
	doctor_trial_judge(&trial, &checks);
	assert_null(find_check(&checks, "looks"));
	assert_null(find_check(&checks, "signals"));
	assert_null(find_check(&checks, "explain"));
	end_checks(&checks);
	trial.no_looks = true;
	trial.no_senders = true;
	trial.explain_err = -EINVAL;
	doctor_trial_judge(&trial, &checks);
	assert_check(&checks, "looks", FINDING_NOTE, "has a lock", NULL);
	assert_check(&checks, "signals", FINDING_NOTE, "who stopped a process", NULL);
	assert_check(&checks, "explain", FINDING_NOTE, "Invalid argument", NULL);
	assert_check(&checks, "trial", FINDING_OK, "30.0 ms", NULL);
	end_checks(&checks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_room_has_nothing_to_mend),
		cmocka_unit_test(a_slow_clock_is_a_limit),
		cmocka_unit_test(little_memory_and_disk_are_limits),
		cmocka_unit_test(less_than_is_kept_free_is_an_obstacle),
		cmocka_unit_test(a_read_only_directory_is_an_obstacle),
		cmocka_unit_test(other_tracers_and_missing_authorities_are_no_limits),
		cmocka_unit_test(each_output_has_its_directory),
		cmocka_unit_test(the_directories_are_those_that_options_name),
		cmocka_unit_test(a_trial_says_why_it_failed),
		cmocka_unit_test(a_trial_says_what_the_kernel_lacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

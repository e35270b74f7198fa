/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judged_fixture.h"

#include "judge/cause.h"
#include "judge/text.h"

static int setup(void **state)
{
	struct window *window = new_window();

	name_file(window, 1, S_IFREG, "/var/lib/models/x.gguf");
	name_file(window, 2, S_IFCHR, "/dev/nvidiactl");
	name_file(window, 3, S_IFSOCK, "socket:[123]");
	name_file(window, 4, S_IFREG, "/tmp/\033[31mred\n\xe2\x80\xae\xff");
	name_file(window, 5, S_IFREG, "");
	*state = window;
	return 0;
}

static int teardown(void **state)
{
	window__free(*state);
	return 0;
}

static void check(void **state, struct cause cause, const char *expected)
{
	char text[256];

	cause_describe(&cause, *state, text, sizeof(text));
	assert_string_equal(text, expected);
}

/* Calls of one number. The usual time and the object of the calls are unknown. */
static struct cause cause_of(enum cause_kind kind, const char *name, uint64_t calls,
			     uint64_t time_ns)
{
	return (struct cause){.kind = kind,
			      .calls_known = true,
			      .time_ns = time_ns,
			      .calls = calls,
			      .nr = nr_of(name),
			      .nr_calls = calls,
			      .nr_ns = time_ns};
}

static void locks_are_described(void **state)
{
	struct cause cause = cause_of(CAUSE_LOCK_CONTENTION, "futex", 12, 291 * MS);

	cause.usual_known = cause.blocked_known = true;
	cause.usual_ns = 100 * US;
	cause.blocked = 3;
	cause.lock = 0x7f31a2b3c4d0;
	check(state, cause,
	      "futex 291 ms (usually 100 us), 3 of 12 calls blocked, lock at 0x7f31a2b3c4d0");
	cause.calls_partial = true;
	cause.calls = cause.nr_calls = cause.blocked = 1;
	cause.usual_ns = cause.lock = 0;
	check(state, cause,
	      "futex 291 ms (usually none), 1 of 1 call blocked; some calls were lost");
	/* A call without arguments does not tell whether it blocked. */
	cause.calls_partial = cause.blocked_known = false;
	cause.calls = cause.nr_calls = 12;
	check(state, cause, "futex 291 ms (usually none), 12 calls");
	cause.gpu_lost = true;
	check(state, cause,
	      "futex 291 ms (usually none), 12 calls; GPU records are missing: the GPU may have "
	      "worked meanwhile");
}

static void calls_of_several_numbers_are_described(void **state)
{
	struct cause cause = {
		.kind = CAUSE_ALLOCATION_CHURN,
		.usual_known = true,
		.calls_known = true,
		.time_ns = 31 * MS,
		.usual_ns = MS,
		.calls = 1064,
		.bytes = UINT64_C(2) << 30,
		.nr = nr_of("munmap"),
		.nr_calls = 64,
		.nr_ns = 20 * MS,
	};

	check(state, cause,
	      "memory calls 31.0 ms (usually 1.00 ms), 1,064 calls, most in munmap (20.0 ms in "
	      "64), 2.00 GiB");
	cause.nr_calls = 1064;
	check(state, cause, "munmap 31.0 ms (usually 1.00 ms), 1,064 calls, 2.00 GiB");
}

static void driver_calls_are_described(void **state)
{
	struct cause cause = cause_of(CAUSE_DRIVER_CALLS, "ioctl", 3, 14100 * US);

	cause.usual_known = true;
	cause.file = 2;
	cause.file_calls = UINT64_MAX;
	cause.command = 0x20801303c020462a;
	cause.command_calls = 3;
	cause.command_ns = 14100 * US;
	check(state, cause,
	      "ioctl RM_CONTROL FB_GET_INFO_V2 14.1 ms (usually none), 3 calls on /dev/nvidiactl");
	cause.calls = cause.nr_calls = 4;
	cause.time_ns = 15 * MS;
	check(state, cause,
	      "ioctl 15.0 ms (usually none), 4 calls, most in RM_CONTROL FB_GET_INFO_V2 "
	      "(14.1 ms in 3) on /dev/nvidiactl");
	cause.file_calls = 2;
	cause.file_ns = 7050 * US;
	check(state, cause,
	      "ioctl 15.0 ms (usually none), 4 calls, most in RM_CONTROL FB_GET_INFO_V2 "
	      "(14.1 ms in 3), most on /dev/nvidiactl");
	cause.file = 1;
	check(state, cause,
	      "ioctl 15.0 ms (usually none), 4 calls, most in 0xc020462a (14.1 ms in 3), most on "
	      "/var/lib/models/x.gguf");
	cause.command_calls = cause.file = 0;
	check(state, cause, "ioctl 15.0 ms (usually none), 4 calls");
}

static void file_and_socket_io_are_described(void **state)
{
	struct cause cause = cause_of(CAUSE_FILE_IO, "read", 118, 120400 * US);

	cause.bytes = 1258291;
	cause.file = 1;
	cause.file_calls = UINT64_MAX;
	check(state, cause, "read 120 ms, 118 calls, 1.20 MiB of /var/lib/models/x.gguf");
	cause.kind = CAUSE_SOCKET_IO;
	cause.file = 3;
	check(state, cause, "read 120 ms, 118 calls, 1.20 MiB of socket:[123]");
	cause.file_calls = 2;
	cause.file_ns = 12 * MS;
	check(state, cause, "read 120 ms, 118 calls, 1.20 MiB, 12.0 ms of socket:[123]");
	cause.file_calls = 117;
	cause.file_ns = 60200 * US;
	check(state, cause, "read 120 ms, 118 calls, 1.20 MiB, most of socket:[123]");
	cause.file = 5;
	check(state, cause, "read 120 ms, 118 calls, 1.20 MiB");
	cause.file = 99;
	check(state, cause, "read 120 ms, 118 calls, 1.20 MiB");
}

static void tiny_writes_are_described(void **state)
{
	struct cause cause = cause_of(CAUSE_TINY_WRITES, "write", 4096, 14 * MS);

	cause.usual_known = true;
	cause.writes_ns = 14 * MS;
	cause.bytes = 4096 * 17 + 5;
	cause.file = 3;
	cause.file_calls = UINT64_MAX;
	check(state, cause,
	      "write 14.0 ms (usually none), 4,096 calls of 17 bytes on average to socket:[123]");
	/* The usual time is known only for all I/O together. */
	cause.time_ns = 24 * MS;
	cause.usual_ns = 10 * MS;
	check(state, cause,
	      "write 14.0 ms of 24.0 ms of I/O (usually 10.0 ms), 4,096 calls of 17 bytes on "
	      "average to socket:[123]");
	cause.file_calls = 2;
	cause.file_ns = 7 * MS;
	check(state, cause,
	      "write 14.0 ms of 24.0 ms of I/O (usually 10.0 ms), 4,096 calls of 17 bytes on "
	      "average, most to socket:[123]");
}

static void threads_are_described(void **state)
{
	struct cause cause = {.kind = CAUSE_THREAD_CHURN,
			      .calls_known = true,
			      .time_ns = 12 * MS,
			      .calls = 20,
			      .threads_made = 8};

	check(state, cause, "threads 12.0 ms, 8 created, with their stacks and joins");
	cause.threads_made = 0;
	check(state, cause, "threads 12.0 ms, 20 calls");
}

static void signals_are_described(void **state)
{
	struct cause cause = {.kind = CAUSE_SIGNAL_STORM,
			      .estimated = true,
			      .usual_known = true,
			      .calls_known = true,
			      .time_ns = 12 * MS,
			      .usual_ns = 3 * US,
			      .signals = 1204};

	check(state, cause, "1,204 signals handled, about 12.0 ms (usually 3.00 us)");
	cause.signals = 0;
	cause.calls = cause.nr_calls = 1;
	cause.nr = nr_of("tgkill");
	check(state, cause, "tgkill 12.0 ms (usually 3.00 us), 1 call");
}

static void the_cpu_is_named_where_it_is_that_of_the_wait(void **state)
{
	struct cause cause = {.kind = CAUSE_RUN_QUEUE,
			      .time_ns = 12 * MS,
			      .taken = {.header.type = FBT_EVENT_TAKEN,
					.waited_ns = 12 * MS,
					.cpu = 4,
					.count = 1,
					.takers = {{.tgid = 9, .ns = 12 * MS, .comm = "hog"}}}};

	check(state, cause, "waited 12.0 ms for CPU 3, taken by hog (pid 9) 12.0 ms");
	cause.taken.cpu = 0;
	check(state, cause, "waited 12.0 ms for a CPU, taken by hog (pid 9) 12.0 ms");
	/* Of a part of the wait nothing is known. */
	cause.taken.cpu = 1;
	cause.time_ns = 14 * MS;
	check(state, cause, "waited 14.0 ms for a CPU, taken by hog (pid 9) 12.0 ms");
}

static void what_is_in_no_call_is_described(void **state)
{
	struct cause cause = {.kind = CAUSE_RUN_QUEUE,
			      .usual_known = true,
			      .time_ns = 12 * MS,
			      .usual_ns = MS,
			      .minor_faults = 12345,
			      .major_faults = 1};

	check(state, cause, "waited 12.0 ms for a CPU (usually 1.00 ms)");
	cause.kind = CAUSE_OFF_CPU;
	check(state, cause,
	      "off the CPU 12.0 ms (usually 1.00 ms): outside of syscalls, not waiting for a CPU");
	cause.steal_ns = 1201 * US;
	check(state, cause,
	      "off the CPU 12.0 ms (usually 1.00 ms): outside of syscalls, not waiting for a CPU; "
	      "the host of this virtual machine took 1.20 ms of it (steal)");
	cause.kind = CAUSE_STEAL;
	cause.steal_ns = 11 * MS;
	check(state, cause,
	      "off the CPU 12.0 ms (usually 1.00 ms): the host of this virtual machine took its "
	      "CPU for 11.0 ms (steal)");
	cause.kind = CAUSE_PAGE_FAULTS;
	cause.fault_wait_ns = 12 * MS;
	check(state, cause, "waited 12.0 ms (usually 1.00 ms) for a disk in 1 page fault");
	cause.fault_wait_ns = 0;
	cause.estimated = true;
	check(state, cause,
	      "about 12.0 ms (usually 1.00 ms) in 12,345 page faults (estimated), 1 page fault "
	      "waited for a disk");
	cause.kind = CAUSE_COMPUTE;
	cause.major_faults = 0;
	check(state, cause,
	      "work 12.0 ms (usually 1.00 ms): outside of syscalls, not waiting for a CPU");
	cause.major_faults = 38;
	check(state, cause,
	      "work 12.0 ms (usually 1.00 ms): outside of syscalls, not waiting for a CPU, 38 page "
	      "faults waited for a disk");
}

/* Most of the time of a short call is the way into it and out of it. */
static void calls_that_are_mostly_entry_say_so(void **state)
{
	struct cause cause = {.kind = CAUSE_OTHER_CALLS,
			      .usual_known = true,
			      .calls_known = true,
			      .time_ns = 12 * MS,
			      .between_ns = 3 * MS,
			      .calls = 4000,
			      .nr = nr_of("getppid"),
			      .nr_calls = 4000};

	check(state, cause, "getppid 12.0 ms (usually none), 4,000 calls");
	cause.between_ns++;
	check(state, cause,
	      "getppid 12.0 ms (usually none), 4,000 calls with their entry and exit");
}

static void timed_faults_say_what_they_were_for(void **state)
{
	struct cause cause = {.kind = CAUSE_PAGE_FAULTS,
			      .usual_known = true,
			      .time_ns = 55 * MS,
			      .minor_faults = 32768,
			      .faults_timed = true};

	check(state, cause, "spent 55.0 ms (usually none) in 32,768 page faults");
	cause.mapping = FBT_MAPPING_ANON;
	check(state, cause,
	      "spent 55.0 ms (usually none) in 32,768 page faults, most of anonymous memory "
	      "(heap)");
	cause.mapping = FBT_MAPPING_STACK;
	cause.mapping_is_all = true;
	cause.minor_faults = 0;
	cause.major_faults = 1;
	check(state, cause, "spent 55.0 ms (usually none) in 1 page fault of the stack");
	cause.mapping = FBT_MAPPING_FILE;
	cause.fault_wait_ns = 28 * MS;
	check(state, cause,
	      "spent 55.0 ms (usually none) in 1 page fault of mapped files, 28.0 ms of it waiting "
	      "for a disk");
	cause.fault_wait_ns = 0;
	cause.fault_file = 1;
	check(state, cause,
	      "spent 55.0 ms (usually none) in 1 page fault of file /var/lib/models/x.gguf");
	cause.fault_file = 4;
	check(state, cause,
	      "spent 55.0 ms (usually none) in 1 page fault of file "
	      "/tmp/\\x1b[31mred\\n\\xe2\\x80\\xae\\xff");
}

/* A worker's faults add to those of the step itself, which need not have waited for a disk. */
static void faults_that_needed_no_disk_are_not_said_to_have_waited_for_one(void **state)
{
	struct cause cause = {.kind = CAUSE_PAGE_FAULTS,
			      .usual_known = true,
			      .time_ns = 42 * MS,
			      .fault_wait_ns = 2 * MS,
			      .minor_faults = 9990,
			      .major_faults = 3,
			      .worker_faults = 1,
			      .worker_minor_faults = 7,
			      .faults_timed = true};

	check(state, cause,
	      "spent 42.0 ms (usually none) in 10,001 page faults, 2.00 ms of it waiting for a "
	      "disk");
	cause.fault_wait_ns = 37 * MS;
	check(state, cause,
	      "spent 42.0 ms (usually none) in 10,001 page faults, 37.0 ms of it waiting for a "
	      "disk");
	/* All of it, or nearly. */
	cause.fault_wait_ns = 38 * MS;
	check(state, cause, "waited 42.0 ms (usually none) for a disk in 4 page faults");
}

static void a_stop_says_by_whom(void **state)
{
	struct cause cause = {.kind = CAUSE_STOPPED, .time_ns = 300 * MS};

	cause.stop.reason = FBT_STOP_SIGNAL;
	check(state, cause, "stopped 300 ms by a signal (SIGSTOP or alike)");
	cause.stop.reason = FBT_STOP_FREEZER;
	check(state, cause, "stopped 300 ms by the freezer of its cgroup");
	cause.stop.reason = FBT_STOP_TRACER;
	check(state, cause, "stopped 300 ms by a tracer");
	cause.stop.tracer = 4711;
	strcpy(cause.stop.comm, "gdb\33");
	check(state, cause, "stopped 300 ms by a tracer: gdb\\x1b (pid 4711)");
}

static void limits_are_described(void **state)
{
	struct cause cause = {.kind = CAUSE_CPU_LIMIT,
			      .usual_known = true,
			      .time_ns = 212 * MS,
			      .minor_faults = 1024,
			      .major_faults = 38,
			      .limits = {.throttled_ns = 900 * MS,
					 .quota_ns = 200 * MS,
					 .period_ns = 100 * MS,
					 .throttled_periods = 3,
					 .memory_hits = 512}};

	check(state, cause,
	      "waited 212 ms for a CPU (usually none): the CPU limit of its cgroup, 2.00 CPUs in "
	      "each 100 ms, was reached 3 times");
	cause.limits.period_ns = 0;
	cause.limits.throttled_periods = 0;
	check(state, cause,
	      "waited 212 ms for a CPU (usually none): a CPU limit of its cgroups was reached "
	      "once");
	cause.kind = CAUSE_MEMORY_LIMIT;
	cause.estimated = true;
	check(state, cause,
	      "about 212 ms (usually none) in 1,024 page faults (estimated), 38 page faults "
	      "waited "
	      "for a disk: its cgroup was at its memory limit 512 times");
}

static void calls_that_are_not_known_are_said(void **state)
{
	struct cause cause = {.kind = CAUSE_LOCK_CONTENTION, .time_ns = MS};

	check(state, cause,
	      "futex 1.00 ms; the calls were not recorded: it may have waited for threads that "
	      "computed");
	cause.kind = CAUSE_DRIVER_CALLS;
	check(state, cause, "ioctl 1.00 ms; the calls were not recorded");
	cause.kind = CAUSE_FILE_IO;
	check(state, cause,
	      "reads and writes (files and sockets) 1.00 ms; the calls were not recorded");
	cause.kind = CAUSE_ALLOCATION_CHURN;
	check(state, cause, "mmap, munmap, mprotect, brk 1.00 ms; the calls were not recorded");
	cause.kind = CAUSE_OTHER_CALLS;
	check(state, cause, "other calls 1.00 ms; the calls were not recorded");
}

static void numbers_without_a_name_are_described(void **state)
{
	struct cause cause = {.kind = CAUSE_OTHER_CALLS,
			      .calls_known = true,
			      .time_ns = MS,
			      .calls = 1,
			      .nr = 511,
			      .nr_calls = 1};

	check(state, cause, "syscall_511 1.00 ms, 1 call");
}

static void paths_are_escaped(void **state)
{
	struct cause cause = cause_of(CAUSE_FILE_IO, "read", 1, MS);
	char text[256];

	cause.file = 4;
	cause.file_calls = UINT64_MAX;
	cause_describe(&cause, *state, text, sizeof(text));
	for (const char *at = text; *at; at++)
		assert_in_range(*at, ' ', '~');
	assert_non_null(strstr(text, " of /tmp/"));
}

/* Text of any size is cut between UTF-8 characters, and its NUL lies within size. */
static void lines_are_cut_to_whole_characters(void **state)
{
	struct cause cause = cause_of(CAUSE_FILE_IO, "read", 1, MS);
	char whole[256];

	cause.file = 6;
	cause.file_calls = UINT64_MAX;
	name_file(*state, 6, S_IFREG, "/\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80/\xc3\xa9");
	cause_describe(&cause, *state, whole, sizeof(whole));
	assert_non_null(strstr(whole, "/\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80/\xc3\xa9"));
	for (size_t size = 1; size <= strlen(whole) + 2; size++) {
		char *text = malloc(size);

		cause_describe(&cause, *state, text, size);
		assert_true(strlen(text) < size);
		assert_memory_equal(text, whole, strlen(text));
		/*
		 * The cut is not within a character, and the next character would not have fitted.
		 */
		assert_true((whole[strlen(text)] & 0xc0) != 0x80);
		assert_true(strlen(text) + 5 > size || !whole[strlen(text)]);
		free(text);
	}
}

static void causes_of_unknown_kinds_are_nothing(void **state)
{
	check(state, (struct cause){.kind = CAUSE_COUNT, .calls_known = true}, "");
}

static void a_thread_that_had_no_cpu_is_named(void **state)
{
	struct cause cause = {.kind = CAUSE_RUN_QUEUE,
			      .usual_known = true,
			      .time_ns = 31 * MS,
			      .waker = {.tid = 7331, .ns = 30 * MS}};

	check(state, cause,
	      "waited 31.0 ms for a CPU (usually none), 30.0 ms of it by thread 7331, for which "
	      "the step waited");
	cause.estimated = true;
	check(state, cause,
	      "about 31.0 ms (usually none): thread 7331 had no CPU, and the step seems to have "
	      "spun meanwhile");
	cause.taken = (struct fbt_taken){.header.type = FBT_EVENT_TAKEN,
					 .waited_ns = 31 * MS,
					 .cpu = 4,
					 .count = 1,
					 .takers = {{.tgid = 8, .ns = 30 * MS, .comm = "hog"}}};
	check(state, cause,
	      "about 31.0 ms (usually none): thread 7331 had no CPU, taken by hog (pid 8) 30.0 ms, "
	      "and the step seems to have spun meanwhile");
	/* That CPU is not the one that the step's own thread wanted. */
	cause.estimated = false;
	check(state, cause,
	      "waited 31.0 ms for a CPU (usually none), 30.0 ms of it by thread 7331, for which "
	      "the step waited, taken by hog (pid 8) 30.0 ms");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(locks_are_described),
		TEST(calls_of_several_numbers_are_described),
		TEST(driver_calls_are_described),
		TEST(file_and_socket_io_are_described),
		TEST(tiny_writes_are_described),
		TEST(threads_are_described),
		TEST(signals_are_described),
		TEST(the_cpu_is_named_where_it_is_that_of_the_wait),
		TEST(what_is_in_no_call_is_described),
		TEST(calls_that_are_mostly_entry_say_so),
		TEST(timed_faults_say_what_they_were_for),
		TEST(faults_that_needed_no_disk_are_not_said_to_have_waited_for_one),
		TEST(a_stop_says_by_whom),
		TEST(limits_are_described),
		TEST(calls_that_are_not_known_are_said),
		TEST(numbers_without_a_name_are_described),
		TEST(paths_are_escaped),
		TEST(lines_are_cut_to_whole_characters),
		TEST(causes_of_unknown_kinds_are_nothing),
		TEST(a_thread_that_had_no_cpu_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

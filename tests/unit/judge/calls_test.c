/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Which cause a call's time belongs to, by the call's number and its file. */
#include "judged_fixture.h"

#include "judge/calls.h"

/* All calls whose cause is not OTHER_CALLS. */
static const struct {
	enum cause_kind cause;
	const char *names;
} parts[] = {
	{CAUSE_LOCK_CONTENTION, "futex futex_wait futex_waitv futex_wake futex_requeue"},
	{CAUSE_ALLOCATION_CHURN,
	 "mmap mprotect munmap madvise mremap mlock mlock2 munlock brk pkey_mprotect mlockall "
	 "munlockall mincore mbind set_mempolicy get_mempolicy set_mempolicy_home_node move_pages "
	 "migrate_pages remap_file_pages process_madvise mseal memfd_create memfd_secret shmget "
	 "shmat shmdt shmctl"},
	{CAUSE_DRIVER_CALLS, "ioctl"},
	{CAUSE_FILE_IO,
	 "read pread64 readv preadv preadv2 sendfile splice tee copy_file_range write pwrite64 "
	 "writev pwritev pwritev2 vmsplice close fstat fcntl open openat openat2 creat close_range "
	 "stat lstat newfstatat statx access faccessat faccessat2 lseek fsync fdatasync sync "
	 "syncfs sync_file_range msync fallocate truncate ftruncate fadvise64 readahead cachestat "
	 "flock getdents getdents64 statfs fstatfs readlink readlinkat rename renameat renameat2 "
	 "link linkat symlink symlinkat unlink unlinkat mkdir mkdirat rmdir mknod mknodat chmod "
	 "fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat "
	 "getcwd chdir fchdir getxattr lgetxattr fgetxattr setxattr lsetxattr fsetxattr listxattr "
	 "llistxattr flistxattr removexattr lremovexattr fremovexattr io_submit io_getevents "
	 "io_pgetevents"},
	{CAUSE_SOCKET_IO,
	 "recvfrom recvmsg sendto sendmsg recvmmsg sendmmsg socket socketpair bind listen accept "
	 "accept4 connect shutdown getsockname getpeername getsockopt setsockopt"},
	{CAUSE_THREAD_CHURN, "clone clone3 fork vfork exit exit_group wait4 waitid"},
	{CAUSE_SIGNAL_STORM,
	 "rt_sigreturn kill tkill tgkill rt_sigaction rt_sigprocmask rt_sigpending "
	 "rt_sigqueueinfo rt_tgsigqueueinfo sigaltstack pidfd_send_signal"},
	{CAUSE_SLEEP,
	 "poll ppoll select pselect6 epoll_wait epoll_wait_old epoll_pwait epoll_pwait2 nanosleep "
	 "clock_nanosleep pause sched_yield rt_sigsuspend rt_sigtimedwait restart_syscall"},
};

/* The cause of a call with that number and file. */
static enum cause_kind part_of(struct window *window, uint32_t nr, uint32_t file)
{
	struct step step = make_step(5);
	struct call_walk walk;

	add_nr(&step, nr, 5)->file = file;
	call_walk_begin(&walk, window, &step, false);
	assert_true(call_walk_next(&walk));
	assert_int_equal(walk.ns, 5);
	assert_int_equal(walk.cause, walk.part);
	assert_false(call_walk_next(&walk));
	free_step(&step);
	return walk.part;
}

static enum cause_kind expected_part(const char *name)
{
	char text[64];

	snprintf(text, sizeof(text), " %s ", name);
	for (size_t i = 0; name && i < sizeof(parts) / sizeof(parts[0]); i++) {
		char names[1200];

		snprintf(names, sizeof(names), " %s ", parts[i].names);
		if (strstr(names, text))
			return parts[i].cause;
	}
	return CAUSE_OTHER_CALLS;
}

static void check_parts(struct window *window, enum fbt_arch arch)
{
	window->record.arch = arch;
	for (uint32_t nr = 0; nr < FBT_NR_COUNT; nr++) {
		const char *name = syscall_name(arch, nr);
		enum cause_kind expected = name ? expected_part(name) : CAUSE_OTHER_CALLS;

		if (part_of(window, nr, 0) != expected)
			fail_msg("%s is %s", name, cause_name(part_of(window, nr, 0)));
	}
}

static void each_call_is_of_its_part_on_both_architectures(void **state)
{
	check_parts(*state, FBT_ARCH_X86_64);
	check_parts(*state, FBT_ARCH_ARM64);
}

static void each_name_of_a_part_is_a_call(void **state)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		char *names = strdup(parts[i].names);

		for (char *name = strtok(names, " "); name; name = strtok(NULL, " "))
			assert_true(nr_of(name) < FBT_NR_COUNT);
		free(names);
	}
}

static void calls_of_an_unknown_architecture_are_others(void **state)
{
	struct window *window = *state;

	window->record.arch = 9;
	assert_int_equal(part_of(window, nr_of("futex"), 0), CAUSE_OTHER_CALLS);
	window->record.arch = 0;
	assert_int_equal(part_of(window, nr_of("futex"), 0), CAUSE_OTHER_CALLS);
	window->record.arch = FBT_ARCH_X86_64;
	assert_int_equal(part_of(window, nr_of("futex"), 0), CAUSE_LOCK_CONTENTION);
}

static void calls_of_numbers_beyond_the_table_are_others(void **state)
{
	assert_int_equal(part_of(*state, FBT_NR_COUNT - 1, 0), CAUSE_OTHER_CALLS);
	assert_int_equal(part_of(*state, UINT32_MAX, 0), CAUSE_OTHER_CALLS);
}

static void reads_and_writes_go_by_the_kind_of_their_file(void **state)
{
	static const struct {
		uint32_t mode;
		enum cause_kind cause;
	} kinds[] = {
		{S_IFREG | 0644, CAUSE_FILE_IO},
		{S_IFDIR | 0755, CAUSE_FILE_IO},
		{S_IFBLK | 0600, CAUSE_FILE_IO},
		{S_IFCHR | 0666, CAUSE_FILE_IO},
		{S_IFLNK | 0777, CAUSE_FILE_IO},
		{S_IFSOCK | 0777, CAUSE_SOCKET_IO},
		{S_IFIFO | 0600, CAUSE_SOCKET_IO},
		{0600, CAUSE_SOCKET_IO},
		{0, CAUSE_SOCKET_IO},
	};
	static const char *const by_file[] = {"read", "writev", "pwrite64", "close", "sendfile"};
	struct window *window = *state;

	for (uint32_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		name_file(window, i + 1, kinds[i].mode, "x");
		for (size_t j = 0; j < sizeof(by_file) / sizeof(by_file[0]); j++)
			assert_int_equal(part_of(window, nr_of(by_file[j]), i + 1), kinds[i].cause);
		assert_int_equal(part_of(window, nr_of("sendto"), i + 1), CAUSE_SOCKET_IO);
		assert_int_equal(part_of(window, nr_of("ioctl"), i + 1), CAUSE_DRIVER_CALLS);
	}
	assert_int_equal(part_of(window, nr_of("read"), 99), CAUSE_FILE_IO);
}

static void files_of_calls_in_turn_are_told_apart(void **state)
{
	struct step step = make_step(1000);
	struct call_walk walk;

	name_file(*state, 1, S_IFREG, "/a");
	name_file(*state, 2, S_IFSOCK, "socket:[1]");
	for (int i = 0; i < 6; i++)
		add_call(&step, "read", 10)->file = i % 2 ? 2 : 1;
	call_walk_begin(&walk, *state, &step, false);
	for (int i = 0; i < 6; i++) {
		assert_true(call_walk_next(&walk));
		assert_int_equal(walk.part, i % 2 ? CAUSE_SOCKET_IO : CAUSE_FILE_IO);
	}
	free_step(&step);
}

static void causes_have_names_and_advice(void **state)
{
	static const char *const names[CAUSE_COUNT] = {
		"lock_contention", "allocation_churn",	 "driver_calls", "file_io",
		"tiny_writes",	   "socket_io",		 "thread_churn", "signal_storm",
		"sleep",	   "other_calls",	 "late_thread",	 "gil",
		"run_queue",	   "cpu_limit",		 "page_faults",	 "memory_limit",
		"stopped",	   "garbage_collection", "off_cpu",	 "steal",
		"await",	   "peer_process",	 "gpu_transfer", "unknown",
		"compute",
	};

	for (int i = 0; i < CAUSE_COUNT; i++) {
		assert_string_equal(cause_name((enum cause_kind)i), names[i]);
		assert_true(strlen(cause_advice((enum cause_kind)i)) > 20);
	}
	assert_string_equal(cause_name(CAUSE_COUNT), "unknown");
	assert_string_equal(cause_advice(CAUSE_COUNT), "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_window, teardown_window)
	const struct CMUnitTest tests[] = {
		TEST(each_call_is_of_its_part_on_both_architectures),
		TEST(each_name_of_a_part_is_a_call),
		TEST(calls_of_an_unknown_architecture_are_others),
		TEST(calls_of_numbers_beyond_the_table_are_others),
		TEST(reads_and_writes_go_by_the_kind_of_their_file),
		TEST(files_of_calls_in_turn_are_told_apart),
		TEST(causes_have_names_and_advice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

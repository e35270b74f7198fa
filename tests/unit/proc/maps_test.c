/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "child_fixture.h"
#include "proc/maps.h"

#define LINE "7f0000001000-7f0000002000 r-xp 00003000 fd:10 1234                       "

static void mapping_refuses_what_is_no_line_of_maps(void **state)
{
	struct mapping mapping;

	assert_int_equal(mapping_parse(&mapping, ""), -EBADMSG);
	assert_int_equal(mapping_parse(&mapping, "Rss:  12 kB\n"), -EBADMSG);
	assert_int_equal(mapping_parse(&mapping, "nonsense"), -EBADMSG);
	assert_int_equal(mapping_parse(&mapping, "1000-2000 r-xp 0 00:00"), -EBADMSG);
}

static void mapping_has_no_path_without_a_file(void **state)
{
	struct mapping mapping;

	assert_int_equal(mapping_parse(&mapping, "1000-2000 r-xp 00000000 00:00 0 [vdso]\n"), 0);
	assert_null(mapping.path);
}

static void mapping_knows_file_device_and_mode(void **state)
{
	struct mapping mapping;

	assert_int_equal(mapping_parse(&mapping, LINE "/usr/bin/an engine\n"), 0);
	assert_string_equal(mapping.path, "/usr/bin/an engine");
	assert_int_equal(mapping.start, 0x7f0000001000);
	assert_int_equal(mapping.end, 0x7f0000002000);
	assert_int_equal(mapping.device_major, 0xfd);
	assert_int_equal(mapping.device_minor, 0x10);
	assert_int_equal(mapping.inode, 1234);
	assert_true(mapping.executable);
	assert_false(mapping.deleted);
	free(mapping.path);
}

static void mapping_knows_offset_and_access(void **state)
{
	struct mapping mapping;

	assert_int_equal(mapping_parse(&mapping, "7f00a000-7f00c000 r-xp 00026000 08:01 77   "
						 "/lib/a b.so (deleted)\n"),
			 0);
	assert_true(mapping.offset == 0x26000 && mapping.start == 0x7f00a000);
	assert_true(mapping.readable && !mapping.writable && !mapping.shared);
	assert_true(mapping.executable && mapping.deleted);
	assert_string_equal(mapping_name(&mapping), "a b.so");
	free(mapping.path);
	assert_int_equal(mapping_parse(&mapping, "1000-2000 -w-s 00000000 00:01 5 /memfd:x\n"), 0);
	assert_true(!mapping.readable && mapping.writable && mapping.shared);
	free(mapping.path);
	assert_int_equal(mapping_parse(&mapping, "1000-2000 rw-p 00000000 00:00 0\n"), 0);
	assert_null(mapping.path);
}

static void mapping_cuts_the_mark_off_a_deleted_file(void **state)
{
	struct mapping mapping;

	assert_int_equal(mapping_parse(&mapping, LINE "/tmp/engine (deleted)"), 0);
	assert_string_equal(mapping.path, "/tmp/engine");
	assert_true(mapping.deleted);
	free(mapping.path);
}

static void mapping_gives_newlines_back_to_a_path(void **state)
{
	struct mapping mapping;

	assert_int_equal(mapping_parse(&mapping, LINE "/tmp/a\\012b"), 0);
	assert_string_equal(mapping.path, "/tmp/a\nb");
	free(mapping.path);
}

static void maps_refuse_a_process_that_is_not_there(void **state)
{
	mapping_vec maps = {0};

	assert_int_equal(maps_read(0x7ffffff0, &maps), -ESRCH);
}

static void maps_refuse_a_zombie(void **state)
{
	mapping_vec maps = {0};
	pid_t child = fork();
	siginfo_t info;

	if (!child)
		_exit(0);
	assert_int_equal(waitid(P_PID, child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(maps_read(child, &maps), -ESRCH);
	waitpid(child, NULL, 0);
}

static void maps_refuse_a_kernel_thread(void **state)
{
	mapping_vec maps = {0};
	char comm[16] = "";
	int fd = open("/proc/2/comm", O_RDONLY);

	if (fd < 0 || read(fd, comm, sizeof(comm)) <= 0 || strncmp(comm, "kthreadd", 8)) {
		print_message("SKIP process 2 is not kthreadd here\n");
		skip();
	}
	close(fd);
	assert_int_equal(maps_read(2, &maps), -ESRCH);
}

static void maps_list_each_executable_file_once(void **state)
{
	mapping_vec maps = {0};
	size_t own = 0;
	char exe[4096];
	ssize_t size = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	assert_true(size > 0);
	exe[size] = 0;
	assert_int_equal(maps_read(getpid(), &maps), 0);
	vec_for_each (mapping, &maps) {
		assert_true(mapping->executable);
		own += !strcmp(mapping->path, exe);
	}
	assert_int_equal(own, 1);
	maps_free(&maps);
}

/* Subvolumes of btrfs have one device in maps, and each its own inode numbers. */
static void maps_tell_files_of_one_number_apart_by_their_paths(void **state)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE), found = 0;
	char paths[2][64];
	mapping_vec maps = {0};
	void *pages[2];

	strcpy(paths[0], "/tmp/fbt-maps-XXXXXX");
	close(mkstemp(paths[0]));
	snprintf(paths[1], sizeof(paths[1]), "%s-too", paths[0]);
	assert_int_equal(truncate(paths[0], (off_t)size) || link(paths[0], paths[1]), 0);
	for (size_t i = 0; i < 2; i++) {
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC);

		pages[i] = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		assert_ptr_not_equal(pages[i], MAP_FAILED);
		close(fd);
	}
	assert_int_equal(maps_read(getpid(), &maps), 0);
	for (size_t i = 0; i < 2; i++) {
		vec_for_each (mapping, &maps)
			found += !strcmp(mapping->path, paths[i]);
		munmap(pages[i], size);
		unlink(paths[i]);
	}
	assert_int_equal(found, 2);
	maps_free(&maps);
}

static void mapping_opens_the_file_that_is_mapped(void **state)
{
	mapping_vec maps = {0};
	struct stat mapped, exe;
	int fd;

	assert_int_equal(maps_read(getpid(), &maps), 0);
	assert_int_equal(stat("/proc/self/exe", &exe), 0);
	vec_for_each (mapping, &maps) {
		if (mapping->inode != exe.st_ino)
			continue;
		fd = mapping_open(getpid(), mapping);
		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &mapped), 0);
		assert_int_equal(mapped.st_ino, exe.st_ino);
		close(fd);
	}
	maps_free(&maps);
}

static void mapping_does_not_open_another_file_at_its_path(void **state)
{
	struct mapping mapping = {.start = 0x1000, .end = 0x2000, .inode = 1, .path = "/bin/sh"};

	assert_int_equal(mapping_open(getpid(), &mapping), -ESTALE);
}

static void mapping_does_not_open_a_device(void **state)
{
	struct mapping mapping = {.start = 0x1000, .end = 0x2000, .inode = 1, .path = "/dev/null"};

	assert_int_equal(mapping_open(getpid(), &mapping), -ENOEXEC);
}

static int await_byte(void *ctx)
{
	const int *go = ctx;
	char byte;

	_exit(read(go[0], &byte, 1) != 1);
}

/* Without capabilities, so that what call a thread is in may not be read. */
static bool is_locked_for_others(pid_t process)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};
	pid_t child = child_fork();
	int status;

	assert_true(child >= 0);
	if (!child)
		_exit(syscall(SYS_capset, &header, none) ? 2 : maps_are_locked((uint32_t)process));
	assert_int_equal(waitpid(child, &status, 0), child);
	return WEXITSTATUS(status) == 1;
}

/* The call that has made a process with the same memory waits for it as vfork() does. */
static void a_map_is_locked_by_calls_that_wait_uninterruptibly(void **state)
{
	static char stack[65536] __attribute__((aligned(16)));
	pid_t child;
	int go[2];

	(void)state;
	assert_int_equal(pipe(go), 0);
	child = child_fork();
	assert_true(child >= 0);
	if (!child) {
		clone(await_byte, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, go);
		for (;;)
			pause();
	}
	child_await_state(child, 'D');
	assert_true(maps_are_locked((uint32_t)child));
	assert_true(is_locked_for_others(child));
	assert_int_equal(write(go[1], "", 1), 1);
	child_await_state(child, 'S');
	assert_false(maps_are_locked((uint32_t)child));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(go[0]);
	close(go[1]);
	assert_false(maps_are_locked((uint32_t)child));
}

static void calls_that_change_the_map_lock_it(void **state)
{
	(void)state;
	assert_true(maps_call_locks(SYS_mmap));
	assert_true(maps_call_locks(SYS_munmap));
	assert_true(maps_call_locks(SYS_execve));
	assert_false(maps_call_locks(SYS_read));
	assert_false(maps_call_locks(SYS_ioctl));
	assert_false(maps_call_locks(-1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mapping_refuses_what_is_no_line_of_maps),
		cmocka_unit_test(mapping_has_no_path_without_a_file),
		cmocka_unit_test(mapping_knows_file_device_and_mode),
		cmocka_unit_test(mapping_knows_offset_and_access),
		cmocka_unit_test(mapping_cuts_the_mark_off_a_deleted_file),
		cmocka_unit_test(mapping_gives_newlines_back_to_a_path),
		cmocka_unit_test(maps_refuse_a_process_that_is_not_there),
		cmocka_unit_test(maps_refuse_a_zombie),
		cmocka_unit_test(maps_refuse_a_kernel_thread),
		cmocka_unit_test(maps_list_each_executable_file_once),
		cmocka_unit_test(maps_tell_files_of_one_number_apart_by_their_paths),
		cmocka_unit_test(mapping_opens_the_file_that_is_mapped),
		cmocka_unit_test(mapping_does_not_open_another_file_at_its_path),
		cmocka_unit_test(mapping_does_not_open_a_device),
		cmocka_unit_test(a_map_is_locked_by_calls_that_wait_uninterruptibly),
		cmocka_unit_test(calls_that_change_the_map_lock_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

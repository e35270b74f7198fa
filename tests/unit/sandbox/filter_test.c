/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/filter.h"
#include "seccomp_fixture.h"
#include "stderr_fixture.h"

/* More memory than libseccomp needs. */
#define MEMORY_KIB 256

static const struct sandbox_calls one_window = {0};
static const struct sandbox_calls by_flag = {.windows = true};
static const struct sandbox_calls sending = {.network = true};
static const struct sandbox_calls creating = {.creates = true};
static const struct sandbox_calls commanding = {.command = true};

/* The result of a call: 0 or more, or -errno. */
static long result_of(long result)
{
	return result < 0 ? -errno : result;
}

static int apply(const void *calls)
{
	return sandbox_filter_apply(calls);
}

static int run(const struct sandbox_calls *calls, int (*body)(void))
{
	return run_filtered(apply, calls, body);
}

/* Makes the function return a number for the line of a fact that is false. */
#define EXPECT(fact)                                                                               \
	do {                                                                                       \
		if (!(fact))                                                                       \
			return __LINE__ % 90 + 1;                                                  \
	} while (0)
#define REFUSED(call) EXPECT(result_of(call) == -EPERM)
#define ALLOWED(call) EXPECT(result_of(call) != -EPERM)

static int start_nothing(void)
{
	char *nothing[] = {NULL};

	REFUSED(syscall(SYS_execve, "/bin/true", nothing, nothing));
	REFUSED(syscall(SYS_execveat, AT_FDCWD, "/bin/true", nothing, nothing, 0));
	REFUSED(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
	REFUSED(syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0));
	/* A filter cannot see clone3's flags. After ENOSYS libc uses clone. */
	EXPECT(result_of(syscall(SYS_clone3, NULL, 0)) == -ENOSYS);
	return 0;
}

static void no_program_and_no_process_is_started(void **state)
{
	(void)state;
	assert_int_equal(run(&one_window, start_nothing), 0);
	assert_int_equal(run(&by_flag, start_nothing), 0);
}

static int touch_nobody(void)
{
	struct iovec part = {NULL, 0};

	REFUSED(ptrace(PTRACE_SEIZE, getppid(), 0, 0));
	REFUSED(process_vm_writev(getppid(), &part, 1, &part, 1, 0));
	REFUSED(process_vm_readv(getppid(), &part, 1, &part, 1, 0));
	REFUSED(syscall(SYS_pidfd_getfd, 0, 0, 0));
	REFUSED(syscall(SYS_pidfd_send_signal, 0, SIGTERM, NULL, 0));
	REFUSED(kill(getppid(), SIGTERM));
	REFUSED(kill(getppid(), SIGCONT));
	REFUSED(syscall(SYS_tgkill, getppid(), getppid(), SIGTERM));
	ALLOWED(kill(getppid(), 0));
	return 0;
}

/*
 * F_SETOWN and F_SETSIG let a pipe send any signal to its owner, and root may choose any owner:
 * fcntl(2).
 */
static int have_nobody_signalled(void)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};
	int ends[2];

	EXPECT(!pipe2(ends, O_CLOEXEC));
	REFUSED(fcntl(ends[0], F_SETOWN, getppid()));
	REFUSED(fcntl(ends[0], F_SETOWN_EX, NULL));
	REFUSED(fcntl(ends[0], F_SETSIG, SIGTERM));
	REFUSED(fcntl(ends[0], F_SETLEASE, F_RDLCK));
	REFUSED(fcntl(ends[0], F_NOTIFY, DN_CREATE));
	EXPECT(!fcntl(ends[0], F_SETFL, O_NONBLOCK));
	EXPECT(fcntl(ends[0], F_GETFL) & O_NONBLOCK);
	EXPECT(fcntl(ends[0], F_GETFD) == FD_CLOEXEC);
	EXPECT(fcntl(ends[0], F_DUPFD_CLOEXEC, 10) >= 10);
	ALLOWED(fcntl(ends[0], F_GETLK, &lock));
	ALLOWED(fcntl(ends[0], F_GET_SEALS));
	return 0;
}

static void nobody_is_signalled_by_a_file(void **state)
{
	(void)state;
	assert_int_equal(run(&one_window, have_nobody_signalled), 0);
	assert_int_equal(run(&by_flag, have_nobody_signalled), 0);
	assert_int_equal(run(&sending, have_nobody_signalled), 0);
}

static void no_other_process_is_touched(void **state)
{
	(void)state;
	assert_int_equal(run(&one_window, touch_nobody), 0);
	assert_int_equal(run(&by_flag, touch_nobody), 0);
	assert_int_equal(run(&sending, touch_nobody), 0);
}

static int change_no_machine(void)
{
	REFUSED(mount("none", "/", "none", 0, NULL));
	REFUSED(syscall(SYS_init_module, NULL, 0, ""));
	REFUSED(syscall(SYS_finit_module, -1, "", 0));
	REFUSED(syscall(SYS_kexec_load, 0, 0, NULL, 0));
	REFUSED(syscall(SYS_reboot, 0, 0, 0, NULL));
	REFUSED(unshare(CLONE_NEWUSER));
	REFUSED(syscall(SYS_setns, -1, 0));
	REFUSED(chroot("/"));
	REFUSED(sethostname("", 0));
	REFUSED(syscall(SYS_keyctl, 0, 0, 0, 0, 0));
	REFUSED(syscall(SYS_io_uring_setup, 1, NULL));
	REFUSED(syscall(SYS_userfaultfd, 0));
	REFUSED(syscall(SYS_setuid, 0));
	REFUSED(syscall(SYS_setfsuid, 0));
	REFUSED(syscall(SYS_capset, NULL, NULL));
	REFUSED(syscall(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0));
	REFUSED(ioctl(0, TIOCSTI, ""));
	REFUSED(setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}));
	ALLOWED(getrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}));
	return 0;
}

static void the_machine_is_not_changed(void **state)
{
	(void)state;
	assert_int_equal(run(&one_window, change_no_machine), 0);
	assert_int_equal(run(&by_flag, change_no_machine), 0);
	assert_int_equal(run(&sending, change_no_machine), 0);
}

static int only_read(void)
{
	ALLOWED(open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
	ALLOWED(open("/proc", O_PATH | O_DIRECTORY));
	REFUSED(open("/proc/self/mem", O_RDWR));
	REFUSED(open("/dev/null", O_WRONLY));
	REFUSED(open("/dev/null", O_RDONLY | O_TRUNC));
	REFUSED(open("/tmp/no/such", O_WRONLY | O_CREAT | O_EXCL, 0600));
	REFUSED(syscall(SYS_openat2, AT_FDCWD, "/dev/null", NULL, 0));
	REFUSED(syscall(SYS_open_by_handle_at, AT_FDCWD, NULL, 0));
	REFUSED(fchmodat(AT_FDCWD, "/no/such", 04755, 0));
	REFUSED(fchownat(AT_FDCWD, "/no/such", 0, 0, 0));
	REFUSED(linkat(AT_FDCWD, "/no/such", AT_FDCWD, "/no/other", 0));
	REFUSED(symlinkat("/", AT_FDCWD, "/no/such/link"));
	REFUSED(mknodat(AT_FDCWD, "/no/such", S_IFREG, 0));
	REFUSED(truncate("/no/such", 0));
	return 0;
}

static void nothing_is_opened_for_writing(void **state)
{
	(void)state;
	assert_int_equal(run(&one_window, only_read), 0);
	assert_int_equal(run(&sending, only_read), 0);
}

static int make_files(void)
{
	EXPECT(result_of(open("/tmp/no/such", O_WRONLY | O_CREAT | O_EXCL, 0600)) == -ENOENT);
	REFUSED(open("/tmp/no/such", O_WRONLY | O_CREAT, 0600));
	REFUSED(open("/proc/self/mem", O_RDWR));
	/* /proc/self/mem ignores O_APPEND. */
	REFUSED(open("/proc/self/mem", O_RDWR | O_APPEND));
	return 0;
}

static void by_flag_new_files_are_made_and_old_ones_left(void **state)
{
	(void)state;
	assert_int_equal(run(&by_flag, make_files), 0);
	assert_int_equal(run(&creating, make_files), 0);
}

static int bring_no_code(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(page != MAP_FAILED);
	REFUSED(mprotect(page, 4096, PROT_READ | PROT_EXEC));
	EXPECT(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
	       MAP_FAILED);
	EXPECT(errno == EPERM);
	ALLOWED(mprotect(page, 4096, PROT_READ));
	return 0;
}

static void no_code_comes_in(void **state)
{
	(void)state;
	assert_int_equal(run(&one_window, bring_no_code), 0);
	assert_int_equal(run(&by_flag, bring_no_code), 0);
	assert_int_equal(run(&sending, bring_no_code), 0);
}

static long bpf(int command)
{
	union bpf_attr attr = {0};

	return syscall(SYS_bpf, command, &attr, sizeof(attr));
}

/*
 * The calls name no object, so the kernel returns EINVAL or EBADF, or EPERM to a process without
 * rights.
 */
static int load_nothing(void)
{
	REFUSED(bpf(BPF_PROG_LOAD));
	REFUSED(bpf(BPF_MAP_CREATE));
	REFUSED(bpf(BPF_PROG_GET_FD_BY_ID));
	REFUSED(bpf(BPF_MAP_GET_FD_BY_ID));
	REFUSED(bpf(BPF_OBJ_PIN));
	REFUSED(bpf(BPF_OBJ_GET));
	if (!geteuid())
		ALLOWED(bpf(BPF_MAP_LOOKUP_ELEM));
	return 0;
}

static void no_other_program_is_loaded(void **state)
{
	(void)state;
	assert_int_equal(run(&one_window, load_nothing), 0);
}

static int load_again(void)
{
	if (!geteuid())
		ALLOWED(bpf(BPF_PROG_LOAD));
	REFUSED(bpf(BPF_PROG_GET_FD_BY_ID));
	REFUSED(bpf(BPF_MAP_GET_FD_BY_ID));
	REFUSED(bpf(BPF_OBJ_GET));
	REFUSED(bpf(BPF_ENABLE_STATS));
	return 0;
}

static void by_flag_programs_are_loaded_and_no_others_taken(void **state)
{
	(void)state;
	assert_int_equal(run(&by_flag, load_again), 0);
}

static int send_nothing(void)
{
	REFUSED(socket(AF_INET, SOCK_STREAM, 0));
	REFUSED(socket(AF_UNIX, SOCK_STREAM, 0));
	REFUSED(socket(AF_NETLINK, SOCK_RAW, 0));
	return 0;
}

static int send_something(void)
{
	ALLOWED(socket(AF_INET, SOCK_STREAM, 0));
	ALLOWED(socket(AF_UNIX, SOCK_STREAM, 0));
	REFUSED(socket(AF_PACKET, SOCK_RAW, 0));
	REFUSED(listen(-1, 1));
	REFUSED(accept4(-1, NULL, NULL, 0));
	EXPECT(!start_nothing());
	return 0;
}

static void only_with_a_collector_there_is_a_network(void **state)
{
	(void)state;
	assert_int_equal(run(&one_window, send_nothing), 0);
	assert_int_equal(run(&by_flag, send_nothing), 0);
	assert_int_equal(run(&sending, send_something), 0);
}

static int command_goes_on(void)
{
	EXPECT(!kill(getpid(), SIGCONT));
	REFUSED(kill(getppid(), SIGTERM));
	return 0;
}

static void a_command_is_told_to_go_on_and_nothing_else(void **state)
{
	(void)state;
	assert_int_equal(run(&commanding, command_goes_on), 0);
}

static void *try_when_told(void *told)
{
	char byte;

	if (read(*(int *)told, &byte, 1) != 1)
		return told;
	return chroot("/") == -1 && errno == EPERM ? NULL : told;
}

static void *do_nothing(void *ctx)
{
	return ctx;
}

static int start_thread(void)
{
	pthread_t thread;
	int ours = 1;
	void *result;

	EXPECT(!pthread_create(&thread, NULL, do_nothing, &ours));
	EXPECT(!pthread_join(thread, &result));
	EXPECT(result == &ours);
	return 0;
}

/* kernel/uprobes.c starts threads to remove probes. */
static void threads_may_be_started(void **state)
{
	(void)state;
	assert_int_equal(run(&one_window, start_thread), 0);
	assert_int_equal(run(&by_flag, start_thread), 0);
	assert_int_equal(run(&sending, start_thread), 0);
}

/* A library may have started a thread already. */
static void threads_that_are_there_have_the_filter_too(void **state)
{
	int status, ends[2];
	pthread_t thread;
	void *result;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (pthread_create(&thread, NULL, try_when_told, &ends[0]))
			_exit(3);
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (sandbox_filter_apply(&one_window))
			_exit(CANNOT);
		if (write(ends[1], "", 1) != 1 || pthread_join(thread, &result))
			_exit(4);
		_exit(result ? 5 : 0);
	}
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == CANNOT)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int be_refused(void)
{
	REFUSED(chroot("/"));
	REFUSED(chroot("/"));
	sandbox_filter_report();
	sandbox_filter_report();
	return 0;
}

static void a_refused_call_is_named_once(void **state)
{
	assert_int_equal(run(&one_window, be_refused), 0);
	assert_one_line(*state, "system call chroot was refused 2 times by our filter");
}

static int be_killed_as_usual(void)
{
	raise(SIGSYS);
	return 0;
}

static void a_signal_from_elsewhere_does_what_it_did(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		if (sandbox_filter_apply(&one_window))
			_exit(CANNOT);
		_exit(be_killed_as_usual());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT)
		skip();
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
}

#ifdef __x86_64__
static int call_as_x32(void)
{
	syscall(0x40000000 | SYS_getpid);
	return 0;
}

static int call_as_i386(void)
{
	long nr = 20 /* getpid */;

	__asm__ volatile("int $0x80" : "+a"(nr) : : "memory", "r8", "r9", "r10", "r11");
	return 0;
}

/* The same numbers mean other calls on those architectures. */
static void calls_of_other_architectures_end_the_process(void **state)
{
	int (*const calls[])(void) = {call_as_x32, call_as_i386};
	int status;

	(void)state;
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid) {
			prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
			_exit(sandbox_filter_apply(&sending) ? CANNOT : calls[i]());
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT)
			skip();
		assert_true(WIFSIGNALED(status));
		/* A kernel without i386 calls raises SIGSEGV instead. */
		if (i == 0 || WTERMSIG(status) != SIGSEGV)
			assert_int_equal(WTERMSIG(status), SIGSYS);
	}
}
#endif

static bool has_filter(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[128];
	bool has = false;

	while (status && fgets(line, sizeof(line), status))
		has |= !strcmp(line, "Seccomp:\t2\n");
	if (status)
		fclose(status);
	return has;
}

static void there_is_a_filter_or_it_is_said_that_there_is_none(void **state)
{
	bool can = can_filter();
	int status, err;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		err = sandbox_filter_apply(&one_window);
		_exit(can ? err || !has_filter() : err != -ENOSYS);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/*
 * Applies the filter in a child that has that much memory left. Returns the wait status; 0 if the
 * filter is whole or was refused.
 */
static int run_with_memory(size_t bytes)
{
	const size_t piece = 1024;
	void *last = NULL, *next;
	int status, err;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		struct rlimit limit = {0, 0};

		alarm(30);
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		for (size_t i = 0; (next = malloc(piece)); i++) {
			*(void **)next = last;
			last = next;
			if (i == MEMORY_KIB)
				setrlimit(RLIMIT_AS, &limit);
		}
		/* The last block stays: free() would return the end of the heap to the kernel. */
		last = *(void **)last;
		for (size_t freed = 0; last && freed < bytes; freed += piece) {
			next = *(void **)last;
			free(last);
			last = next;
		}
		err = sandbox_filter_apply(&sending);
		if (err)
			_exit(err == -ENOMEM ? 0 : 1);
		_exit(chroot("/") != -1 || errno != EPERM || getppid() <= 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* libseccomp itself may crash, hang, or build a filter that kills. */
static void without_memory_there_is_no_filter_or_a_whole_one(void **state)
{
	(void)state;
	if (!can_filter())
		skip();
	for (size_t kib = 0; kib < MEMORY_KIB; kib += 3) {
		int status = run_with_memory(kib << 10);

		if (status)
			fail_msg("with %zu KiB: status %#x", kib, (unsigned int)status);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, stderr_setup, stderr_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(there_is_a_filter_or_it_is_said_that_there_is_none),
		TEST(without_memory_there_is_no_filter_or_a_whole_one),
		TEST(no_program_and_no_process_is_started),
		TEST(no_other_process_is_touched),
		TEST(nobody_is_signalled_by_a_file),
		TEST(the_machine_is_not_changed),
		TEST(nothing_is_opened_for_writing),
		TEST(by_flag_new_files_are_made_and_old_ones_left),
		TEST(no_code_comes_in),
		TEST(no_other_program_is_loaded),
		TEST(by_flag_programs_are_loaded_and_no_others_taken),
		TEST(only_with_a_collector_there_is_a_network),
		TEST(a_command_is_told_to_go_on_and_nothing_else),
		TEST(threads_may_be_started),
		TEST(threads_that_are_there_have_the_filter_too),
		TEST(a_refused_call_is_named_once),
		TEST(a_signal_from_elsewhere_does_what_it_did),
#ifdef __x86_64__
		TEST(calls_of_other_architectures_end_the_process),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

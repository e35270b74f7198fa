/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Compares the ranks of system calls with this kernel. A child waits in each call and is stopped as
 * an injection stops it; the call must then be about to return what its rank says.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/thread.h"

#if defined(__x86_64__)

#include "waits_fixture.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define PATIENCE_S 60

/* Values of rax in an interrupted call (the kernel's linux/errno.h). */
#define ERESTARTSYS	      512
#define ERESTARTNOHAND	      514
#define ERESTART_RESTARTBLOCK 516

static const struct {
	const char *name;
	void (*wait)(void);
	long nr;
	enum inject_rank rank;
} cases[] = {
	{"poll", poll_timed, SYS_poll, INJECT_RANK_BLOCK},
	{"poll without time-out", poll_free, SYS_poll, INJECT_RANK_BLOCK},
	{"nanosleep", sleep_plain, SYS_nanosleep, INJECT_RANK_BLOCK},
	{"clock_nanosleep", sleep_relative, SYS_clock_nanosleep, INJECT_RANK_BLOCK},
	{"clock_nanosleep until", sleep_absolute, SYS_clock_nanosleep, INJECT_RANK_WRITTEN},
	{"ppoll", ppoll_timed, SYS_ppoll, INJECT_RANK_WRITTEN},
	{"ppoll without time-out", ppoll_free, SYS_ppoll, INJECT_RANK_RESTART},
	{"select", select_timed, SYS_select, INJECT_RANK_WRITTEN},
	{"select without time-out", select_free, SYS_select, INJECT_RANK_RESTART},
	{"pselect6", pselect_timed, SYS_pselect6, INJECT_RANK_WRITTEN},
	{"pselect6 without time-out", pselect_free, SYS_pselect6, INJECT_RANK_RESTART},
	{"epoll_wait", epoll_timed, SYS_epoll_wait, INJECT_RANK_EINTR_TIMED},
	{"epoll_wait without time-out", epoll_free, SYS_epoll_wait, INJECT_RANK_EINTR},
	{"epoll_pwait without time-out", epoll_pwait_free, SYS_epoll_pwait, INJECT_RANK_EINTR},
	{"epoll_pwait2", epoll_pwait2_timed, SYS_epoll_pwait2, INJECT_RANK_EINTR_TIMED},
	{"epoll_pwait2 without time-out", epoll_pwait2_free, SYS_epoll_pwait2, INJECT_RANK_EINTR},
	{"futex", futex_wait, SYS_futex, INJECT_RANK_RESTART},
	{"futex with a time-out", futex_wait_timed, SYS_futex, INJECT_RANK_BLOCK},
	{"futex of a bit set", futex_bitset, SYS_futex, INJECT_RANK_RESTART},
	{"futex of a bit set until", futex_bitset_timed, SYS_futex, INJECT_RANK_BLOCK},
	{"a lock", futex_lock, SYS_futex, INJECT_RANK_NONE},
	{"a lock with a time-out", futex_lock_timed, SYS_futex, INJECT_RANK_NONE},
	{"a spin lock", futex_spin_lock, SYS_futex, INJECT_RANK_NONE},
	{"a futex that hands on priority", futex_pi, SYS_futex, INJECT_RANK_NONE},
	{"a futex that is requeued", futex_requeue_pi, SYS_futex, INJECT_RANK_NONE},
	{"several futexes", futex_several, SYS_futex_waitv, INJECT_RANK_NONE},
	{"read of a pipe", read_pipe, SYS_read, INJECT_RANK_RESTART},
	{"readv of a pipe", readv_pipe, SYS_readv, INJECT_RANK_RESTART},
	{"read of a socket", read_socket, SYS_read, INJECT_RANK_RESTART},
	{"read of a socket with a time-out", read_socket_timed, SYS_read, INJECT_RANK_NONE},
	{"read of TCP", read_tcp, SYS_read, INJECT_RANK_RESTART},
	{"read of an eventfd", read_eventfd, SYS_read, INJECT_RANK_RESTART},
	{"read of a timerfd", read_timerfd, SYS_read, INJECT_RANK_RESTART},
	{"read of a signalfd", read_signalfd, SYS_read, INJECT_RANK_RESTART},
	{"read of inotify", read_inotify, SYS_read, INJECT_RANK_RESTART},
	{"read of a terminal", read_terminal, SYS_read, INJECT_RANK_NONE},
	{"readv of a terminal", readv_terminal, SYS_readv, INJECT_RANK_NONE},
	{"read of a FIFO with a name", read_fifo, SYS_read, INJECT_RANK_NONE},
	{"accept", accept_free, SYS_accept, INJECT_RANK_RESTART},
	{"accept4", accept4_free, SYS_accept4, INJECT_RANK_RESTART},
	{"accept4 with a time-out", accept_timed, SYS_accept4, INJECT_RANK_NONE},
	{"recvfrom", receive, SYS_recvfrom, INJECT_RANK_RESTART},
	{"recvfrom of datagrams", receive_datagram, SYS_recvfrom, INJECT_RANK_RESTART},
	{"recvfrom with a time-out", receive_timed, SYS_recvfrom, INJECT_RANK_NONE},
	{"recvfrom of all", receive_all, SYS_recvfrom, INJECT_RANK_NONE},
	{"recvfrom of a least count", receive_at_least, SYS_recvfrom, INJECT_RANK_NONE},
	{"recvmsg", receive_message, SYS_recvmsg, INJECT_RANK_RESTART},
	{"recvmsg of all", receive_message_all, SYS_recvmsg, INJECT_RANK_NONE},
	{"recvmmsg", receive_messages, SYS_recvmmsg, INJECT_RANK_NONE},
	{"wait4", wait_for_child, SYS_wait4, INJECT_RANK_RESTART},
	{"waitid", waitid_for_child, SYS_waitid, INJECT_RANK_RESTART},
	{"pause", wait_for_any_signal, SYS_pause, INJECT_RANK_RESTART},
	{"rt_sigsuspend", suspend, SYS_rt_sigsuspend, INJECT_RANK_NONE},
	{"rt_sigtimedwait", wait_for_signal, SYS_rt_sigtimedwait, INJECT_RANK_NONE},
	{"msgrcv", receive_sysv, SYS_msgrcv, INJECT_RANK_RESTART},
	{"semop", wait_for_semaphore, SYS_semop, INJECT_RANK_NONE},
	{"io_getevents", wait_for_io, SYS_io_getevents, INJECT_RANK_NONE},
	{"flock", lock_file, SYS_flock, INJECT_RANK_NONE},
	{"openat", open_fifo, SYS_openat, INJECT_RANK_NONE},
	{"write", write_pipe, SYS_write, INJECT_RANK_NONE},
	{"connect", connect_socket, SYS_connect, INJECT_RANK_NONE},
	{"mq_timedreceive", receive_mq, SYS_mq_timedreceive, INJECT_RANK_RESTART},
	{"mq_timedreceive until", receive_mq_timed, SYS_mq_timedreceive, INJECT_RANK_RESTART},
};

struct trial {
	size_t index;
	pid_t pid;
};

static int setup(void **state)
{
	static struct trial trial;

	trial.index = (size_t)*state;
	trial.pid = 0;
	*state = &trial;
	/* This process must reap the children of a child that was killed. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	alarm(PATIENCE_S);
	return 0;
}

static int teardown(void **state)
{
	struct trial *trial = *state;

	if (trial->pid > 0)
		kill(trial->pid, SIGKILL);
	while (waitpid(-1, NULL, __WALL) > 0)
		;
	alarm(0);
	return 0;
}

static void look(pid_t pid, struct inject_thread *thread, char state[2])
{
	char path[32], line[1024];
	FILE *file;

	memset(thread, 0, sizeof(*thread));
	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	file = fopen(path, "re");
	if (file && (!fgets(line, sizeof(line), file) || inject_thread_parse(thread, line)))
		thread->nr = UINT64_MAX;
	if (file)
		fclose(file);
	state[0] = '?';
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (file && fgets(line, sizeof(line), file) && strrchr(line, ')'))
		state[0] = strrchr(line, ')')[2];
	if (file)
		fclose(file);
}

/* Waits until the process is in that call. false: it has ended. */
static bool await_call(pid_t pid, uint64_t nr, struct inject_thread *thread)
{
	char state[2] = "";

	do {
		usleep(500);
		look(pid, thread, state);
	} while ((thread->nr != nr || state[0] != 'S') && state[0] != 'Z');
	return state[0] != 'Z';
}

/* Stops the process. Returns the value that the call is about to return. */
static int64_t interrupt(pid_t pid)
{
	struct user_regs_struct regs = {0};
	int status;

	assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, 0, 0), 0);
	assert_int_equal(waitpid(pid, &status, __WALL), pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(ptrace(PTRACE_GETREGS, pid, 0, &regs), 0);
	return (int64_t)regs.rax;
}

static void assert_fits(enum inject_rank rank, int64_t rax)
{
	switch (rank) {
	case INJECT_RANK_BLOCK:
		assert_int_equal(rax, -ERESTART_RESTARTBLOCK);
		break;
	case INJECT_RANK_RESTART:
		assert_true(rax == -ERESTARTSYS || rax == -ERESTARTNOHAND);
		break;
	case INJECT_RANK_WRITTEN:
		assert_int_equal(rax, -ERESTARTNOHAND);
		break;
	case INJECT_RANK_EINTR:
	case INJECT_RANK_EINTR_TIMED:
		assert_int_equal(rax, -EINTR);
		break;
	default:
		break;
	}
}

static void a_call_returns_what_its_rank_says(void **state)
{
	struct trial *trial = *state;
	struct inject_thread thread;
	enum inject_rank rank = cases[trial->index].rank;
	uint64_t nr = (uint64_t)cases[trial->index].nr;

	trial->pid = child_fork();
	assert_true(trial->pid >= 0);
	if (!trial->pid) {
		cases[trial->index].wait();
		_exit(errno == ENOSYS ? CANNOT : 0);
	}
	if (!await_call(trial->pid, nr, &thread)) {
		int status;

		assert_int_equal(waitpid(trial->pid, &status, 0), trial->pid);
		trial->pid = 0;
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == CANNOT);
		skip();
	}
	assert_int_equal(
		inject_file_rank((uint32_t)trial->pid, (uint32_t)trial->pid, nr, thread.args),
		rank);
	if (ptrace(PTRACE_SEIZE, trial->pid, 0, 0))
		skip();
	assert_fits(rank, interrupt(trial->pid));
	assert_int_equal(ptrace(PTRACE_CONT, trial->pid, 0, 0), 0);
	if (rank > INJECT_RANK_WRITTEN)
		return;
	/* The call continues, and can be interrupted a second time. */
	nr = rank == INJECT_RANK_BLOCK ? SYS_restart_syscall : nr;
	assert_true(await_call(trial->pid, nr, &thread));
	assert_int_equal(
		inject_file_rank((uint32_t)trial->pid, (uint32_t)trial->pid, nr, thread.args),
		rank);
	assert_fits(rank, interrupt(trial->pid));
}

static bool is_in_cases(uint64_t nr)
{
	for (size_t i = 0; i < COUNT(cases); i++) {
		if ((uint64_t)cases[i].nr == nr && cases[i].rank != INJECT_RANK_NONE)
			return true;
	}
	return nr == SYS_restart_syscall;
}

static void no_other_call_is_taken(void **state)
{
	static const uint64_t none[6], all[6] = {-1ull, -1ull, -1ull, -1ull, -1ull, -1ull};

	(void)state;
	for (uint64_t nr = 0; nr < 600; nr++) {
		if (is_in_cases(nr))
			continue;
		assert_int_equal(inject_rank_of(nr, none), INJECT_RANK_NONE);
		assert_int_equal(inject_rank_of(nr, all), INJECT_RANK_NONE);
	}
	assert_int_equal(inject_rank_of(UINT64_MAX, none), INJECT_RANK_NONE);
}

/* The kernel reads only the lower half of a register that holds a time-out. */
static void a_negative_timeout_is_none_in_either_width(void **state)
{
	static const uint64_t narrow[6] = {0, 0, 0, 0xffffffff}, wide[6] = {0, 0, 0, UINT64_MAX},
			      zero[6];

	(void)state;
	assert_int_equal(inject_rank_of(SYS_epoll_wait, narrow), INJECT_RANK_EINTR);
	assert_int_equal(inject_rank_of(SYS_epoll_wait, wide), INJECT_RANK_EINTR);
	assert_int_equal(inject_rank_of(SYS_epoll_wait, zero), INJECT_RANK_EINTR_TIMED);
}

/* restart_syscall gets the arguments of the interrupted call, but not its number. */
static void a_lock_that_is_waited_for_again_is_not_taken(void **state)
{
	static const uint64_t until[6] = {4096, 0x189, 2, 8192, 0, UINT64_MAX},
			      spin[6] = {4096, 128, 9, 8192}, condition[6] = {4096, 0x189, 0, 8192},
			      poll2[6] = {4096, 128, 2, 0}, sleep[6] = {4096, 0, 0, 0};

	(void)state;
	assert_int_equal(inject_rank_of(SYS_restart_syscall, until), INJECT_RANK_NONE);
	assert_int_equal(inject_rank_of(SYS_restart_syscall, spin), INJECT_RANK_NONE);
	assert_int_equal(inject_rank_of(SYS_restart_syscall, condition), INJECT_RANK_BLOCK);
	assert_int_equal(inject_rank_of(SYS_restart_syscall, poll2), INJECT_RANK_BLOCK);
	assert_int_equal(inject_rank_of(SYS_restart_syscall, sleep), INJECT_RANK_BLOCK);
}

int main(void)
{
	struct CMUnitTest tests[COUNT(cases) + 3] = {
		cmocka_unit_test(no_other_call_is_taken),
		cmocka_unit_test(a_negative_timeout_is_none_in_either_width),
		cmocka_unit_test(a_lock_that_is_waited_for_again_is_not_taken),
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		tests[3 + i] = (struct CMUnitTest){cases[i].name, a_call_returns_what_its_rank_says,
						   setup, teardown, (void *)i};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void no_call_is_taken(void **state)
{
	static const uint64_t none[6];

	for (uint64_t nr = 0; nr < 600; nr++)
		assert_int_equal(inject_rank_of(nr, none), INJECT_RANK_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(no_call_is_taken)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A system call that is restarted, or interrupted, through the stub. pthread_create is a double, so
 * that no helper starts.
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
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)

#include "inject_stub_fixture.h"

#define SIGCANCEL 32

static int refuse_to_create(void *thread, const void *attributes, void *start, void *arg)
{
	/* Function calls may clobber these registers and errno, but a system call may not. */
	__asm__ volatile("pcmpeqb %%xmm0, %%xmm0\n"
			 "movaps %%xmm0, %%xmm7\n"
			 "movaps %%xmm0, %%xmm15\n" ::
				 : "xmm0", "xmm7", "xmm15");
	errno = EAGAIN;
	return EAGAIN;
}

static int raise_usr1(void *thread, const void *attributes, void *start, void *arg)
{
	raise(SIGUSR1);
	return EAGAIN;
}

/* Sends the signal of pthread_cancel() by hand, because libc refuses to send it. */
static int raise_cancel(void *thread, const void *attributes, void *start, void *arg)
{
	syscall(SYS_tgkill, getpid(), gettid(), SIGCANCEL);
	return EAGAIN;
}

/* All signals must be blocked but those of the thread's own faults and SIGSETXID. */
static int look_at_mask(void *thread, const void *attributes, void *start, void *arg)
{
	unsigned long mask = 0;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8);
	if (mask != ~(1ul << (SIGILL - 1) | 1ul << (SIGTRAP - 1) | 1ul << (SIGBUS - 1) |
		      1ul << (SIGFPE - 1) | 1ul << (SIGSEGV - 1) | 1ul << (SIGSYS - 1) |
		      1ul << (33 - 1) | 1ul << (SIGKILL - 1) | 1ul << (SIGSTOP - 1)))
		abort();
	return EAGAIN;
}

static volatile sig_atomic_t handled;

static void count_signal(int signal)
{
	handled++;
}

static void handle_usr1(int flags)
{
	struct sigaction action = {.sa_handler = count_signal, .sa_flags = flags};

	handled = 0;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
}

static void a_restart_issues_the_call_with_all_registers_as_they_were(void **state)
{
	uint8_t *stub = new_stub(FBT_INJECT_PTHREAD_CREATE, refuse_to_create);
	struct registers in =
		full_registers(SYS_getppid, FBT_INJECT_TOKEN(NONCE, FBT_INJECT_NO_HAND));
	struct registers out;

	errno = 4711;
	enter_stub(stub + FBT_INJECT_ENTRY_RESTART, &in, &out);
	assert_int_equal(errno, 4711);
	assert_kept(&in, &out);
	assert_int_equal(out.rax, getppid());
	free_stub(stub);
}

static void an_interrupted_call_is_not_issued_and_says_so(void **state)
{
	uint8_t *stub = new_stub(FBT_INJECT_PTHREAD_CREATE, refuse_to_create);
	struct registers in =
		full_registers((uint64_t)-EINTR, FBT_INJECT_TOKEN(NONCE, FBT_INJECT_NO_HAND));
	struct registers out;

	enter_stub(stub + FBT_INJECT_ENTRY_INTERRUPTED, &in, &out);
	assert_kept(&in, &out);
	assert_int_equal((int64_t)out.rax, -EINTR);
	free_stub(stub);
}

static void signals_wait_but_for_faults_and_setxid(void **state)
{
	uint8_t *stub = new_stub(FBT_INJECT_PTHREAD_CREATE, look_at_mask);
	struct registers in =
		full_registers(SYS_getppid, FBT_INJECT_TOKEN(NONCE, FBT_INJECT_NO_HAND));
	struct registers out;
	unsigned long before = 1, after = 2;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &before, 8);
	enter_stub(stub, &in, &out);
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &after, 8);
	assert_int_equal(before, after);
	free_stub(stub);
}

static void a_signal_after_an_interrupted_call_changes_nothing(void **state)
{
	uint8_t *stub = new_stub(FBT_INJECT_PTHREAD_CREATE, raise_usr1);
	struct registers in =
		full_registers((uint64_t)-EINTR, FBT_INJECT_TOKEN(NONCE, FBT_INJECT_NO_HAND));
	struct registers out;

	handle_usr1(0);
	enter_stub(stub + FBT_INJECT_ENTRY_INTERRUPTED, &in, &out);
	assert_kept(&in, &out);
	assert_int_equal((int64_t)out.rax, -EINTR);
	assert_int_equal(handled, 1);
	signal(SIGUSR1, SIG_DFL);
	free_stub(stub);
}

/* Whether the program sees EINTR after a signal came while the thread was in the stub. */
static bool is_interrupted_by(void *raise_it, enum fbt_inject_class class, uint64_t nr)
{
	uint8_t *stub = new_stub(FBT_INJECT_PTHREAD_CREATE, raise_it);
	struct registers in = full_registers(nr, FBT_INJECT_TOKEN(NONCE, class));
	struct registers out;

	enter_stub(stub, &in, &out);
	assert_kept(&in, &out);
	free_stub(stub);
	if ((int64_t)out.rax == -EINTR)
		return true;
	assert_int_equal(out.rax, getppid());
	return false;
}

static bool is_interrupted(enum fbt_inject_class class, uint64_t nr)
{
	return is_interrupted_by(raise_usr1, class, nr);
}

static void a_signal_that_came_meanwhile_interrupts_what_it_would_have(void **state)
{
	handle_usr1(SA_RESTART);
	assert_false(is_interrupted(FBT_INJECT_ALWAYS, SYS_getppid));
	assert_false(is_interrupted(FBT_INJECT_SA, SYS_getppid));
	assert_true(is_interrupted(FBT_INJECT_NO_HAND, SYS_getppid));
	assert_true(is_interrupted(FBT_INJECT_BLOCK, SYS_getppid));
	assert_int_equal(handled, 4);
	handle_usr1(0);
	assert_false(is_interrupted(FBT_INJECT_ALWAYS, SYS_getppid));
	assert_true(is_interrupted(FBT_INJECT_SA, SYS_getppid));
	assert_true(is_interrupted(FBT_INJECT_NO_HAND, SYS_getppid));
	assert_int_equal(handled, 3);
	assert_true(is_interrupted(FBT_INJECT_BLOCK, SYS_restart_syscall));
	assert_int_equal(handled, 4);
	signal(SIGUSR1, SIG_IGN);
	assert_false(is_interrupted(FBT_INJECT_NO_HAND, SYS_getppid));
	signal(SIGUSR1, SIG_DFL);
}

/* glibc 2.41 only records a cancellation whose signal arrives outside of a cancellation point. */
static void a_cancellation_interrupts_though_its_handler_restarts(void **state)
{
	struct {
		void (*handler)(int signal);
		unsigned long flags;
		void (*restorer)(void);
		unsigned long mask;
	} action;

	handle_usr1(SA_RESTART);
	assert_int_equal(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &action, 8), 0);
	assert_int_equal(syscall(SYS_rt_sigaction, SIGCANCEL, &action, NULL, 8), 0);
	assert_true(is_interrupted_by(raise_cancel, FBT_INJECT_SA, SYS_getppid));
	assert_false(is_interrupted_by(raise_cancel, FBT_INJECT_ALWAYS, SYS_getppid));
	assert_int_equal(handled, 2 * 2); /* two stack sizes are tried */
	action.handler = SIG_DFL;
	assert_int_equal(syscall(SYS_rt_sigaction, SIGCANCEL, &action, NULL, 8), 0);
	signal(SIGUSR1, SIG_DFL);
}

static void the_memory_it_runs_on_is_given_back(void **state)
{
	uint8_t *stub = new_stub(FBT_INJECT_PTHREAD_CREATE, refuse_to_create);
	struct registers in =
		full_registers(SYS_getppid, FBT_INJECT_TOKEN(NONCE, FBT_INJECT_NO_HAND));
	size_t before = pages();
	struct registers out;

	for (int i = 0; i < 50; i++)
		enter_stub(stub, &in, &out);
	assert_int_equal(pages(), before);
	free_stub(stub);
}

static void a_signal_that_is_blocked_interrupts_nothing(void **state)
{
	sigset_t usr1;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	handle_usr1(0);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
	assert_false(is_interrupted(FBT_INJECT_NO_HAND, SYS_getppid));
	assert_int_equal(handled, 0);
	pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
	assert_int_equal(handled, 1);
	signal(SIGUSR1, SIG_DFL);
}

static void it_fits_into_what_libc_leaves_free(void **state)
{
	struct fbt_inject_stub head;

	memcpy(&head, inject_code, sizeof(head));
	assert_int_equal(head.size, sizeof(inject_code));
	/*
	 * Free bytes after libc's code: 2499 in glibc 2.41 (Debian 13), 3844 in 2.36 (Debian 12).
	 */
	assert_true(sizeof(inject_code) <= 2499 - 15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_restart_issues_the_call_with_all_registers_as_they_were),
		cmocka_unit_test(an_interrupted_call_is_not_issued_and_says_so),
		cmocka_unit_test(signals_wait_but_for_faults_and_setxid),
		cmocka_unit_test(a_signal_after_an_interrupted_call_changes_nothing),
		cmocka_unit_test(a_signal_that_came_meanwhile_interrupts_what_it_would_have),
		cmocka_unit_test(a_cancellation_interrupts_though_its_handler_restarts),
		cmocka_unit_test(the_memory_it_runs_on_is_given_back),
		cmocka_unit_test(a_signal_that_is_blocked_interrupts_nothing),
		cmocka_unit_test(it_fits_into_what_libc_leaves_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	puts("SKIP the stub is for x86-64 only");
	return 77;
}

#endif

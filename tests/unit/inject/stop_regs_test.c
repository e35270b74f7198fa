/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>

#include "fbt_inject.h"
#include "inject/stop.h"

#if defined(__x86_64__)

#define STUB  0x7f0000001000ull
#define NONCE 0x12345678u
#define CS_64 0x33

static struct user_regs_struct registers(int64_t rax, uint64_t nr)
{
	struct user_regs_struct regs = {.rax = (uint64_t)rax, .orig_rax = nr};

	return regs;
}

static void a_class_is_told_by_rax(void **state)
{
	static const struct {
		int64_t rax;
		uint64_t nr;
		int class;
	} cases[] = {
		{-512, SYS_read, FBT_INJECT_SA},
		{-513, SYS_read, FBT_INJECT_ALWAYS},
		{-514, SYS_ppoll, FBT_INJECT_NO_HAND},
		{-516, SYS_poll, FBT_INJECT_BLOCK},
		{-516, SYS_restart_syscall, FBT_INJECT_BLOCK},
		{-EINTR, SYS_epoll_wait, FBT_INJECT_NO_HAND},
		{-EINTR, SYS_restart_syscall, -EAGAIN},
		{1, SYS_read, -EAGAIN},
		{0, SYS_poll, -EAGAIN},
		{-EAGAIN, SYS_read, -EAGAIN},
		{-515, SYS_read, -EAGAIN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct user_regs_struct regs = registers(cases[i].rax, cases[i].nr);

		assert_int_equal(inject_regs_class(&regs), cases[i].class);
	}
}

/* Calling close() or connect() again after EINTR is wrong. */
static void only_what_can_begin_anew_is_hidden(void **state)
{
	static const struct {
		int64_t rax;
		uint64_t nr;
		bool hidden;
	} cases[] = {
		{-EINTR, SYS_epoll_wait, true}, {-EINTR, SYS_recvfrom, true},
		{-EINTR, SYS_ppoll, true}, /* the call that the thread was chosen in */
		{-EINTR, SYS_close, false},	{-EINTR, SYS_connect, false},
		{-EINTR, ~0ull, false},		{-EINTR, SYS_restart_syscall, false},
		{-514, SYS_epoll_wait, false},	{3, SYS_epoll_wait, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct user_regs_struct regs = registers(cases[i].rax, cases[i].nr);

		assert_int_equal(inject_regs_hide(&regs, SYS_ppoll), cases[i].hidden);
		assert_int_equal((int64_t)regs.rax, cases[i].hidden ? -514 : cases[i].rax);
	}
}

/* A thread that waits in poll(0x1000, 1, -1). */
static const struct inject_thread polling = {
	.nr = SYS_poll, .args = {0x1000, 1, ~0ull, 9, 9, 9}, .sp = 0x2000, .pc = 0x3000};

static struct user_regs_struct stopped(void)
{
	struct user_regs_struct regs = registers(-516, SYS_poll);

	regs.rdi = 0x1000;
	regs.rsi = 1;
	regs.rdx = ~0ull;
	regs.rsp = 0x2000;
	regs.rip = 0x3000;
	regs.cs = CS_64;
	return regs;
}

static void what_waits_elsewhere_is_another(void **state)
{
	struct user_regs_struct regs = stopped();

	(void)state;
	assert_true(inject_regs_are_same(&regs, &polling));
	regs.r9 = 77; /* no argument of poll() */
	assert_true(inject_regs_are_same(&regs, &polling));
	regs.rsp += 8;
	assert_false(inject_regs_are_same(&regs, &polling));
	regs = stopped();
	regs.rip += 1;
	assert_false(inject_regs_are_same(&regs, &polling));
	regs = stopped();
	regs.rdi = 0;
	assert_false(inject_regs_are_same(&regs, &polling));
	regs = stopped();
	regs.orig_rax = SYS_read;
	assert_false(inject_regs_are_same(&regs, &polling));
	regs = stopped();
	regs.rax = 1;
	assert_false(inject_regs_are_same(&regs, &polling));
	regs = stopped();
	regs.cs = 0x23;
	assert_false(inject_regs_are_same(&regs, &polling));
}

/* The thread has woken up and now waits for a lock of libc at the same address. */
static void what_waits_for_something_worse_is_another(void **state)
{
	struct inject_thread thread = {.nr = SYS_futex, .args = {0x1000, 128, 0, 0x4000, 0, 0}};
	struct user_regs_struct regs = registers(-516, SYS_futex);

	(void)state;
	regs.rdi = 0x1000;
	regs.rsi = 128;
	regs.r10 = 0x4000;
	regs.cs = CS_64;
	assert_true(inject_regs_are_same(&regs, &thread));
	regs.rdx = 2;
	assert_false(inject_regs_are_same(&regs, &thread));
}

static void diverted_registers_are_those_of_the_contract(void **state)
{
	struct user_regs_struct regs = stopped(), before = regs;

	(void)state;
	assert_int_equal(inject_regs_divert(&regs, STUB, NONCE), 0);
	before.rcx = 0x3000;
	before.r11 = FBT_INJECT_TOKEN(NONCE, FBT_INJECT_BLOCK);
	before.rip = STUB + 2;
	assert_memory_equal(&regs, &before, sizeof(regs));
}

static void an_eintr_becomes_one_of_the_kernels(void **state)
{
	struct user_regs_struct regs = registers(-EINTR, SYS_epoll_wait);

	(void)state;
	assert_int_equal(inject_regs_divert(&regs, STUB, NONCE), 0);
	assert_int_equal((int64_t)regs.rax, -514);
	assert_int_equal(regs.orig_rax, SYS_epoll_wait);
	regs = registers(0, SYS_poll);
	assert_int_equal(inject_regs_divert(&regs, STUB, NONCE), -EAGAIN);
	assert_int_equal(regs.rip, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_class_is_told_by_rax),
		cmocka_unit_test(only_what_can_begin_anew_is_hidden),
		cmocka_unit_test(what_waits_elsewhere_is_another),
		cmocka_unit_test(what_waits_for_something_worse_is_another),
		cmocka_unit_test(diverted_registers_are_those_of_the_contract),
		cmocka_unit_test(an_eintr_becomes_one_of_the_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	return 0;
}

#endif

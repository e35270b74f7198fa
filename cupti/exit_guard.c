/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "exit_guard.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The longest that exit() is delayed, whatever a flush waits for. */
#define DELAY_MAX_NS 1000000000ull

/*
 * Increments the count, then reads alive; the exit handler clears alive, then reads the count. So
 * at least one of the two sees the other.
 */
bool exit_guard__enter(struct shim *shim)
{
	__atomic_fetch_add(&shim->inside, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(shim->alive, __ATOMIC_SEQ_CST))
		return true;
	exit_guard__leave(shim);
	return false;
}

void exit_guard__leave(struct shim *shim)
{
	__atomic_fetch_sub(&shim->inside, 1, __ATOMIC_SEQ_CST);
}

bool exit_guard__is_exiting(const struct shim *shim)
{
	return __atomic_load_n(&shim->exiting, __ATOMIC_ACQUIRE);
}

void exit_guard__finish(struct shim *shim)
{
	__atomic_store_n(shim->alive, 0, __ATOMIC_SEQ_CST);
}

static void wait_a_little(void)
{
	struct timespec time = {.tv_nsec = 500000};

	nanosleep(&time, NULL);
}

/* The exit handler. Does nothing in a forked child, where no thread of ours runs. */
static void on_exit_call(void)
{
	struct shim *shim = shim__bound();
	uint64_t until_ns = shim_clock__now() + DELAY_MAX_NS;

	if (!shim || !shim__is_alive(shim))
		return;
	__atomic_store_n(&shim->exiting, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &shim->ring.shared->armed, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	while (__atomic_load_n(&shim->collecting, __ATOMIC_ACQUIRE) && shim__is_alive(shim) &&
	       shim_clock__now() < until_ns)
		wait_a_little();
	exit_guard__finish(shim);
	while (__atomic_load_n(&shim->inside, __ATOMIC_SEQ_CST) && shim_clock__now() < until_ns)
		wait_a_little();
}

void exit_guard__register(struct shim *shim, enum exit_stage stage)
{
	if (shim->exit_stage < stage && !atexit(on_exit_call))
		shim->exit_stage = stage;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "ending.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "delivery.h"

/* An exit is held up by no more than that, whatever a flush waits for. */
#define MOST_NS 1000000000ull

/* Counted first and looked then, as the handler stores first and looks then: one of both sees. */
bool ending__enter(struct shim *shim)
{
	__atomic_fetch_add(&shim->inside, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(shim->alive, __ATOMIC_SEQ_CST))
		return true;
	ending__leave(shim);
	return false;
}

void ending__leave(struct shim *shim)
{
	__atomic_fetch_sub(&shim->inside, 1, __ATOMIC_SEQ_CST);
}

bool ending__is_near(const struct shim *shim)
{
	return __atomic_load_n(&shim->ending, __ATOMIC_ACQUIRE);
}

void ending__be_done(struct shim *shim)
{
	__atomic_store_n(shim->alive, 0, __ATOMIC_SEQ_CST);
}

static void wait_a_little(void)
{
	struct timespec time = {.tv_nsec = 500000};

	nanosleep(&time, NULL);
}

/* Not in a forked child: there is no thread to wait for. */
static void on_exit_call(void)
{
	struct shim *shim = delivery__bound();
	uint64_t until_ns = shim_clock__now() + MOST_NS;

	if (!shim || !shim__is_alive(shim))
		return;
	__atomic_store_n(&shim->ending, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &shim->ring.shared->armed, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	while (__atomic_load_n(&shim->collecting, __ATOMIC_ACQUIRE) && shim__is_alive(shim) &&
	       shim_clock__now() < until_ns)
		wait_a_little();
	ending__be_done(shim);
	while (__atomic_load_n(&shim->inside, __ATOMIC_SEQ_CST) && shim_clock__now() < until_ns)
		wait_a_little();
}

void ending__watch(struct shim *shim, enum ending_stage stage)
{
	if (shim->watched < stage && !atexit(on_exit_call))
		shim->watched = stage;
}

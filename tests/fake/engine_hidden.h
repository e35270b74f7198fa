/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Troubles of the embedded engine that are no syscalls of the step, because they look like work. */
#ifndef FBT_TESTS_ENGINE_HIDDEN_H
#define FBT_TESTS_ENGINE_HIDDEN_H

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include "engine_calls.h"

enum { PAGE_BYTES = 4096, PAGES_A_LOOK = 32, STORM_US = 100, FIRST = 50 };
#define FRESH_BYTES (4L << 30)

static inline bool is_over(uint64_t begin, const struct engine *e)
{
	return now_ns() - begin >= (uint64_t)e->config.trouble_us * 1000;
}

static inline void ask_helper(struct worker *w)
{
	struct engine *e = w->engine;

	__atomic_store_n(&e->helping, 0, __ATOMIC_RELEASE);
	__atomic_add_fetch(&e->asked, 1, __ATOMIC_ACQ_REL);
	call(w, SYS_futex, (long)&e->asked, FUTEX_WAKE_PRIVATE, 1, 0);
}

/* The step has more work, which the tool must not report. */
static inline void compute_more(struct worker *w)
{
	if (w->engine->config.steady)
		spin_by_clock(w, w->engine->config.trouble_us);
	else
		spin((long)((double)w->engine->config.trouble_us * w->engine->spins_per_us));
}

/* The handler has no other way to know how long to take, nor to say that it ran. */
static long storm_spins;
static volatile sig_atomic_t storm_signals;

static inline void on_storm(int signo)
{
	(void)signo;
	spin(storm_spins);
	storm_signals = storm_signals + 1;
}

/* A timer of this thread, as of a profiler with too high a rate. */
static inline int create_timer(struct engine *e)
{
	struct sigaction action = {.sa_handler = on_storm, .sa_flags = SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR2};

	event._sigev_un._tid = getpid();
	if (sigaction(SIGUSR2, &action, NULL) < 0 ||
	    syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &e->timer) < 0)
		return -errno;
	return 0;
}

/*
 * Signals without a pause. Each is asked for when the last one is done. With an interval instead, a
 * signal may take longer than that, 50 us in a virtual machine, and the step makes no progress.
 */
static inline void bear_storm(struct worker *w)
{
	const struct itimerspec once = {.it_value = {.tv_nsec = 1000}};
	const uint64_t begin = now_ns();

	/* Several times the cost of the timer: the handler is the largest part of the step. */
	storm_spins = (long)(w->engine->spins_per_us * STORM_US);
	while (!is_over(begin, w->engine)) {
		const sig_atomic_t before = storm_signals;

		call(w, SYS_timer_settime, w->engine->timer, 0, (long)&once, 0);
		while (storm_signals == before)
			spin(10);
	}
}

/* Both threads are on one CPU, and the helper preempts the step whenever it is runnable. */
static inline int share_cpu(struct engine *e)
{
	const struct sched_param first = {.sched_priority = FIRST};
	cpu_set_t cpus, last;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
		return -errno;
	CPU_ZERO(&last);
	for (int i = CPU_SETSIZE - 1; i >= 0 && CPU_COUNT(&last) == 0; i--)
		if (CPU_ISSET(i, &cpus))
			CPU_SET(i, &last);
	if (sched_setaffinity(0, sizeof(last), &last) < 0 ||
	    sched_setaffinity(e->helper->tid, sizeof(last), &last) < 0 ||
	    sched_setscheduler(e->helper->tid, SCHED_FIFO, &first) < 0)
		return -errno;
	return 0;
}

static inline void say_begun(struct worker *w)
{
	__atomic_store_n(&w->engine->helping, 1, __ATOMIC_RELEASE);
}

/* The helper takes the CPU once the step has begun to compute. */
static inline void take_cpu(struct worker *helper)
{
	const struct engine *e = helper->engine;
	uint64_t begin;

	do
		sleep_us(helper, e->config.compute_us / 4);
	while (!__atomic_load_n(&e->helping, __ATOMIC_ACQUIRE) &&
	       !__atomic_load_n(&e->stop_noise, __ATOMIC_ACQUIRE));
	begin = now_ns();
	while (!is_over(begin, e))
		spin(100);
}

static inline int reserve_pages(struct engine *e)
{
	e->fresh = mmap(NULL, FRESH_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (e->fresh == MAP_FAILED || madvise(e->fresh, FRESH_BYTES, MADV_NOHUGEPAGE) < 0)
		return -errno;
	return 0;
}

/*
 * Reads, because a read fault maps the zero page. The cost of a written page depends on caches and
 * on the host of a virtual machine, and the tool only knows its minimum.
 */
static inline void touch_pages(struct worker *w)
{
	struct engine *e = w->engine;
	const uint64_t begin = now_ns();

	while (e->touched + PAGES_A_LOOK * PAGE_BYTES <= FRESH_BYTES && !is_over(begin, e))
		for (int i = 0; i < PAGES_A_LOOK; i++, e->touched += PAGE_BYTES)
			(void)*(volatile char *)&e->fresh[e->touched];
}

static inline void give_pages_back(struct worker *w)
{
	struct engine *e = w->engine;

	call(w, SYS_madvise, (long)e->fresh, e->touched, MADV_DONTNEED, 0);
	e->touched = 0;
}

#endif

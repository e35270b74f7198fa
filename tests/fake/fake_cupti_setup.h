/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* How the double of libcupti starts and connects to libcuda. */
#ifndef FBT_TESTS_FAKE_CUPTI_SETUP_H
#define FBT_TESTS_FAKE_CUPTI_SETUP_H

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include "fake_cupti_trace.h"

static uint64_t get_number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static void on_fork(void)
{
	cupti.forked = true;
}

/*
 * Of many readings of one clock between two of the other, the one with the shortest interval
 * counts.
 */
static int64_t measure_realtime(void)
{
	uint64_t best = UINT64_MAX, before, after;
	struct timespec real;
	int64_t offset = 0;

	for (int i = 0; i < 1000; i++) {
		before = mono_ns();
		clock_gettime(CLOCK_REALTIME, &real);
		after = mono_ns();
		if (after - before >= best)
			continue;
		best = after - before;
		offset = (int64_t)((uint64_t)real.tv_sec * 1000000000ull + (uint64_t)real.tv_nsec -
				   before - best / 2);
	}
	return offset;
}

__attribute__((constructor)) static void set_up(void)
{
	static const uint32_t versions[] = {[11] = 18, [12] = 26, [13] = 130001};
	const char *log = getenv("FAKE_CUPTI_LOG");
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&cupti.wake, &monotonic);
	pthread_cond_init(&cupti.done, &monotonic);
	cupti.config = (struct config){
		.version = (uint32_t)get_number("FAKE_CUPTI_VERSION", versions[FAKE_CUPTI_MAJOR]),
		.no_driver = getenv("FAKE_CUPTI_NO_DRIVER"),
		.fail_first = get_number("FAKE_CUPTI_FAIL_FIRST", 0),
		.holder = getenv("FAKE_CUPTI_HOLDER"),
		.holder_file = getenv("FAKE_CUPTI_HOLDER_FILE"),
		.thief_file = getenv("FAKE_CUPTI_THIEF_FILE"),
		.zero_every = get_number("FAKE_CUPTI_ZERO", 0),
		.drop_every = get_number("FAKE_CUPTI_DROP", 0),
		.device_kernels = get_number("FAKE_CUPTI_POOL_KERNELS", 0),
		.graph_shift = get_number("FAKE_CUPTI_GRAPH_SHIFT", 0),
		.late_percent = get_number("FAKE_CUPTI_LATE", 0),
		.late_ms = get_number("FAKE_CUPTI_LATE_MS", 20),
		.skip_percent = get_number("FAKE_CUPTI_SKIP", 0),
		.swallow = get_number("FAKE_CUPTI_SWALLOW", 0),
		.in_order = getenv("FAKE_CUPTI_IN_ORDER"),
		.settles = get_number("FAKE_CUPTI_CLOCK_SETTLES", 0),
		.ticks = getenv("FAKE_CUPTI_TICKS"),
		.flush_ms = get_number("FAKE_CUPTI_FLUSH_MS", 0),
		.log = log ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1,
	};
	cupti.pid = (uint32_t)getpid();
	cupti.realtime_ns = measure_realtime();
	cupti.per_thread = cupti.config.version >= 130000;
	cupti.random = 1;
	cupti.pool_limit = 250;
	pthread_atfork(NULL, NULL, on_fork);
}

/*
 * As in the real library, this destroys what the client's calls use, so no call may be in progress.
 */
static void on_exit_call(void)
{
	if (cupti.forked)
		return;
	__atomic_store_n(&cupti.gone, true, __ATOMIC_RELEASE);
	if (__atomic_load_n(&cupti.flushing, __ATOMIC_ACQUIRE))
		die("the process ends amid cuptiActivityFlushAll");
}

static void start_worker(void)
{
	sigset_t all, before;

	if (cupti.working)
		return;
	atexit(on_exit_call);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&cupti.worker, NULL, run_worker, NULL) != 0)
		die("no thread");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	cupti.working = true;
}

/* Looks for the driver at each call until it finds one. */
static bool has_driver(void)
{
	void (*set_tracer)(const struct fake_tracer *);
	void *driver;

	if (cupti.config.no_driver)
		return false;
	driver = dlopen("libcuda.so.1", RTLD_NOW);
	*(void **)&set_tracer = driver ? dlsym(driver, "fake_cuda_set_tracer") : NULL;
	if (!set_tracer)
		return false;
	set_tracer(&tracer);
	start_worker();
	return true;
}

/*
 * The first check of each activity call: 0, or an error. As in the real library, these calls work
 * without a subscriber.
 */
static int check_ready(const char *name)
{
	check_free(name);
	if (!has_driver())
		return FAKE_UNKNOWN;
	if (cupti.config.holder && !cupti.subscribed &&
	    (!cupti.config.holder_file || access(cupti.config.holder_file, F_OK) == 0))
		die("%s called while %s is subscribed: its buffers are stolen", name,
		    cupti.config.holder);
	return FAKE_OK;
}

#endif

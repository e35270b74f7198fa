/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The state of the double of libcupti, and how it ends a process that breaks a rule. */
#ifndef FBT_TESTS_FAKE_CUPTI_STATE_H
#define FBT_TESTS_FAKE_CUPTI_STATE_H

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "fake_cuda.h"

/* The library's name also chooses the release that this double plays. */
#ifndef FAKE_CUPTI_MAJOR
#define FAKE_CUPTI_MAJOR 13
#endif

/* Results. */
enum {
	FAKE_OK = 0,
	FAKE_INVALID_PARAMETER = 1,
	FAKE_SIZE_TOO_SMALL = 6,
	FAKE_INVALID_OPERATION = 7,
	FAKE_MAX_LIMIT = 12,
	FAKE_NOT_INITIALIZED = 15,
	FAKE_INVALID_KIND = 21,
	FAKE_NOT_SUPPORTED = 27,
	FAKE_TAKEN = 39,
	FAKE_UNKNOWN = 999,
};

/* Kinds of activity. */
enum {
	KIND_MEMCPY = 1,
	KIND_MEMSET = 2,
	KIND_SERIAL_KERNEL = 3,
	KIND_DRIVER = 4,
	KIND_RUNTIME = 5,
	KIND_DEVICE = 8,
	KIND_CONTEXT = 9,
	KIND_KERNEL = 10,
	KIND_OVERHEAD = 17,
	KIND_PEER_COPY = 22,
	KIND_STREAM = 37,
	KIND_SYNC = 38,
	KIND_COUNT = 64,
};

#define CBIDS 1024

/* From the environment: see libcupti.c. */
struct config {
	uint32_t version;
	bool no_driver;
	uint64_t fail_first;
	const char *holder;
	const char *holder_file;
	const char *thief_file;
	uint64_t zero_every;
	uint64_t drop_every;
	uint64_t device_kernels;
	uint64_t graph_shift;
	uint64_t late_percent;
	uint64_t late_ms;
	uint64_t skip_percent;
	uint64_t swallow;
	bool in_order;
	uint64_t settles;
	bool ticks;
	uint64_t flush_ms;
	int log;
};

struct lane;
struct buffer;
struct subscriber;

typedef void (*request_function)(uint8_t **buffer, size_t *size, size_t *records);
typedef void (*completed_function)(void *context, uint32_t stream, uint8_t *buffer, size_t size,
				   size_t valid);
typedef void (*callback_function)(void *userdata, uint32_t domain, uint32_t cbid, const void *data);

struct state {
	struct config config;
	bool forked;
	bool gone;	   /* the process is exiting, and CUPTI is already gone */
	uint32_t flushing; /* threads of the client that are in a flush */
	uint32_t pid;
	uint32_t lock; /* of all fields below; only held for long during a request */
	bool subscribed;
	uint32_t subscriptions; /* so far */
	uint32_t failures;	/* to subscribe */
	bool thief;		/* another profiler records */
	callback_function callback;
	void *userdata;
	uint64_t (*timestamp)(void);
	uint32_t timestamps; /* number of timestamp registrations */
	uint32_t shifted;    /* kernels that a second registration affects */
	int64_t realtime_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
	request_function request;
	completed_function completed;
	bool kinds[KIND_COUNT];
	uint8_t apis[3][CBIDS];	     /* by domain: records wanted */
	uint8_t callbacks[3][CBIDS]; /* number of calls of callback */
	bool correlating;	     /* work gets numbers */
	bool system_tids;
	bool per_thread;
	bool zeroed; /* the client gives zeroed buffers */
	uint32_t correlation;
	uint64_t works; /* recorded or dropped */
	uint64_t pool_limit;
	uint64_t pooled; /* kernels in device buffers */
	size_t dropped;
	uint64_t flushes;
	uint64_t delivered; /* records */
	uint64_t returned;  /* buffers; used by the worker alone */
	uint32_t random;
	struct lane *lanes;
	struct lane *common; /* if not per_thread */

	pthread_mutex_t mutex; /* for the worker's queue */
	pthread_cond_t wake;
	pthread_cond_t done;
	pthread_t worker;
	bool working;
	struct buffer *leaving;
	uint32_t awaited; /* buffers that a flush waits for */
};

static struct state cupti = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static __thread struct {
	struct lane *lane;
	uint32_t tid;
	uint32_t held;
	const char *inside; /* name of the client's callback that is running */
} self;

/* A rule was broken. The process ends here, so that no test can miss it. */
__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
	va_list args;
	char text[512];
	int n = snprintf(text, sizeof(text), "fake cupti: ");

	va_start(args, format);
	n += vsnprintf(text + n, sizeof(text) - (size_t)n - 1, format, args);
	va_end(args);
	text[n++] = '\n';
	if (write(STDERR_FILENO, text, (size_t)n) < 0)
		_exit(134);
	abort();
}

static uint64_t mono_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static void lock_state(void)
{
	unsigned tries = 0;

	while (__atomic_exchange_n(&cupti.lock, 1, __ATOMIC_ACQUIRE))
		if (++tries % 10000 == 0)
			sched_yield();
}

static void unlock_state(void)
{
	__atomic_store_n(&cupti.lock, 0, __ATOMIC_RELEASE);
}

static uint32_t get_tid(void)
{
	if (!self.tid)
		self.tid = (uint32_t)syscall(SYS_gettid);
	return self.tid;
}

static uint32_t get_random(void)
{
	return (cupti.random = cupti.random * 1664525 + 1013904223) >> 8;
}

/* Logs each call of the client and its result. */
__attribute__((format(printf, 2, 3))) static int note(int result, const char *format, ...)
{
	char text[256];
	va_list args;
	int n;

	if (cupti.config.log < 0)
		return result;
	n = snprintf(text, sizeof(text), "%llu %u ", (unsigned long long)mono_ns(), get_tid());
	va_start(args, format);
	n += vsnprintf(text + n, sizeof(text) - (size_t)n, format, args);
	va_end(args);
	n = n < 230 ? n : 230;
	n += snprintf(text + n, sizeof(text) - (size_t)n, " = %d\n", result);
	return write(cupti.config.log, text, (size_t)n) < 0 ? result : result;
}

/* Checks for each call of the client. */
static void check_caller(const char *name)
{
	if (cupti.forked)
		die("%s called in a forked child", name);
	if (__atomic_load_n(&cupti.gone, __ATOMIC_ACQUIRE))
		die("%s called at the end of the process, when CUPTI had ended", name);
}

/* Checks for each call that blocks or changes state. */
static void check_free(const char *name)
{
	check_caller(name);
	if (self.inside)
		die("%s called inside of %s", name, self.inside);
}

#endif

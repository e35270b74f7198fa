/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A double of libcuda.so.1: two devices, the calls that tools make of a driver, and fake_cuda.h for
 * the engine. Written from documented behaviour only. The first cuInit loads what
 * CUDA_INJECTION64_PATH names and calls its InitializeInjection, as the real one does.
 *
 *	FAKE_CUDA_VERSION    of the driver (13000)
 *	FAKE_CUDA_MPS        MPS is on, and the devices are of this major compute capability
 *	FAKE_CUDA_NO_DEVICE  as if there were no driver: it finds no device
 *
 * Its launches make no syscalls, so that those of the engine's script stay what they are.
 */
#include <dlfcn.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "fake_cuda.h"

#define EXPORTED __attribute__((visibility("default")))

#define NS_PER_S 1000000000ull

static struct {
	const struct fake_tracer *tracer;
	uint64_t ends[FAKE_DEVICES][FAKE_STREAMS]; /* of the last work in each */
	uint32_t locked;
	pthread_once_t once;
} cuda = {.once = PTHREAD_ONCE_INIT};

static void lock(void)
{
	unsigned tries = 0;

	while (__atomic_exchange_n(&cuda.locked, 1, __ATOMIC_ACQUIRE))
		if (++tries % 10000 == 0)
			sched_yield();
}

static void unlock(void)
{
	__atomic_store_n(&cuda.locked, 0, __ATOMIC_RELEASE);
}

static const struct fake_tracer *get_tracer(void)
{
	return __atomic_load_n(&cuda.tracer, __ATOMIC_ACQUIRE);
}

EXPORTED void fake_cuda_set_tracer(const struct fake_tracer *tracer)
{
	__atomic_store_n(&cuda.tracer, tracer, __ATOMIC_RELEASE);
}

EXPORTED uint64_t fake_cuda_now(void)
{
	const struct fake_tracer *tracer = get_tracer();
	struct timespec now;

	if (tracer)
		return tracer->now();
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void spin_until(uint64_t time_ns)
{
	while (fake_cuda_now() < time_ns)
		;
}

static void begin_call(struct fake_call *call, uint32_t domain, uint32_t cbid, uint32_t outer)
{
	const struct fake_tracer *tracer = get_tracer();

	*call = (struct fake_call){.domain = domain, .cbid = cbid};
	call->start_ns = fake_cuda_now();
	if (tracer)
		tracer->begin(call, outer);
}

/*
 * From here until release, a call that has ended, and the work that it launched, may have no
 * records yet.
 */
static void hold(bool held)
{
	const struct fake_tracer *tracer = get_tracer();

	if (tracer)
		tracer->hold(held);
}

static void report_call(struct fake_call *call)
{
	const struct fake_tracer *tracer = get_tracer();

	if (tracer && call->start_ns)
		tracer->end(call);
}

/* Begins the engine's call and, if that is a runtime call, the driver's call inside. */
static void begin_calls(struct fake_call calls[2], uint32_t domain, uint32_t runtime_cbid,
			uint32_t driver_cbid)
{
	bool runtime = domain == FAKE_RUNTIME;

	begin_call(&calls[0], domain, runtime ? runtime_cbid : driver_cbid, 0);
	calls[1] = (struct fake_call){0};
	if (runtime)
		begin_call(&calls[1], FAKE_DRIVER, driver_cbid, calls[0].correlation);
}

static void stamp_calls(struct fake_call calls[2])
{
	if (calls[1].start_ns)
		calls[1].end_ns = fake_cuda_now();
	calls[0].end_ns = fake_cuda_now();
}

static void report_calls(struct fake_call calls[2])
{
	report_call(&calls[1]);
	report_call(&calls[0]);
}

static void end_calls(struct fake_call calls[2])
{
	hold(true);
	stamp_calls(calls);
	report_calls(calls);
	hold(false);
}

static uint64_t latest(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * The times of work are set at the end of the call, or at its begin if the call waits for the work.
 */
static void schedule(struct fake_launch *launch, uint64_t from_ns)
{
	struct fake_work *work = launch->works;
	uint64_t *end = &cuda.ends[work->device][work->stream];
	uint64_t at = from_ns + (uint64_t)work->delay_ns;

	if (at < launch->calls[0].start_ns)
		at = launch->calls[0].start_ns;
	lock();
	for (uint32_t i = 0; i < launch->count; i++, work++) {
		work->correlation = launch->calls[0].correlation;
		if (i > 0)
			at = *end + (uint64_t)work->delay_ns;
		work->start_ns = latest(at, *end);
		work->end_ns = work->start_ns + work->duration_ns;
		*end = work->end_ns;
	}
	unlock();
}

static void pass_on(struct fake_launch *launch)
{
	const struct fake_tracer *tracer = get_tracer();

	for (uint32_t i = 0; i < launch->count; i++) {
		launch->works[i].fate = FAKE_UNTRACED;
		if (tracer)
			tracer->work(&launch->works[i]);
	}
}

EXPORTED void fake_cuda_launch(struct fake_launch *launch)
{
	const struct fake_tracer *tracer = get_tracer();
	uint64_t begin;

	begin_calls(launch->calls, launch->domain, launch->runtime_cbid, launch->driver_cbid);
	begin = fake_cuda_now();
	if (launch->full_ns) {
		spin_until(begin + launch->full_ns);
		if (tracer)
			tracer->full(&launch->calls[0], begin, fake_cuda_now());
	}
	spin_until(begin + launch->full_ns + launch->api_ns);
	if (launch->blocking) {
		hold(true);
		schedule(launch, fake_cuda_now());
		pass_on(launch);
		hold(false);
		spin_until(launch->works[launch->count - 1].end_ns);
		end_calls(launch->calls);
		return;
	}
	hold(true);
	stamp_calls(launch->calls);
	schedule(launch, launch->calls[0].end_ns);
	pass_on(launch);
	report_calls(launch->calls);
	hold(false);
}

static void sleep_until(uint64_t time_ns, uint32_t how)
{
	uint64_t now;
	int word = 0;

	while ((now = fake_cuda_now()) < time_ns) {
		struct timespec rest = {(time_t)((time_ns - now) / NS_PER_S),
					(long)((time_ns - now) % NS_PER_S)};

		if (how == FAKE_FUTEX)
			syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &rest, NULL, 0);
		else
			syscall(SYS_ppoll, NULL, 0, &rest, NULL, 0);
	}
}

static uint64_t find_end(const struct fake_wait *wait)
{
	const uint64_t *ends = cuda.ends[wait->device];
	uint64_t end = 0;

	lock();
	for (uint32_t i = 0; i < FAKE_STREAMS; i++)
		if (wait->scope == FAKE_DEVICE || i == wait->stream)
			end = latest(end, ends[i]);
	unlock();
	return end;
}

EXPORTED void fake_cuda_wait(struct fake_wait *wait)
{
	/* CUpti_ActivitySynchronizationType: stream, context, event. */
	static const uint32_t kinds[] = {3, 4, 1};
	static const uint32_t runtime_cbids[] = {FAKE_CUDA_STREAM_SYNC, FAKE_CUDA_DEVICE_SYNC,
						 FAKE_CUDA_EVENT_SYNC};
	static const uint32_t driver_cbids[] = {FAKE_CU_STREAM_SYNC, FAKE_CU_CTX_SYNC,
						FAKE_CU_EVENT_SYNC};
	const struct fake_tracer *tracer = get_tracer();
	struct fake_call *inner;
	uint64_t until;

	begin_calls(wait->calls, wait->domain, runtime_cbids[wait->scope],
		    driver_cbids[wait->scope]);
	wait->work_end_ns = find_end(wait);
	until = latest(fake_cuda_now(), wait->work_end_ns) + wait->tail_ns;
	if (wait->how == FAKE_SPIN)
		spin_until(until);
	else
		sleep_until(until, wait->how);
	end_calls(wait->calls);
	inner = wait->calls[1].start_ns ? &wait->calls[1] : &wait->calls[0];
	if (tracer)
		tracer->sync(inner, kinds[wait->scope],
			     wait->scope == FAKE_STREAM ? wait->stream : UINT32_MAX);
}

EXPORTED void fake_cuda_stream_wait(struct fake_call calls[2], uint32_t domain, uint32_t device,
				    uint32_t stream, uint32_t other)
{
	const struct fake_tracer *tracer = get_tracer();
	uint64_t *ends = cuda.ends[device];

	begin_calls(calls, domain, FAKE_CUDA_STREAM_WAIT_EVENT, FAKE_CU_STREAM_WAIT_EVENT);
	lock();
	ends[stream] = latest(ends[stream], ends[other]);
	unlock();
	end_calls(calls);
	if (tracer)
		tracer->sync(calls[1].start_ns ? &calls[1] : &calls[0], 2, stream);
}

static void make_call(uint32_t domain, uint32_t cbid)
{
	struct fake_call call;

	begin_call(&call, domain, cbid, 0);
	hold(true);
	call.end_ns = fake_cuda_now();
	report_call(&call);
	hold(false);
}

EXPORTED void fake_cuda_noise(uint32_t domain)
{
	make_call(domain, domain == FAKE_RUNTIME ? FAKE_CUDA_GET_DEVICE : FAKE_CU_CTX_GET_CURRENT);
}

static void inject(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	int (*initialize)(void);
	void *library;

	if (!path || !*path)
		return;
	library = dlopen(path, RTLD_NOW);
	if (!library) /* the real one is silent */
		return;
	*(void **)&initialize = dlsym(library, "InitializeInjection");
	if (initialize)
		initialize();
}

EXPORTED int cuInit(unsigned flags)
{
	pthread_once(&cuda.once, inject);
	return flags ? 1 : 0;
}

EXPORTED int cuDriverGetVersion(int *version)
{
	const char *text = getenv("FAKE_CUDA_VERSION");

	make_call(FAKE_DRIVER, FAKE_CU_DRIVER_GET_VERSION);
	*version = text ? (int)strtol(text, NULL, 10) : 13000;
	return 0;
}

EXPORTED int cuDeviceGetCount(int *count)
{
	if (getenv("FAKE_CUDA_NO_DEVICE"))
		return 100;
	*count = FAKE_DEVICES;
	return 0;
}

EXPORTED int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return ordinal >= 0 && ordinal < FAKE_DEVICES ? 0 : 101;
}

EXPORTED int cuDeviceGetName(char *name, int size, int device)
{
	if (size < 1 || device < 0 || device >= FAKE_DEVICES)
		return 1;
	snprintf(name, (size_t)size, "Fake GPU %d", device);
	return 0;
}

EXPORTED int cuDeviceGetUuid(void *uuid, int device)
{
	if (device < 0 || device >= FAKE_DEVICES)
		return 101;
	for (int i = 0; i < 16; i++)
		((unsigned char *)uuid)[i] = (unsigned char)(16 * device + i);
	return 0;
}

EXPORTED int cuDeviceGetUuid_v2(void *uuid, int device)
{
	return cuDeviceGetUuid(uuid, device);
}

EXPORTED int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	*bytes = (size_t)80 << 30;
	return device >= 0 && device < FAKE_DEVICES ? 0 : 101;
}

EXPORTED int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	/* CUdevice_attribute and value, as of an H100. */
	static const int values[][2] = {
		{1, 1024}, {8, 49152}, {10, 32},     {12, 65536}, {16, 132},	{39, 2048},
		{75, 9},   {76, 0},    {81, 233472}, {82, 65536}, {97, 232448}, {106, 32},
	};

	const char *mps = getenv("FAKE_CUDA_MPS");

	if (device < 0 || device >= FAKE_DEVICES)
		return 101;
	if (attribute == 133 || (mps && attribute == 75)) {
		*value = !mps ? 0 : attribute == 133 ? 1 : (int)strtol(mps, NULL, 10);
		return 0;
	}
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (values[i][0] == attribute) {
			*value = values[i][1];
			return 0;
		}
	return 1;
}

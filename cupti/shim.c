/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * libferrum_cupti.so. The CUDA driver loads it into a process that has CUDA_INJECTION64_PATH in its
 * environment, or the tool injects it into a running process (fbt_inject.h). It creates the ring
 * and one thread, which waits for the tool. CUPTI is not loaded before the tool asks for records.
 *
 * The library is a guest in another program's process: it never prints, exits or takes a signal,
 * and it is never unloaded.
 */
#include "state.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collect.h"
#include "exit_guard.h"
#include "only_one.h"
#include "own_thread.h"

#define TURN_MS 250
#define IDLE_MS 2000 /* a missed wake-up costs at most this */

int InitializeInjection(void);
int ferrum_cupti_attach(void);

/* Waits until the tool changes armed. The futex is shared, because the tool is another process. */
static void await_change(const struct shim *shim, uint32_t armed, unsigned int ms)
{
	struct timespec timeout = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	syscall(SYS_futex, &shim->ring.shared->armed, FUTEX_WAIT, armed, &timeout, NULL, 0);
}

static uint32_t read_armed(const struct shim *shim)
{
	return __atomic_load_n(&shim->ring.shared->armed, __ATOMIC_ACQUIRE);
}

static void set_phase(struct shim *shim, enum fbt_gpu_phase phase)
{
	__atomic_store_n(&shim->ring.shared->phase, phase, __ATOMIC_RELEASE);
}

static void set_served(struct shim *shim, uint32_t armed)
{
	__atomic_store_n(&shim->ring.shared->served, armed, __ATOMIC_RELEASE);
}

/*
 * One turn of collecting. false: it was the last turn, because the process exits or another tool
 * has the records.
 */
static bool turn(struct shim *shim)
{
	/* Read before the flush: the last flush must begin after exit() was called. */
	bool last = exit_guard__is_exiting(shim);
	bool ours;

	if (!exit_guard__enter(shim))
		return false;
	ours = collect__turn(shim);
	if (last)
		exit_guard__finish(shim);
	exit_guard__leave(shim);
	return ours && shim__is_alive(shim);
}

/* Flushes until the tool changes armed, or the tool's heartbeat stops. */
static void collect(struct shim *shim, uint32_t armed)
{
	uint32_t beat = __atomic_load_n(&shim->ring.shared->beat, __ATOMIC_RELAXED);
	uint64_t beat_ns = shim_clock__now();

	for (;;) {
		uint32_t latest;
		uint64_t now_ns;

		if (!exit_guard__is_exiting(shim))
			await_change(shim, armed, TURN_MS);
		if (!shim__is_alive(shim) || read_armed(shim) != armed)
			return;
		latest = __atomic_load_n(&shim->ring.shared->beat, __ATOMIC_RELAXED);
		now_ns = shim_clock__now();
		if (latest != beat) {
			beat = latest;
			beat_ns = now_ns;
		} else if (now_ns - beat_ns >= FBT_GPU_BEAT_STALE_NS) {
			return;
		}
		if (!turn(shim))
			return;
	}
}

/* Serves a request. Returns the value of armed that was served. */
static uint32_t serve(struct shim *shim, uint32_t armed)
{
	if (armed & 1) {
		bool begun;

		if (!exit_guard__enter(shim))
			return armed;
		set_phase(shim, FBT_GPU_WORKING);
		begun = collect__begin(shim, shim_clock__now());
		exit_guard__leave(shim);
		if (begun) {
			uint32_t latest;

			set_served(shim, armed);
			collect(shim, armed);
			if (!exit_guard__enter(shim))
				return armed;
			collect__end(shim);
			exit_guard__leave(shim);
			latest = read_armed(shim);
			/* Another odd value is a new request to collect. */
			if (!(latest & 1))
				armed = latest;
		}
		set_phase(shim, FBT_GPU_DORMANT);
	}
	set_served(shim, armed);
	return armed;
}

static void *run(void *arg)
{
	struct shim *shim = arg;
	uint32_t served = 0;

	if (shim->late)
		own_thread_adopt_main();
	own_thread_begin("ferrum-cupti");
	while (shim__is_alive(shim)) {
		uint32_t armed = read_armed(shim);

		if (armed == served)
			await_change(shim, armed, IDLE_MS);
		else
			served = serve(shim, armed);
	}
	return NULL;
}

static int start_thread(struct shim *shim)
{
	/*
	 * Stack sizes to try, in this order: the usual one, which CUPTI may rely on (untouched
	 * pages cost nothing); a larger one, if the engine's thread-local storage does not fit; a
	 * smaller one, if memory is limited.
	 */
	static const size_t stacks[] = {8u << 20, 24u << 20, 1u << 20};
	pthread_attr_t attributes;
	/*
	 * Signals for a thread's own faults stay unblocked. If such a signal is blocked, the kernel
	 * kills the process at once: the engine makes no crash report, and a sandbox cannot handle
	 * its SIGSYS.
	 */
	static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
	sigset_t all;
	sigset_t before;
	int err = pthread_attr_init(&attributes);

	if (err)
		return -err;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	/* The thread inherits this mask: no signal meant for the engine may reach it. */
	sigfillset(&all);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&all, faults[i]);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = EINVAL;
	for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]) && err; i++)
		if (!pthread_attr_setstacksize(&attributes, stacks[i]))
			err = pthread_create(&shim->thread, &attributes, run, shim);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -err;
}

static void *map(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* Uses mmap, not malloc, because this runs inside the driver, on an application thread. */
static int new_shim(struct shim **result)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct shim *shim = map(sizeof(*shim));
	int err = -ENOMEM;

	if (!shim)
		return err;
	shim->alive = map(page);
	if (!shim->alive)
		goto fail;
	/* Covers children of a raw clone(), for which no fork handler runs. */
	madvise(shim->alive, page, MADV_WIPEONFORK);
	err = shim_ring__create(&shim->ring);
	if (err)
		goto fail;
	pthread_mutex_init(&shim->lock, NULL);
	*shim->alive = 1;
	*result = shim;
	return 0;
fail:
	if (shim->alive)
		munmap(shim->alive, page);
	munmap(shim, sizeof(*shim));
	return err;
}

/* The child has neither the ring nor CUPTI's threads: the shim must not use either. */
static void on_fork_in_child(void)
{
	struct shim *shim = shim__bound();

	if (!shim)
		return;
	*shim->alive = 0;
	shim_ring__close_in_child(&shim->ring);
}

/* The process exits and CUPTI takes itself apart, so our thread must not call it any more. */
__attribute__((destructor)) static void on_exit_of_process(void)
{
	struct shim *shim = shim__bound();

	if (shim)
		__atomic_store_n(shim->alive, 0, __ATOMIC_RELAXED);
}

static int make_shim(void *ctx)
{
	struct shim **shim = ctx;
	int err = new_shim(shim);

	/* Another thread was first; its shim serves the process. */
	if (!err && !shim__bind(*shim)) {
		shim_ring__destroy(&(*shim)->ring);
		*shim = NULL;
	}
	return err;
}

/* Starts the shim. 0 also if another copy of this library serves the process. */
static int start(bool late)
{
	const char *early = late ? NULL : secure_getenv("FERRUM_CUPTI_EARLY");
	struct shim *shim = NULL;
	int err = only_one__make(FBT_GPU_MEMFD, make_shim, &shim);

	if (err || !shim)
		return err;
	err = -pthread_atfork(NULL, NULL, on_fork_in_child);
	if (err) {
		set_phase(shim, FBT_GPU_DEAD);
		return err;
	}
	shim->late = late;
	shim->early = early && !strcmp(early, "1");
	if (shim->early)
		collect__attach(shim);
	err = start_thread(shim);
	if (err)
		set_phase(shim, FBT_GPU_DEAD);
	return err;
}

/*
 * Called by the CUDA driver. Always returns 1, success: an engine must not fail because there is no
 * ring, which the tool reports.
 */
__attribute__((visibility("default"))) int InitializeInjection(void)
{
	int error = errno;

	if (!shim__bound())
		start(false);
	errno = error;
	return 1;
}

/*
 * Called after the tool has injected this library into a running process, on a thread of its own.
 * Returns 0, or an errno if there will be no ring. CUDA is in use by then, so FERRUM_CUPTI_EARLY is
 * ignored. Does nothing if the shim is loaded already, even as another copy.
 */
__attribute__((visibility("default"))) int ferrum_cupti_attach(void)
{
	const struct shim *shim = shim__bound();

	if (!shim)
		return -start(true);
	return shim__is_alive(shim) ? 0 : ECANCELED;
}

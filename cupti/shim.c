/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * libferrum_cupti.so: loaded by the CUDA driver into a process whose environment has
 * CUDA_INJECTION64_PATH, or put by the tool into one that runs (fbt_inject.h). It makes the ring,
 * starts one thread, and that thread waits for the tool. Until then nothing of CUPTI is loaded.
 *
 * It lives in a stranger's process: it prints nothing, ends nothing, takes no signals, and is never
 * unloaded.
 */
#include "shim.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collection.h"
#include "delivery.h"
#include "ending.h"
#include "other_copy.h"

#define TURN_MS	 250
#define IDLE_MS	 2000  /* a wake-up that was missed costs no more than that */
#define SLACK_NS 50000 /* of timers: what processes begin with */

int InitializeInjection(void);
int ferrum_cupti_attach(void);

/* Waits until the tool changes its wish. Shared: the tool is another process. */
static void await_wish(const struct shim *shim, uint32_t wish, unsigned int ms)
{
	struct timespec timeout = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	syscall(SYS_futex, &shim->ring.shared->armed, FUTEX_WAIT, wish, &timeout, NULL, 0);
}

static uint32_t read_wish(const struct shim *shim)
{
	return __atomic_load_n(&shim->ring.shared->armed, __ATOMIC_ACQUIRE);
}

static void set_phase(struct shim *shim, enum fbt_gpu_phase phase)
{
	__atomic_store_n(&shim->ring.shared->phase, phase, __ATOMIC_RELEASE);
}

static void set_served(struct shim *shim, uint32_t wish)
{
	__atomic_store_n(&shim->ring.shared->served, wish, __ATOMIC_RELEASE);
}

/* false: it was the last one, since the process ends. */
static bool turn(struct shim *shim)
{
	/* Asked before: what was done until then is to be in it. */
	bool last = ending__is_near(shim);

	if (!ending__enter(shim))
		return false;
	collection__turn(shim);
	if (last)
		ending__be_done(shim);
	ending__leave(shim);
	return shim__is_alive(shim);
}

/* Flushes until the tool wants something else, or is gone. */
static void collect(struct shim *shim, uint32_t wish)
{
	uint32_t beat = __atomic_load_n(&shim->ring.shared->beat, __ATOMIC_RELAXED);
	uint64_t beat_ns = shim_clock__now();

	for (;;) {
		uint32_t latest;
		uint64_t now_ns;

		if (!ending__is_near(shim))
			await_wish(shim, wish, TURN_MS);
		if (!shim__is_alive(shim) || read_wish(shim) != wish)
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

/* Returns the wish that has been dealt with. */
static uint32_t serve(struct shim *shim, uint32_t wish)
{
	if (wish & 1) {
		bool begun;

		if (!ending__enter(shim))
			return wish;
		set_phase(shim, FBT_GPU_WORKING);
		begun = collection__begin(shim, shim_clock__now());
		ending__leave(shim);
		if (begun) {
			uint32_t latest;

			set_served(shim, wish);
			collect(shim, wish);
			if (!ending__enter(shim))
				return wish;
			collection__end(shim);
			ending__leave(shim);
			latest = read_wish(shim);
			/* Another odd one is a wish of its own. */
			if (!(latest & 1))
				wish = latest;
		}
		set_phase(shim, FBT_GPU_DORMANT);
	}
	set_served(shim, wish);
	return wish;
}

/*
 * Where it was made by whichever thread could be taken, it has what that one was given: to run on
 * one CPU, or last of all. It is to have what the first thread has; what cannot be had stays.
 */
static void be_an_ordinary_thread(void)
{
	cpu_set_t cpus;
	pid_t first = getpid();
	int nice;

	if (!sched_getaffinity(first, sizeof(cpus), &cpus))
		sched_setaffinity(0, sizeof(cpus), &cpus);
	errno = 0;
	nice = getpriority(PRIO_PROCESS, (id_t)first);
	if (!errno)
		setpriority(PRIO_PROCESS, 0, nice);
	prctl(PR_SET_TIMERSLACK, SLACK_NS);
}

static void *run(void *arg)
{
	struct shim *shim = arg;
	uint32_t served = 0;

	if (shim->late)
		be_an_ordinary_thread();
	prctl(PR_SET_NAME, "ferrum-cupti");
	while (shim__is_alive(shim)) {
		uint32_t wish = read_wish(shim);

		if (wish == served)
			await_wish(shim, wish, IDLE_MS);
		else
			served = serve(shim, wish);
	}
	return NULL;
}

static int start_thread(struct shim *shim)
{
	/*
	 * First what threads usually have, and CUPTI may count on: pages are used as they are
	 * touched. More where the engine's thread-local storage alone is larger, less where memory
	 * is limited.
	 */
	static const size_t stacks[] = {8u << 20, 24u << 20, 1u << 20};
	pthread_attr_t attributes;
	/*
	 * What a thread does to itself: where that is blocked the kernel ends the process, without
	 * the engine's report of the crash, or amid a sandbox that answers system calls by SIGSYS.
	 */
	static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
	sigset_t all;
	sigset_t before;
	int err = pthread_attr_init(&attributes);

	if (err)
		return -err;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	/* It is born with the mask of its maker: no signal of the engine's may ever reach it. */
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

/* Not malloc: it is called from within the driver, on an application thread. */
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
	/* Also where a child is made by the system call alone, without our handler. */
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

/* The ring is not there any more, and CUPTI's threads are not: nothing of either may be used. */
static void on_fork_in_child(void)
{
	struct shim *shim = delivery__bound();

	if (!shim)
		return;
	*shim->alive = 0;
	shim_ring__close_in_child(&shim->ring);
}

/* The process ends: CUPTI takes itself apart, and is not to be called by our thread meanwhile. */
__attribute__((destructor)) static void on_exit_of_process(void)
{
	struct shim *shim = delivery__bound();

	if (shim)
		__atomic_store_n(shim->alive, 0, __ATOMIC_RELAXED);
}

static int make_shim(void *ctx)
{
	struct shim **shim = ctx;
	int err = new_shim(shim);

	/* Two threads were here, and the other one was first: his copy of it is seen by its ring.
	 */
	if (!err && !delivery__bind(*shim)) {
		shim_ring__destroy(&(*shim)->ring);
		*shim = NULL;
	}
	return err;
}

/* 0 also if another copy of this library has made what it takes. */
static int start(bool late)
{
	const char *early = late ? NULL : secure_getenv("FERRUM_CUPTI_EARLY");
	struct shim *shim = NULL;
	int err = other_copy__make_first(make_shim, &shim);

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
		collection__attach(shim);
	err = start_thread(shim);
	if (err)
		set_phase(shim, FBT_GPU_DEAD);
	return err;
}

/*
 * What the CUDA driver calls, 1 being success. It always is: that there is no ring is for the tool
 * to find out, and nothing that an engine should fail for.
 */
__attribute__((visibility("default"))) int InitializeInjection(void)
{
	int error = errno;

	if (!delivery__bound())
		start(false);
	errno = error;
	return 1;
}

/*
 * What the tool calls where it has put this library into a process that runs, on a thread of its
 * own: 0, or an errno if there will be no ring. CUDA is in use by then: it is too late for
 * FERRUM_CUPTI_EARLY. Harmless where the shim is there already, also as another copy.
 */
__attribute__((visibility("default"))) int ferrum_cupti_attach(void)
{
	const struct shim *shim = delivery__bound();

	if (!shim)
		return -start(true);
	return shim__is_alive(shim) ? 0 : ECANCELED;
}

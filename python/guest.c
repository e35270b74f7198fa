/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "guest.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "callers.h"
#include "only_one.h"
#include "own_thread.h"
#include "page.h"

#define STACK_BYTES (2u << 20) /* PyTorch may export its trace on it */
#define IDLE_MS	    2000       /* a missed wake-up costs at most this */
#define LEASE_MS    250	       /* how often the lease is looked at while functions are armed */
#define EARLY_MS                                                                                   \
	20 /* and whether there is an interpreter, while an order waits for one, or whether a      \
	      thread is done with PyTorch's profiler, whose window has ended */
#define NS_PER_MS 1000000ull

int ferrum_python_attach(void);

struct guest *guest_of_process;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Waits until the tool changes the order. The futex is shared: the tool is another process. */
static void await_order(struct guest *guest, uint32_t order, unsigned int ms)
{
	struct timespec timeout = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	syscall(SYS_futex, &guest->page->order, FUTEX_WAIT, order, &timeout, NULL, 0);
}

static void set_phase(struct guest *guest, enum fbt_python_phase phase)
{
	__atomic_store_n(&guest->page->phase, phase, __ATOMIC_RELEASE);
}

/* Slots that have a function, and may let go of it. */
static size_t count_armed(const struct guest *guest)
{
	size_t count = 0;

	for (size_t i = 0; i < FBT_PYTHON_SLOTS; i++)
		count += guest->slots[i].own_count && !guest->slots[i].is_pinned;
	return count;
}

/* Of these, the one whose next call has to stop PyTorch's profiler. */
static size_t count_needed(const struct guest *guest)
{
	size_t count = 0;

	for (unsigned int i = 0; i < FBT_PYTHON_SLOTS; i++)
		count += guest->slots[i].own_count && !guest->slots[i].is_pinned &&
			 python_torch_needs(guest, i);
	return count;
}

static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/*
 * Without the GIL. A call that ends after its slot was armed may have begun before: as many have
 * ended since as have ended at all, less those that had begun by then.
 */
static void publish(struct guest *guest)
{
	for (size_t i = 0; i < FBT_PYTHON_SLOTS; i++) {
		const struct python_slot *slot = &guest->slots[i];
		struct fbt_python_slot *shared = &guest->page->slots[i];

		uint64_t raised = __atomic_load_n(&slot->raised, __ATOMIC_RELAXED);
		uint64_t ended = __atomic_load_n(&slot->ended, __ATOMIC_RELAXED);

		ended = since(ended, slot->begun_before);
		raised = since(raised, slot->raised_before);
		shared->ended_raised = raised < ended ? raised : ended;
		shared->ended = ended;
		shared->begun =
			__atomic_load_n(&slot->begun, __ATOMIC_RELAXED) - slot->begun_before;
	}
}

static void act_paused(struct guest *guest, uint32_t command)
{
	/*
	 * First what an earlier order has looked up or, of a tool that was killed and whose lease
	 * has just ended, armed.
	 */
	for (unsigned int i = 0; command == FBT_PYTHON_RESOLVE && i < FBT_PYTHON_SLOTS; i++) {
		if (!python_torch_needs(guest, i))
			python_slot_release(&guest->python, &guest->slots[i], i,
					    &guest->page->slots[i]);
	}
	if (command == FBT_PYTHON_RESOLVE || command == FBT_PYTHON_DISARM)
		python_torch_forget(&guest->torch);
	for (unsigned int i = 0; i < FBT_PYTHON_SLOTS; i++) {
		struct fbt_python_slot *shared = &guest->page->slots[i];
		struct python_slot *slot = &guest->slots[i];

		if (python_torch_needs(guest, i)) {
			snprintf(shared->text, sizeof(shared->text),
				 "PyTorch's profiler is still on, until its next call");
			shared->found = command == FBT_PYTHON_RESOLVE ? FBT_PYTHON_FAILED
								      : FBT_PYTHON_ARMED;
			continue;
		}
		if (command == FBT_PYTHON_ARM)
			python_slot_arm(&guest->python, slot, i, shared);
		else if (command == FBT_PYTHON_DISARM)
			python_slot_release(&guest->python, slot, i, shared);
		else if ((command == FBT_PYTHON_RESOLVE ||
			  (command == FBT_PYTHON_LOOK && !slot->own_count)) &&
			 shared->function[0])
			python_slot_resolve(&guest->python, slot, shared, guest->slots);
	}
}

/*
 * Up to 3.11 a new object may start a collection at once: the program's callbacks and finalizers
 * would run on our thread. Counting makes no object, and has no GIL.
 */
static void act(struct guest *guest, uint32_t command)
{
	const struct python *python = &guest->python;
	bool pauses = command != FBT_PYTHON_COUNT && python->minor < 12 && python->PyGC_Disable &&
		      python->PyGC_Enable;
	bool was_on = pauses && python->PyGC_Disable();

	act_paused(guest, command);
	if (was_on)
		python->PyGC_Enable();
}

static bool is_lease_over(const struct guest *guest)
{
	return now_ns() >= __atomic_load_n(&guest->page->lease_ns, __ATOMIC_ACQUIRE);
}

/* false: the tool has withdrawn the order meanwhile. order: as it was asked. */
static bool change_order(struct guest *guest, uint32_t order, enum fbt_python_order state)
{
	return __atomic_compare_exchange_n(&guest->page->order, &order,
					   FBT_PYTHON_ORDER(order >> 2, state), false,
					   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/*
 * Drops the order of a tool that has died: nobody withdraws it, and nobody wants it any more. A
 * tool that was only late learns from the lapse that nothing was done. false: the tool lives.
 */
static bool drop_left(struct guest *guest, uint32_t order)
{
	if (!is_lease_over(guest))
		return false;
	guest->page->lapses++;
	change_order(guest, order, FBT_PYTHON_DONE);
	return true;
}

/*
 * Takes the order, unless the tool has withdrawn it meanwhile, acts, and answers. order: as it was
 * asked. Called with the GIL, or without where the command needs none.
 */
static void take(struct guest *guest, uint32_t order, uint32_t command)
{
	uint32_t number = order >> 2;

	/* The wait for the GIL may have been long. */
	if (drop_left(guest, order) || !change_order(guest, order, FBT_PYTHON_TAKEN))
		return;
	act(guest, command);
	publish(guest);
	__atomic_store_n(&guest->page->order, FBT_PYTHON_ORDER(number, FBT_PYTHON_DONE),
			 __ATOMIC_RELEASE);
	syscall(SYS_futex, &guest->page->order, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* false: there is no interpreter (yet, or any more) whose GIL could be had. */
static bool may_enter(const struct guest *guest)
{
	return guest->is_loaded && guest->python.Py_IsInitialized() &&
	       !guest->python.is_finalizing();
}

static void tell_why_not(const struct guest *guest)
{
	/* An interpreter that is ending counts as not initialized, too. */
	snprintf(guest->page->text, sizeof(guest->page->text), "the interpreter %s",
		 guest->python.is_finalizing() ? "is ending" : "has not begun");
}

static void serve(struct guest *guest, uint32_t order)
{
	uint32_t command = __atomic_load_n(&guest->page->command, __ATOMIC_ACQUIRE);
	uint64_t begin_ns = now_ns(), held_ns;
	int state;

	if (command == FBT_PYTHON_COUNT) {
		take(guest, order, command);
		return;
	}
	/* The order stays asked: the tool withdraws it when it is late. */
	if (!may_enter(guest)) {
		tell_why_not(guest);
		return;
	}
	guest->page->text[0] = '\0';
	state = guest->python.PyGILState_Ensure();
	held_ns = now_ns();
	take(guest, order, command);
	guest->page->gil_wait_ns = held_ns - begin_ns;
	guest->page->gil_hold_ns = now_ns() - held_ns;
	guest->python.PyGILState_Release(state);
}

/* The tool has died or forgotten us: nothing stays armed for it. */
static void end_lease(struct guest *guest)
{
	uint32_t tool = __atomic_load_n(&guest->page->tool, __ATOMIC_ACQUIRE);
	size_t before = count_armed(guest), after;
	int state;

	if (!may_enter(guest))
		return;
	python_torch_cancel(guest);
	state = guest->python.PyGILState_Ensure();
	python_torch_end_idle(guest);
	act(guest, FBT_PYTHON_DISARM);
	guest->python.PyGILState_Release(state);
	publish(guest);
	after = count_armed(guest);
	/* A tool that was only late has to have the others armed again. */
	guest->page->lapses += after < before;
	/*
	 * While PyTorch's profiler is on, its function stays armed until a call of it has stopped
	 * it. The next tool may have the others: that call may never come.
	 */
	if (after > count_needed(guest))
		return;
	/* The next tool may have taken the page as soon as nothing was armed. */
	__atomic_compare_exchange_n(&guest->page->tool, &tool, 0, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_ACQUIRE);
}

/* Nothing is left to be done but what a call of the program does, which may never come. */
static bool waits_for_call(const struct guest *guest)
{
	return !__atomic_load_n(&guest->page->tool, __ATOMIC_ACQUIRE) &&
	       !python_torch_is_observed(&guest->torch) &&
	       count_armed(guest) == count_needed(guest);
}

/* The tool's window has ended, and no step may come for long. */
static void end_torch(struct guest *guest)
{
	int state;

	if (!may_enter(guest))
		return;
	state = guest->python.PyGILState_Ensure();
	python_torch_end_idle(guest);
	guest->python.PyGILState_Release(state);
}

static bool is_torch_over(const struct guest *guest)
{
	return python_torch_is_observed(&guest->torch) &&
	       guest->page->torch.window != guest->torch.served;
}

/* How long to wait for the next order at most. order: as it was read last. */
static unsigned int idle_ms(const struct guest *guest, uint32_t order)
{
	if ((order & 3) == FBT_PYTHON_ASKED)
		return EARLY_MS;
	if (is_torch_over(guest))
		return EARLY_MS;
	return count_armed(guest) ? LEASE_MS : IDLE_MS;
}

static void *run(void *arg)
{
	struct guest *guest = arg;

	/* The engine's threads wait for this one while it has the GIL. */
	own_thread_adopt_main();
	own_thread_begin(FBT_PYTHON_THREAD);
	guest->is_loaded =
		python_api_load(&guest->python, guest->page->text, sizeof(guest->page->text));
	guest->page->python = 3u << 8 | (uint32_t)guest->python.minor;
	guest->page->threaded = guest->python.threaded;
	set_phase(guest, guest->is_loaded ? FBT_PYTHON_READY : FBT_PYTHON_DEAD);
	while (guest->is_loaded && guest__is_alive(guest)) {
		uint32_t order = __atomic_load_n(&guest->page->order, __ATOMIC_ACQUIRE);
		bool is_held = count_armed(guest);

		if ((order & 3) == FBT_PYTHON_ASKED && !drop_left(guest, order))
			serve(guest, order);
		if (is_torch_over(guest))
			end_torch(guest);
		if (is_held && is_lease_over(guest) && !waits_for_call(guest))
			end_lease(guest);
		if (!guest__is_alive(guest))
			break;
		order = __atomic_load_n(&guest->page->order, __ATOMIC_ACQUIRE);
		await_order(guest, order, idle_ms(guest, order));
	}
	return NULL;
}

static int start_thread(struct guest *guest)
{
	/*
	 * Signals for a thread's own faults stay unblocked: were one blocked, the kernel would kill
	 * the process at once, without the program's own report.
	 */
	static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int err = pthread_attr_init(&attributes);

	if (err)
		return -err;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	/* What the program's thread-local storage needs comes on top in some programs. */
	if (pthread_attr_setstacksize(&attributes, STACK_BYTES))
		pthread_attr_setstacksize(&attributes, 8u << 20);
	sigfillset(&all);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(&all, faults[i]);
	/* A signal taken by our thread would not interrupt the program's system call. */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, &attributes, run, guest);
	if (err == EINVAL) {
		pthread_attr_setstacksize(&attributes, 8u << 20);
		err = pthread_create(&thread, &attributes, run, guest);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -err;
}

/* The child has the armed functions, which stay as they are, but neither thread nor page. */
static void on_fork_in_child(void)
{
	struct guest *guest = guest__bound();

	if (!guest)
		return;
	*guest->alive = 0;
	own_memfd_close(&guest->file);
	python_torch_close_in_child(&guest->torch);
}

__attribute__((destructor)) static void on_exit_of_process(void)
{
	const struct guest *guest = guest__bound();

	if (guest)
		__atomic_store_n(guest->alive, 0, __ATOMIC_RELAXED);
}

static void *map(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* Uses mmap, not malloc, because a constructor may run before the program's allocator is ready. */
static int make_guest(struct guest **result)
{
	size_t unit = (size_t)sysconf(_SC_PAGESIZE);
	struct guest *guest = map(sizeof(*guest));
	int err = -ENOMEM;

	if (!guest)
		return err;
	guest->alive = map(unit);
	if (!guest->alive)
		goto fail;
	/* Covers children of a raw clone(), for which no fork handler runs. */
	madvise(guest->alive, unit, MADV_WIPEONFORK);
	err = python_page_make(&guest->page, &guest->file);
	if (err) {
		munmap(guest->alive, unit);
		goto fail;
	}
	for (unsigned int i = 0; i < FBT_PYTHON_SLOTS; i++) {
		struct python_markers markers = python_markers(i);

		guest->page->slots[i].begin = (uintptr_t)markers.begin;
		guest->page->slots[i].end = (uintptr_t)markers.end;
		guest->page->slots[i].raised = (uintptr_t)markers.raised;
	}
	python_torch_init(&guest->torch);
	*guest->alive = 1;
	*result = guest;
	return 0;
fail:
	munmap(guest, sizeof(*guest));
	return err;
}

static int make_bound(void *ctx)
{
	struct guest **guest = ctx;
	int err = make_guest(guest);

	if (!err)
		__atomic_store_n(&guest_of_process, *guest, __ATOMIC_RELEASE);
	return err;
}

/* 0 also if another copy of this library serves the process. */
static int start(void)
{
	struct guest *guest = NULL;
	int err = only_one__make(FBT_PYTHON_MEMFD, make_bound, &guest);

	if (err || !guest)
		return err;
	err = -pthread_atfork(NULL, NULL, on_fork_in_child);
	if (!err)
		err = start_thread(guest);
	if (err) {
		snprintf(guest->page->text, sizeof(guest->page->text),
			 "its thread could not be started (error %d)", -err);
		set_phase(guest, FBT_PYTHON_DEAD);
	}
	return err;
}

/* LD_PRELOAD is inherited by programs of all kinds: without an interpreter nothing happens. */
__attribute__((constructor)) static void on_load(void)
{
	int error = errno;

	if (python_is_here())
		start();
	errno = error;
}

/*
 * Called after the tool has put this library into a running process, on a thread of its own.
 * Returns 0, or an errno if there will be no page.
 */
__attribute__((visibility("default"))) int ferrum_python_attach(void)
{
	if (!python_is_here())
		return ENOENT;
	return -start();
}

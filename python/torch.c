/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "torch.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"
#include "page.h"
#include "torch_calls.h"

/*
 * The window begins with an outermost step. Where steps of several threads always overlap, or a
 * step that began before never ends, it begins with any after this many calls.
 */
#define INNER_MAX 64

/* A thread that is in the observer leaves it within microseconds, if it has a CPU. */
#define LEAVE_NS 100000000ull
#define NS_PER_S 1000000000ull

void python_torch_init(struct python_torch *torch)
{
	*torch = (struct python_torch){.execution.fd = -1, .kineto.fd = -1, .stream.fd = -1};
}

void python_torch_close(struct python_torch *torch)
{
	own_memfd_close(&torch->execution);
	own_memfd_close(&torch->kineto);
}

/* The number stays as it is for PyTorch, which closes it, or not, when the child exits. */
void python_torch_close_in_child(struct python_torch *torch)
{
	int fd = own_memfd_is_there(&torch->stream) ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;

	if (fd >= 0) {
		dup3(fd, torch->stream.fd, O_CLOEXEC);
		close(fd);
	}
	python_torch_close(torch);
}

void python_torch_forget(struct python_torch *torch)
{
	if (!python_torch_is_on(torch) && !__atomic_load_n(&torch->is_busy, __ATOMIC_ACQUIRE))
		python_torch_close(torch);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint32_t wanted(const struct guest *guest)
{
	return __atomic_load_n(&guest->page->torch.window, __ATOMIC_ACQUIRE);
}

/* Calls of a slot that have begun and not ended. */
static uint64_t running(const struct guest *guest, unsigned int slot)
{
	/* ended first: a call that begins in between counts. */
	uint64_t ended = __atomic_load_n(&guest->slots[slot].ended, __ATOMIC_ACQUIRE);

	return __atomic_load_n(&guest->slots[slot].begun, __ATOMIC_ACQUIRE) - ended;
}

static bool runs_any(const struct guest *guest)
{
	for (unsigned int i = 0; i < FBT_PYTHON_SLOTS; i++) {
		if (guest->slots[i].own_count && running(guest, i))
			return true;
	}
	return false;
}

/*
 * One thread at a time: PyTorch may let go of the GIL, and what it calls may lead to an armed
 * function again.
 */
static bool enter(struct guest *guest)
{
	uint32_t idle = 0;

	return __atomic_compare_exchange_n(&guest->torch.is_busy, &idle, 1, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

static void leave(struct guest *guest)
{
	__atomic_store_n(&guest->torch.is_busy, 0, __ATOMIC_RELEASE);
}

static void answer(struct guest *guest, enum fbt_torch_state state)
{
	__atomic_store_n(&guest->page->torch.state, state, __ATOMIC_RELEASE);
}

static enum fbt_torch_state make_files(struct python_torch *torch, struct fbt_python_torch *shared)
{
	python_torch_close(torch);
	if (!own_memfd_make(&torch->execution, FBT_TORCH_MEMFD) &&
	    !own_memfd_make(&torch->kineto, FBT_TORCH_MEMFD))
		return FBT_TORCH_ON;
	snprintf(shared->text, sizeof(shared->text), "no memory file could be made");
	return FBT_TORCH_FAILED;
}

/* The descriptor by which PyTorch writes the execution trace. */
static void find_stream(struct python_torch *torch)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;

	torch->stream = (struct own_memfd){-1, torch->execution.device, torch->execution.inode};
	while (folder && torch->stream.fd < 0 && (entry = readdir(folder))) {
		torch->stream.fd =
			isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : -1;
		if (torch->stream.fd == torch->execution.fd || !own_memfd_is_there(&torch->stream))
			torch->stream.fd = -1;
	}
	if (folder)
		closedir(folder);
}

static void start(struct guest *guest, unsigned int slot)
{
	struct fbt_python_torch *shared = &guest->page->torch;
	struct python_torch *torch = &guest->torch;
	uint64_t begin_ns = now_ns();
	enum fbt_torch_state state;

	torch->served = wanted(guest);
	torch->inner = 0;
	torch->host = slot;
	torch->thread = (pid_t)syscall(SYS_gettid);
	shared->text[0] = '\0';
	shared->steps = 0;
	shared->end_ns = 0;
	state = make_files(torch, shared);
	/* First of all: the steps of other processes that wait for this one are no usual ones. */
	__atomic_store_n(&shared->begin_ns, begin_ns, __ATOMIC_RELEASE);
	if (state == FBT_TORCH_ON)
		state = torch_calls_start(&guest->python, shared->flags, torch->execution.fd,
					  shared->text, sizeof(shared->text));
	if (state == FBT_TORCH_ON) {
		find_stream(torch);
	} else {
		python_torch_close(torch);
		__atomic_store_n(&shared->begin_ns, 0, __ATOMIC_RELEASE);
	}
	shared->execution_fd = torch->execution.fd;
	shared->kineto_fd = torch->kineto.fd;
	__atomic_store_n(&torch->is_observed, state == FBT_TORCH_ON, __ATOMIC_RELEASE);
	__atomic_store_n(&torch->is_on, state == FBT_TORCH_ON, __ATOMIC_RELEASE);
	__atomic_store_n(&shared->served, torch->served, __ATOMIC_RELEASE);
	answer(guest, state);
}

static void end_observer(struct guest *guest)
{
	struct python_torch *torch = &guest->torch;

	if (!python_torch_is_observed(torch))
		return;
	torch_calls_disable_observer(&guest->python);
	torch->unobserved_ns = now_ns();
	__atomic_store_n(&torch->is_observed, 0, __ATOMIC_RELEASE);
}

/* Without the GIL, for which a thread may wait in an operator. */
static void let_others_leave(const struct guest *guest)
{
	uint64_t until_ns = guest->torch.unobserved_ns + LEAVE_NS;
	struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_S),
				 .tv_nsec = (long)(until_ns % NS_PER_S)};
	void *state = guest->python.PyEval_SaveThread();

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
	guest->python.PyEval_RestoreThread(state);
}

static void stop(struct guest *guest)
{
	struct fbt_python_torch *shared = &guest->page->torch;
	struct python_torch *torch = &guest->torch;
	bool keep = !torch->is_cancelled;
	bool good;

	__atomic_store_n(&guest->page->torch_stops, 1, __ATOMIC_RELEASE);
	end_observer(guest);
	let_others_leave(guest);
	good = torch_calls_stop(&guest->python, shared->flags, keep ? torch->kineto.fd : -1,
				shared->text, sizeof(shared->text));
	if (!keep)
		snprintf(shared->text, sizeof(shared->text),
			 "the tool gave no sign of life for over 5 s");
	if (!keep || !good)
		python_torch_close(torch);
	torch->is_cancelled = 0;
	__atomic_store_n(&shared->end_ns, now_ns(), __ATOMIC_RELEASE);
	__atomic_store_n(&torch->is_on, 0, __ATOMIC_RELEASE);
	answer(guest, good && keep ? FBT_TORCH_DONE : FBT_TORCH_FAILED);
	__atomic_store_n(&guest->page->torch_stops, 0, __ATOMIC_RELEASE);
}

/* Why the window ends before the tool ends it; NULL: it does not. */
static const char *limit_reached(const struct guest *guest)
{
	const struct fbt_python_torch *shared = &guest->page->torch;
	struct stat status;

	if (shared->max_steps && shared->steps >= shared->max_steps)
		return "it has as many steps as it may have";
	if (shared->max_bytes && !fstat(guest->torch.execution.fd, &status) &&
	    (uint64_t)status.st_size >= shared->max_bytes)
		return "the execution trace has grown too large";
	return NULL;
}

/* Whether it is on, and nobody wants it any more. */
static bool is_over(struct guest *guest)
{
	const struct python_torch *torch = &guest->torch;
	const char *limit;

	if (!python_torch_is_on(torch))
		return false;
	if (torch->is_cancelled || wanted(guest) != torch->served)
		return true;
	limit = limit_reached(guest);
	if (limit)
		snprintf(guest->page->torch.text, sizeof(guest->page->torch.text), "%s", limit);
	return limit;
}

/* As far as this thread may stop it. */
static void end_window(struct guest *guest)
{
	if (!is_over(guest))
		return;
	if (guest->torch.thread == (pid_t)syscall(SYS_gettid))
		stop(guest);
	else
		end_observer(guest);
}

/* A child has neither page nor files, and its Kineto may wait for threads that it lacks. */
static void leave_alone(struct guest *guest)
{
	struct torch_pending pending;

	if (!__atomic_exchange_n(&guest->torch.is_on, 0, __ATOMIC_ACQ_REL))
		return;
	torch_calls_begin(&guest->python, &pending);
	torch_calls_disable_observer(&guest->python);
	torch_calls_mute(&guest->python);
	torch_calls_end(&guest->python, &pending);
}

void python_torch_begin(struct guest *guest, unsigned int slot)
{
	struct torch_pending pending;

	if (!guest__is_alive(guest)) {
		leave_alone(guest);
		return;
	}
	if (!enter(guest))
		return;
	torch_calls_begin(&guest->python, &pending);
	end_window(guest);
	if (!python_torch_is_on(&guest->torch) && python_torch_is_wanted(guest) &&
	    (!runs_any(guest) || ++guest->torch.inner > INNER_MAX))
		start(guest, slot);
	/* It may have let go of the GIL for long, and no other step may come. */
	end_window(guest);
	torch_calls_end(&guest->python, &pending);
	leave(guest);
}

void python_torch_end(struct guest *guest, unsigned int slot)
{
	struct fbt_python_torch *shared = &guest->page->torch;
	struct torch_pending pending;

	/* A step that calls itself ends with its outermost call. */
	if (!python_torch_is_on(&guest->torch) || slot != guest->torch.host ||
	    running(guest, slot) || !enter(guest))
		return;
	torch_calls_begin(&guest->python, &pending);
	if (python_torch_is_on(&guest->torch))
		__atomic_fetch_add(&shared->steps, 1, __ATOMIC_RELAXED);
	if (python_torch_is_on(&guest->torch) && (shared->flags & FBT_TORCH_SYNC))
		torch_calls_sync(&guest->python);
	end_window(guest);
	torch_calls_end(&guest->python, &pending);
	leave(guest);
}

bool python_torch_needs(const struct guest *guest, unsigned int slot)
{
	const struct python_torch *torch = &guest->torch;

	return (python_torch_is_on(torch) || __atomic_load_n(&torch->is_busy, __ATOMIC_ACQUIRE)) &&
	       torch->host == slot;
}

void python_torch_end_idle(struct guest *guest)
{
	struct torch_pending pending;

	if (!python_torch_is_observed(&guest->torch) || !enter(guest))
		return;
	torch_calls_begin(&guest->python, &pending);
	end_window(guest);
	torch_calls_end(&guest->python, &pending);
	leave(guest);
}

void python_torch_cancel(struct guest *guest)
{
	if (python_torch_is_on(&guest->torch))
		guest->torch.is_cancelled = 1;
	__atomic_store_n(&guest->page->torch.window, 0, __ATOMIC_RELEASE);
}

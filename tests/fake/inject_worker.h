/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* One thread of the self-checking program: makes one kind of call again and again, and judges it.
 */
#ifndef INJECT_WORKER_H
#define INJECT_WORKER_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "inject_call.h"

/* What the kernel does with such a call after a short stop. */
enum restart {
	RESTART_SA,	 /* continues; after a handler only with SA_RESTART */
	RESTART_NO_HAND, /* continues, but not after a handler */
	RESTART_FINAL,	 /* always EINTR */
};

/* How exact the call's end is in time. */
enum timing {
	TIMING_NONE,
	TIMING_EXACT,
	TIMING_LATE,  /* a stop may start it again, so being late is no error */
	TIMING_JIFFY, /* as TIMING_LATE, and counted in jiffies */
};

struct worker;

struct kind {
	const char *name; /* at most 15 characters */
	enum restart restart;
	enum timing timing;
	unsigned int stack;		   /* bytes of its fibre; 0: on the thread's own */
	bool alternate;			   /* the stack is the signal stack as well */
	bool (*set_up)(struct worker *w);  /* false: errno */
	void (*prepare)(struct worker *w); /* w->in, w->timeout_ns */
	void (*check)(struct worker *w, long result);
	void (*plain)(struct worker *w); /* instead of these two: the call through libc */
	bool (*feed)(struct worker *w);	 /* makes the call return; false: not now */
};

struct worker {
	struct call in, out;
	const struct kind *kind;
	struct target *target;
	char name[16];
	pthread_t thread;
	_Atomic pid_t tid;
	uint64_t random;
	/* The call. */
	int fds[4];
	uint64_t timeout_ns, due_ns;
	union {
		struct timespec time;
		uint64_t words[64];
	} buffer;
	struct timespec until;
	uint64_t set[2];
	pid_t child;
	sem_t semaphore;
	pthread_mutex_t mutex;
	pthread_cond_t condition;
	_Atomic uint32_t word;
	/* Signals. */
	int signal; /* number of the signal that it takes; 0: none */
	bool sa_restart;
	volatile sig_atomic_t in_call, handler_saw_eintr, handler_in_stub;
	_Atomic uint64_t signals_sent, signals_handled;
	/* Bookkeeping. */
	void *fibre;
	int schedstat;
	_Atomic uint64_t loops, sent, received, eintr, eintr_stray, eintr_lost, late_max_ns, errors;
	_Atomic uint64_t loops_seen; /* by main */
	unsigned int still;
	bool told;
	uint64_t delay_ns; /* measured by main: time waiting for a CPU, including its child */
	const char *what;  /* the first error, and its figures */
	uint64_t got, want;
};

#define WORKERS_MAX 64

struct target {
	struct worker *workers[WORKERS_MAX];
	size_t count;
	enum call_width width;
	uint64_t late_limit_ns;
	bool broadcasts; /* setresuid() is used: its signal causes EINTR */
	bool stray_epoll;
	bool is_light;
	_Atomic bool stopping;
	_Atomic uint64_t progress_ns; /* when any thread last returned from a call */
	_Atomic uint64_t stall_ns;    /* total of the times in which no thread did */
};

/* The worker of the current thread, for signal handlers. */
static __thread struct worker *self;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
}

/* Formats nothing: some threads have 4 KiB of stack. */
static void complain(struct worker *w, const char *what, uint64_t got, uint64_t want)
{
	if (atomic_fetch_add(&w->errors, 1))
		return;
	w->got = got;
	w->want = want;
	__atomic_store_n(&w->what, what, __ATOMIC_RELEASE);
}

static void expect(struct worker *w, const char *what, uint64_t got, uint64_t want)
{
	if (got != want)
		complain(w, what, got, want);
}

static uint64_t random_below(struct worker *w, uint64_t limit)
{
	return next_random(&w->random) % limit;
}

/* Sometimes a long one: starting it again delays it by more than a busy machine does. */
static uint64_t pick_timeout_ns(struct worker *w)
{
	if (!w->signal && !w->target->is_light && random_below(w, 16) == 0)
		return 900000000;
	return 1000000 * (1 + random_below(w, 20));
}

static void set_call(struct worker *w, long nr, uint64_t a, uint64_t b, uint64_t c)
{
	w->in.rax = (uint64_t)nr;
	w->in.args[0] = a;
	w->in.args[1] = b;
	w->in.args[2] = c;
}

/* Time in ns that the thread was ready and had no CPU, which is not caused by the stop. */
static uint64_t waited_for_cpu_ns(struct worker *w)
{
	char text[64];
	ssize_t size = w->schedstat < 0 ? -1 : pread(w->schedstat, text, sizeof(text) - 1, 0);
	char *space;

	if (size <= 0)
		return 0;
	text[size] = '\0';
	space = strchr(text, ' ');
	return space ? strtoull(space, NULL, 10) : 0;
}

/*
 * With so many threads, some call returns all the time. If none returns for 20 ms, the machine or
 * the whole process stood still, and no thread counts as late. Two threads may count the same
 * stall.
 */
static uint64_t stall_ns(struct target *target)
{
	uint64_t now = now_ns(), before = target->progress_ns;

	if (before && now > before + 20000000)
		atomic_fetch_add(&target->stall_ns, now - before);
	if (now > before)
		target->progress_ns = now;
	return target->stall_ns;
}

/* Total time in ns that was not caused by a stop of the thread. */
static uint64_t excused_ns(struct worker *w)
{
	return waited_for_cpu_ns(w) + stall_ns(w->target);
}

/*
 * The clock by which the kernel starts such a time-out. Jiffies stand still while the CPU that
 * counts them gets no time from its host, and catch up later, so such a time-out comes early by
 * that time. The coarse clock stands still together with jiffies.
 */
static uint64_t begin_ns(const struct kind *kind)
{
	return kind->timing == TIMING_JIFFY ? clock_ns(CLOCK_MONOTONIC_COARSE) : now_ns();
}

static void judge_time(struct worker *w, uint64_t end_ns, uint64_t excuse_ns)
{
	/*
	 * The jiffy that is running when the call begins counts as a whole one, which is at most 10
	 * ms.
	 */
	uint64_t early_ns = w->kind->timing == TIMING_JIFFY ? 10000000 : 0, late_ns;

	if (end_ns + early_ns < w->due_ns) {
		complain(w, "early, ns", w->due_ns - end_ns, 0);
		return;
	}
	late_ns = end_ns > w->due_ns + excuse_ns ? end_ns - w->due_ns - excuse_ns : 0;
	if (late_ns > atomic_load(&w->late_max_ns))
		atomic_store(&w->late_max_ns, late_ns);
	if (w->kind->timing == TIMING_EXACT && late_ns > w->target->late_limit_ns)
		complain(w, "late, ns", late_ns, w->target->late_limit_ns);
}

/*
 * Each EINTR must come from a handler during the call, and each handler must cause one or is
 * counted.
 */
static void judge_eintr(struct worker *w, bool is_eintr)
{
	bool broadcast = w->target->broadcasts && w->kind->restart != RESTART_SA;

	if (!is_eintr) {
		if (w->handler_saw_eintr)
			complain(w, "no EINTR after a handler", 0, 0);
		else if (w->handler_in_stub && !w->target->broadcasts)
			atomic_fetch_add(&w->eintr_lost, 1);
	} else if (w->handler_saw_eintr || w->handler_in_stub || broadcast) {
		atomic_fetch_add(&w->eintr, 1);
	} else {
		atomic_fetch_add(&w->eintr_stray, 1);
		if (!w->target->stray_epoll || w->kind->restart != RESTART_FINAL)
			complain(w, "EINTR without a handler", w->in.rax, 0);
	}
}

static void raw_call(struct worker *w)
{
	int mark = (int)random_below(w, 1000) + 1000, after;
	uint64_t excuse_ns, end_ns, got, want;
	const char *changed;
	long result;

	call_fill(&w->in, &w->out, w->target->width, &w->random);
	w->timeout_ns = 0;
	w->due_ns = 0;
	excuse_ns = excused_ns(w);
	w->kind->prepare(w);
	if (!w->due_ns)
		w->due_ns = begin_ns(w->kind) + w->timeout_ns;
	errno = mark;
	w->handler_saw_eintr = 0;
	w->handler_in_stub = 0;
	w->in_call = 1;
	atomic_signal_fence(memory_order_seq_cst);
	inject_call(&w->in, &w->out);
	atomic_signal_fence(memory_order_seq_cst);
	w->in_call = 0;
	after = errno;
	end_ns = now_ns();
	excuse_ns = excused_ns(w) - excuse_ns;
	result = (long)w->out.rax;
	changed = call_compare(&w->in, &w->out, &got, &want);
	if (changed)
		complain(w, changed, got, want);
	expect(w, "errno", (uint64_t)after, (uint64_t)mark);
	judge_eintr(w, result == -EINTR);
	if (result == -EINTR)
		return;
	w->kind->check(w, result);
	if (w->kind->timing != TIMING_NONE)
		judge_time(w, end_ns, excuse_ns);
}

/* Judges a call through libc. */
static void judge_plain(struct worker *w, int error, uint64_t due_ns, uint64_t excuse_ns)
{
	uint64_t end_ns = now_ns();

	w->due_ns = due_ns;
	excuse_ns = excused_ns(w) - excuse_ns;
	if (error == EINTR) {
		judge_eintr(w, true);
		return;
	}
	expect(w, "result", (uint64_t)error, ETIMEDOUT);
	judge_time(w, end_ns, excuse_ns);
}

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The embedded engine's calls: made through syscall(2), each counted where it is made. */
#ifndef FBT_TESTS_ENGINE_CALLS_H
#define FBT_TESTS_ENGINE_CALLS_H

#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { CAT_MMAP, CAT_FUTEX, CAT_IOCTL, CAT_READ, CAT_WRITE, CAT_OTHER, CATS };
enum { MAX_NR = 512, MAX_THREADS = 64, MAX_SPANS = 100000, TEXT_BYTES = 64 << 20 };

static const char *const cat_names[CATS] = {"mmap", "futex", "ioctl", "read", "write", "other"};

static const struct {
	long nr;
	int cat;
	const char *name;
} known[] = {
	{SYS_mmap, CAT_MMAP, "mmap"},
	{SYS_munmap, CAT_MMAP, "munmap"},
	{SYS_mprotect, CAT_MMAP, "mprotect"},
	{SYS_brk, CAT_MMAP, "brk"},
	{SYS_futex, CAT_FUTEX, "futex"},
	{SYS_ioctl, CAT_IOCTL, "ioctl"},
	{SYS_read, CAT_READ, "read"},
	{SYS_pread64, CAT_READ, "pread64"},
	{SYS_readv, CAT_READ, "readv"},
	{SYS_write, CAT_WRITE, "write"},
	{SYS_pwrite64, CAT_WRITE, "pwrite64"},
	{SYS_writev, CAT_WRITE, "writev"},
	{SYS_getppid, CAT_OTHER, "getppid"},
	{SYS_getuid, CAT_OTHER, "getuid"},
	{SYS_close, CAT_OTHER, "close"},
	{SYS_nanosleep, CAT_OTHER, "nanosleep"},
	{SYS_clone, CAT_OTHER, "clone"},
	{SYS_wait4, CAT_OTHER, "wait4"},
	{SYS_openat, CAT_OTHER, "openat"},
	{SYS_execve, CAT_OTHER, "execve"},
	{SYS_rt_sigreturn, CAT_OTHER, "rt_sigreturn"},
	{SYS_lseek, CAT_OTHER, "lseek"},
	{SYS_ftruncate, CAT_OTHER, "ftruncate"},
	{SYS_madvise, CAT_OTHER, "madvise"},
	{SYS_timer_settime, CAT_OTHER, "timer_settime"},
};

struct config {
	long steps, sleep_us, compute_us, step_threads, noise, noise_us, recurse, panic_every;
	long fork_every, short_threads, short_calls, slow_every, slow_us, late_ms;
	long trouble_every, trouble_us, mixed_us;
	bool exec, exec_thread, blocked, wait, steady;
	const char *late, *truth, *trouble, *file;
	char truth_before_exec[4096];
	long calls[CATS], errors[CATS];
};

struct batch {
	int32_t n_tokens; /* see set_batch */
	int32_t unused;
	int64_t n_tokens_wide;
};

struct engine;
struct trouble;
typedef void body_fn(void *arg);

struct worker {
	struct engine *engine;
	void (*run)(struct worker *w);
	const char *role;
	pthread_t thread;
	int state; /* 0 new, 1 waits for the go, 2 at work, 3 done: its counts are final */
	int tid;
	bool in_step, panic_now, slow_now;
	const struct trouble *trouble; /* of this step */
	long compute_us;
	jmp_buf unwound;
	struct batch batch;
	uint64_t steps, panics, slow, troubled, children, n_tokens;
	uint64_t calls[MAX_NR], errors[MAX_NR];
	uint64_t step_calls[CATS], step_errors[CATS];
	/*
	 * For the first MAX_SPANS steps: begin and length (CLOCK_MONOTONIC ns), work (us),
	 * taken_ns, and with --steady for how long they waited for a CPU and were on one, by the
	 * kernel's count.
	 */
	uint64_t (*spans)[6];
	int schedstat;	   /* of the thread; -1: nobody asks */
	uint64_t taken_ns; /* of this step: what the machine took of its trouble; see is_row_over */
};

struct engine {
	struct config config;
	int devnull, devzero, pipe[2];
	int go, done, stop_noise, sink; /* the first three are futex words */
	double spins_per_us;
	bool exact;
	void (*late_step)(body_fn *body, void *arg);
	const struct trouble *trouble; /* NULL: none */
	struct worker *helper;
	int asked, helping, lock; /* futex words */
	int file, trouble_pipe[2], timer;
	char *block, *fresh;
	long touched; /* bytes of fresh */
	uint32_t random;
	char **next_argv; /* of the program after --exec */
	char *text;	  /* the truth, TEXT_BYTES reserved before the go */
	size_t text_len;
	int n_workers;
	struct worker workers[MAX_THREADS];
};

static inline int category_of(long nr)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].nr == nr)
			return known[i].cat;
	return CAT_OTHER;
}

static inline long call(struct worker *w, long nr, long a, long b, long c, long d)
{
	long ret = syscall(nr, a, b, c, d, -1L, 0L);

	w->calls[nr]++;
	w->errors[nr] += ret == -1;
	if (w->in_step) {
		w->step_calls[category_of(nr)]++;
		w->step_errors[category_of(nr)] += ret == -1;
	}
	return ret;
}

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts); /* the vDSO answers: no syscall */
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline void sleep_us(struct worker *w, long us)
{
	struct timespec ts = {us / 1000000, us % 1000000 * 1000};

	call(w, SYS_nanosleep, (long)&ts, 0, 0, 0);
}

static inline void spin(long count)
{
	for (long i = 0; i < count; i++)
		__asm__ volatile("" ::: "memory");
}

/*
 * Computes for that long on a CPU, whatever the CPU's speed. In pieces that take longer, the thread
 * had no CPU.
 */
static inline void spin_by_clock(struct worker *w, long us)
{
	const long piece = (long)(w->engine->spins_per_us * 4) + 1;
	uint64_t last = now_ns(), now;
	int64_t left_ns = us * 1000;

	while (left_ns > 0) {
		spin(piece);
		now = now_ns();
		left_ns -= now - last < 40000 ? (int64_t)(now - last) : 4000;
		last = now;
	}
}

static inline void compute(struct worker *w)
{
	if (w->engine->config.steady)
		spin_by_clock(w, w->compute_us);
	else
		spin((long)((double)w->compute_us * w->engine->spins_per_us));
}

static inline void calibrate(struct engine *e)
{
	const long spins = 1000000;
	uint64_t best = UINT64_MAX, begin, took;

	for (int i = 0; i < 5; i++) {
		begin = now_ns();
		spin(spins);
		took = now_ns() - begin;
		best = took < best ? took : best;
	}
	e->spins_per_us = (double)spins * 1000.0 / (double)best;
}

static inline void make_mmap_calls(struct worker *w, long n)
{
	const long rw = PROT_READ | PROT_WRITE;
	long page;

	for (; n >= 4; n -= 4) {
		page = call(w, SYS_mmap, 0, 4096, rw, MAP_PRIVATE | MAP_ANONYMOUS);
		call(w, SYS_mprotect, page, 4096, PROT_READ, 0);
		call(w, SYS_munmap, page, 4096, 0, 0);
		call(w, SYS_brk, 0, 0, 0, 0);
	}
	for (; n > 0; n--)
		call(w, SYS_brk, 0, 0, 0, 0);
}

static inline void make_io_calls(struct worker *w, long n, bool out)
{
	char bytes[64] = "";
	struct iovec vec = {bytes, sizeof(bytes)};
	int fd = out ? w->engine->devnull : w->engine->devzero;

	for (long i = 0; i < n; i++) {
		if (i % 3 == 0)
			call(w, out ? SYS_write : SYS_read, fd, (long)bytes, sizeof(bytes), 0);
		else if (i % 3 == 1)
			call(w, out ? SYS_pwrite64 : SYS_pread64, fd, (long)bytes, 8, 0);
		else
			call(w, out ? SYS_writev : SYS_readv, fd, (long)&vec, 1, 0);
	}
}

/* n calls of one category, the last n_bad of which fail with a known errno. */
static inline void make_calls(struct worker *w, int cat, long n, long n_bad)
{
	struct engine *e = w->engine;
	int word = 0, pending;

	if (cat == CAT_MMAP)
		make_mmap_calls(w, n - n_bad);
	else if (cat == CAT_READ || cat == CAT_WRITE)
		make_io_calls(w, n - n_bad, cat == CAT_WRITE);
	for (long i = 0; i < n - n_bad; i++) {
		if (cat == CAT_FUTEX)
			call(w, SYS_futex, (long)&word, FUTEX_WAKE_PRIVATE, 1, 0);
		else if (cat == CAT_IOCTL)
			call(w, SYS_ioctl, e->pipe[0], FIONREAD, (long)&pending, 0);
		else if (cat == CAT_OTHER)
			call(w, i % 2 ? SYS_getuid : SYS_getppid, 0, 0, 0, 0);
	}
	for (long i = 0; i < n_bad; i++) {
		switch (cat) {
		case CAT_MMAP:
			call(w, SYS_munmap, 1, 4096, 0, 0);
			break; /* EINVAL */
		case CAT_FUTEX:
			call(w, SYS_futex, (long)&word, FUTEX_WAIT_PRIVATE, 1, 0);
			break;
		case CAT_IOCTL:
			call(w, SYS_ioctl, e->devnull, TCGETS, 0, 0);
			break; /* ENOTTY */
		case CAT_READ:
			call(w, SYS_read, -1, 0, 0, 0);
			break; /* EBADF */
		case CAT_WRITE:
			call(w, SYS_write, -1, 0, 0, 0);
			break; /* EBADF */
		default:
			call(w, SYS_close, -1, 0, 0, 0);
			break; /* EBADF */
		}
	}
}

static inline void make_categories(struct worker *w, int from, int to)
{
	const struct config *c = &w->engine->config;

	for (int cat = from; cat < to; cat++)
		make_calls(w, cat, c->calls[cat], c->errors[cat]);
}

#endif

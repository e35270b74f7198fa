/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The ways in which the embedded engine's steps are slow on demand (--trouble). A kind has up to
 * four parts: before the step, in it, after it, and the work of a helper thread. Calls that only
 * prepare or clean up are made outside of the step, so that the step contains nothing but its
 * trouble.
 */
#ifndef FBT_TESTS_ENGINE_TROUBLE_H
#define FBT_TESTS_ENGINE_TROUBLE_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include "engine_calls.h"
#include "engine_hidden.h"

enum { MAPPED_BYTES = 2 << 20, BLOCK_BYTES = 1 << 20, FILE_BLOCKS = 4, PIPE_BYTES = 1 << 20 };
enum { CALLS_A_LOOK = 16, LOOK_MOST_NS = 500000, LOOK_US = 200 };
/*
 * The request that CUDA sends to the control device of NVIDIA's driver. /dev/null answers ENOTTY.
 */
#define TROUBLE_IOCTL 0xc020462aL

struct trouble {
	const char *name;
	bool inexact;			 /* libc makes calls, or their number cannot be known */
	bool with_file;			 /* needs --file */
	bool sleeps;			 /* the step is not on a CPU in all of it */
	int (*set_up)(struct engine *e); /* before there are threads, and with them: */
	int (*start)(struct engine *e);
	void (*before)(struct worker *w);
	void (*in_step)(struct worker *w);
	void (*after)(struct worker *w);
	void (*help)(struct worker *helper);
};

/*
 * A mutex with three states (0 free, 1 held, 2 held and waited for), like libc's, but its calls are
 * counted.
 */
static inline void take_lock(struct worker *w)
{
	int *lock = &w->engine->lock;
	int expected = 0;

	if (__atomic_compare_exchange_n(lock, &expected, 1, false, __ATOMIC_ACQUIRE,
					__ATOMIC_RELAXED))
		return;
	while (__atomic_exchange_n(lock, 2, __ATOMIC_ACQUIRE) != 0)
		call(w, SYS_futex, (long)lock, FUTEX_WAIT_PRIVATE, 2, 0);
}

static inline void release_lock(struct worker *w)
{
	int *lock = &w->engine->lock;

	if (__atomic_exchange_n(lock, 0, __ATOMIC_RELEASE) == 2)
		call(w, SYS_futex, (long)lock, FUTEX_WAKE_PRIVATE, 1, 0);
}

/* The helper holds the lock for the whole time, from when the step waits for it. */
static inline void hold_lock(struct worker *helper)
{
	struct engine *e = helper->engine;
	int *helping = &e->helping;

	take_lock(helper);
	__atomic_store_n(helping, 1, __ATOMIC_RELEASE);
	call(helper, SYS_futex, (long)helping, FUTEX_WAKE_PRIVATE, 1, 0);
	while (__atomic_load_n(&e->lock, __ATOMIC_ACQUIRE) != 2 &&
	       !__atomic_load_n(&e->stop_noise, __ATOMIC_ACQUIRE))
		sleep_us(helper, LOOK_US);
	sleep_us(helper, e->config.trouble_us);
	release_lock(helper);
}

static inline void await_held_lock(struct worker *w)
{
	int *helping = &w->engine->helping;

	ask_helper(w);
	while (!__atomic_load_n(helping, __ATOMIC_ACQUIRE))
		call(w, SYS_futex, (long)helping, FUTEX_WAIT_PRIVATE, 0, 0);
}

static inline void wait_for_lock(struct worker *w)
{
	take_lock(w);
	release_lock(w);
}

static inline void map_and_unmap(struct worker *w)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
	const uint64_t begin = now_ns();
	long block;

	while (!is_over(begin, w->engine)) {
		block = call(w, SYS_mmap, 0, MAPPED_BYTES, PROT_READ | PROT_WRITE, flags);
		if (block == -1)
			return;
		for (long at = 0; at < MAPPED_BYTES; at += PAGE_BYTES)
			((volatile char *)block)[at] = 1;
		call(w, SYS_munmap, block, MAPPED_BYTES, 0, 0);
	}
}

static inline int open_file(struct engine *e)
{
	const int flags = O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC;

	e->file = open(e->config.file, flags, 0644);
	e->block = calloc(1, BLOCK_BYTES);
	if (e->file < 0 || !e->block)
		return -errno;
	for (int i = 0; i < FILE_BLOCKS; i++)
		if (write(e->file, e->block, BLOCK_BYTES) != BLOCK_BYTES)
			return -EIO;
	return lseek(e->file, 0, SEEK_SET) < 0 ? -errno : 0;
}

/*
 * Whether a row of tiny calls has lasted long enough. CALLS_A_LOOK of them take microseconds. If
 * they take far longer, the host of the virtual machine, or an interrupt, had the CPU: the rest of
 * the step is less trouble than --trouble-us says.
 */
static inline bool is_row_over(struct worker *w, uint64_t begin, uint64_t *last_ns)
{
	uint64_t time_ns = now_ns();

	if (time_ns - *last_ns > LOOK_MOST_NS)
		w->taken_ns += time_ns - *last_ns;
	*last_ns = time_ns;
	return is_over(begin, w->engine);
}

static inline void write_often(struct worker *w)
{
	const uint64_t begin = now_ns();
	uint64_t last_ns = begin;

	while (!is_row_over(w, begin, &last_ns))
		for (int i = 0; i < CALLS_A_LOOK; i++)
			call(w, SYS_write, w->engine->file, (long)"tinytiny", 8, 0);
}

static inline void empty_file(struct worker *w)
{
	call(w, SYS_lseek, w->engine->file, 0, SEEK_SET, 0);
	call(w, SYS_ftruncate, w->engine->file, 0, 0, 0);
}

static inline void write_much(struct worker *w)
{
	struct engine *e = w->engine;
	const uint64_t begin = now_ns();

	while (!is_over(begin, e))
		call(w, SYS_pwrite64, e->file, (long)e->block, BLOCK_BYTES, 0);
}

static inline void read_file(struct worker *w)
{
	struct engine *e = w->engine;
	const uint64_t begin = now_ns();
	long fd;

	while (!is_over(begin, e)) {
		fd = call(w, SYS_openat, AT_FDCWD, (long)e->config.file, O_RDONLY | O_CLOEXEC, 0);
		while (call(w, SYS_read, fd, (long)e->block, BLOCK_BYTES, 0) > 0)
			;
		call(w, SYS_close, fd, 0, 0, 0);
	}
}

static inline int open_pipe(struct engine *e)
{
	e->block = calloc(1, BLOCK_BYTES);
	if (!e->block || pipe2(e->trouble_pipe, O_CLOEXEC | O_NONBLOCK) < 0 ||
	    fcntl(e->trouble_pipe[1], F_SETPIPE_SZ, PIPE_BYTES) < 0)
		return -errno;
	return 0;
}

static inline void write_to_pipe(struct worker *w)
{
	const uint64_t begin = now_ns();
	uint64_t last_ns = begin;
	long written = 8;

	while (written == 8 && !is_row_over(w, begin, &last_ns))
		for (int i = 0; i < CALLS_A_LOOK && written == 8; i++)
			written = call(w, SYS_write, w->engine->trouble_pipe[1], (long)"tinytiny",
				       8, 0);
}

static inline void drain_pipe(struct worker *w)
{
	struct engine *e = w->engine;

	while (call(w, SYS_read, e->trouble_pipe[0], (long)e->block, BLOCK_BYTES, 0) > 0)
		;
}

static inline void ask_driver(struct worker *w)
{
	const uint64_t begin = now_ns();
	uint64_t last_ns = begin;

	while (!is_row_over(w, begin, &last_ns))
		for (int i = 0; i < CALLS_A_LOOK; i++)
			call(w, SYS_ioctl, w->engine->devnull, TROUBLE_IOCTL, 0, 0);
}

static inline void *return_at_once(void *arg)
{
	return arg;
}

static inline void make_threads(struct worker *w)
{
	const uint64_t begin = now_ns();
	pthread_t thread;

	while (!is_over(begin, w->engine))
		if (pthread_create(&thread, NULL, return_at_once, NULL) == 0)
			pthread_join(thread, NULL);
}

static inline void make_processes(struct worker *w)
{
	const uint64_t begin = now_ns();
	long pid;

	while (!is_over(begin, w->engine)) {
		pid = call(w, SYS_clone, SIGCHLD, 0, 0, 0);
		if (pid == 0)
			syscall(SYS_exit_group, 0);
		call(w, SYS_wait4, pid, 0, 0, 0);
	}
}

static inline void sleep_in_step(struct worker *w)
{
	sleep_us(w, w->engine->config.trouble_us);
}

static const struct trouble troubles[] = {
	{.name = "lock",
	 .sleeps = true,
	 .before = await_held_lock,
	 .in_step = wait_for_lock,
	 .help = hold_lock},
	{.name = "mmap", .in_step = map_and_unmap},
	{.name = "write",
	 .with_file = true,
	 .set_up = open_file,
	 .in_step = write_often,
	 .after = empty_file},
	{.name = "bigwrite", .with_file = true, .set_up = open_file, .in_step = write_much},
	{.name = "fileread", .with_file = true, .set_up = open_file, .in_step = read_file},
	{.name = "pipe", .set_up = open_pipe, .in_step = write_to_pipe, .after = drain_pipe},
	{.name = "ioctl", .in_step = ask_driver},
	{.name = "threads", .inexact = true, .sleeps = true, .in_step = make_threads},
	{.name = "processes", .sleeps = true, .in_step = make_processes},
	{.name = "sleep", .sleeps = true, .in_step = sleep_in_step},
	{.name = "signals", .inexact = true, .set_up = create_timer, .in_step = bear_storm},
	{.name = "runqueue",
	 .start = share_cpu,
	 .before = ask_helper,
	 .in_step = say_begun,
	 .help = take_cpu},
	{.name = "faults",
	 .set_up = reserve_pages,
	 .in_step = touch_pages,
	 .after = give_pages_back},
	{.name = "compute", .in_step = compute_more},
};

static inline const struct trouble *find_trouble(const char *name)
{
	for (size_t i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++)
		if (strcmp(troubles[i].name, name) == 0)
			return &troubles[i];
	return NULL;
}

static inline int set_up_trouble(struct engine *e)
{
	e->random = 1;
	if (!e->config.trouble)
		return 0;
	e->trouble = find_trouble(e->config.trouble);
	if (!e->trouble || (e->trouble->with_file && !e->config.file))
		return -EINVAL;
	return e->trouble->set_up ? e->trouble->set_up(e) : 0;
}

static inline void run_helper(struct worker *w)
{
	struct engine *e = w->engine;
	int seen = 0, asked;

	while (!__atomic_load_n(&e->stop_noise, __ATOMIC_ACQUIRE)) {
		asked = __atomic_load_n(&e->asked, __ATOMIC_ACQUIRE);
		if (asked == seen) {
			call(w, SYS_futex, (long)&e->asked, FUTEX_WAIT_PRIVATE, seen, 0);
			continue;
		}
		seen = asked;
		e->trouble->help(w);
	}
}

#endif

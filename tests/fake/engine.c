/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * An engine whose every system call is known. It makes its calls by syscall(2), so that libc adds
 * none, and counts each one where it makes it. At the end it writes the counts as JSON (--truth).
 * From the go (--wait) until exit_group the counts are those of the whole process, unless "exact"
 * is false: then libc or the dynamic loader has made calls too.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "engine_background.h"
#include "engine_batch.h"
#include "engine_calls.h"
#include "engine_options.h"
#include "engine_trouble.h"
#include "engine_truth.h"

#if __has_attribute(noipa)
#define EXPORTED __attribute__((noipa, used))
#else
#define EXPORTED __attribute__((noinline, used))
#endif

/* The signal handler writes this variable, since it has no other way to reach the threads. */
static volatile sig_atomic_t signals_seen;

long engine_step(struct worker *w, const struct batch *batch, long depth);

/*
 * The step. A panic leaves it in the middle of the innermost call, when every level has made its
 * mmap, futex and ioctl calls only.
 */
EXPORTED long engine_step(struct worker *w, const struct batch *batch, long depth)
{
	struct engine *e = w->engine;
	struct timespec slow = {e->config.slow_us / 1000000, e->config.slow_us % 1000000 * 1000};
	int word = 0;

	make_categories(w, CAT_MMAP, CAT_READ);
	if (depth > 0)
		engine_step(w, batch, depth - 1);
	else if (w->panic_now)
		longjmp(w->unwound, 1);
	else if (w->slow_now) /* ETIMEDOUT */
		call(w, SYS_futex, (long)&word, FUTEX_WAIT_PRIVATE, 0, (long)&slow);
	else if (w->trouble && w->trouble->in_step)
		w->trouble->in_step(w);
	compute(w);
	make_categories(w, CAT_READ, CATS);
	return batch->n_tokens;
}

static void call_engine_step(void *arg)
{
	struct worker *w = arg;

	engine_step(w, &w->batch, w->engine->config.recurse);
}

/* The body of a late step: the same calls once, without recursion, panics and slow waits. */
static void run_late_body(void *arg)
{
	make_categories(arg, CAT_MMAP, CATS);
}

static bool is_due(long every, uint64_t n)
{
	return every > 0 && n % (uint64_t)every == 0;
}

/* How long the thread has waited for a CPU, and been on one. */
struct times {
	uint64_t delay_ns;
	uint64_t cpu_ns;
};

static struct times times_of(struct worker *w)
{
	char text[64] = "", *at;
	struct timespec cpu = {0};

	if (w->schedstat < 0)
		return (struct times){0};
	call(w, SYS_pread64, w->schedstat, (long)text, sizeof(text) - 1, 0);
	call(w, SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long)&cpu, 0, 0);
	strtoull(text, &at, 10);
	return (struct times){strtoull(at, NULL, 10),
			      (uint64_t)cpu.tv_sec * 1000000000 + (uint64_t)cpu.tv_nsec};
}

static void run_one_step(struct worker *w)
{
	struct engine *e = w->engine;
	struct times before, after;
	uint64_t begin;

	w->steps++;
	w->panic_now = !e->late_step && is_due(e->config.panic_every, w->steps);
	w->slow_now = !e->late_step && !w->panic_now && is_due(e->config.slow_every, w->steps);
	w->trouble = is_due(e->config.trouble_every, w->steps) ? e->trouble : NULL;
	w->taken_ns = 0;
	w->panics += w->panic_now;
	w->slow += w->slow_now;
	w->troubled += w->trouble != NULL;
	set_batch(w);
	if (w->trouble && w->trouble->before)
		w->trouble->before(w);
	before = times_of(w);
	begin = now_ns();
	w->in_step = true;
	if (!setjmp(w->unwound)) {
		if (e->late_step)
			e->late_step(run_late_body, w);
		else
			call_engine_step(w);
	}
	w->in_step = false;
	if (w->steps <= MAX_SPANS) {
		w->spans[w->steps - 1][0] = begin;
		w->spans[w->steps - 1][1] = now_ns() - begin;
		w->spans[w->steps - 1][2] = (uint64_t)w->compute_us;
		w->spans[w->steps - 1][3] = w->taken_ns;
		after = times_of(w);
		w->spans[w->steps - 1][4] = after.delay_ns - before.delay_ns;
		/* Not known where the step sleeps. */
		if (!w->trouble || !w->trouble->sleeps)
			w->spans[w->steps - 1][5] = after.cpu_ns - before.cpu_ns;
	}
	if (w->trouble && w->trouble->after)
		w->trouble->after(w);
}

/* The child makes one step and ends; what it counts stays in its own copy of the memory. */
static void run_child(struct worker *w)
{
	long pid = call(w, SYS_clone, SIGCHLD, 0, 0, 0);

	if (pid == 0) {
		w->panic_now = w->slow_now = false;
		w->trouble = NULL;
		call_engine_step(w);
		syscall(SYS_exit_group, 0);
	}
	call(w, SYS_wait4, pid, 0, 0, 0);
	w->children++;
}

static void run_steps(struct worker *w)
{
	const struct config *c = &w->engine->config;

	while (!signals_seen && (c->steps == 0 || w->steps < (uint64_t)c->steps)) {
		if (w->steps > 0 && c->sleep_us > 0)
			sleep_us(w, c->sleep_us);
		run_one_step(w);
		if (is_due(c->fork_every, w->steps))
			run_child(w);
	}
}

/* Never returns, so that libc makes no calls at the thread's end. The wait is not counted. */
static void park(int *word)
{
	for (;;)
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, NULL);
}

static void wait_for(struct worker *w, int *word, int value)
{
	int seen;

	while ((seen = __atomic_load_n(word, __ATOMIC_ACQUIRE)) < value)
		call(w, SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, seen, 0);
}

static void *run_thread(void *arg)
{
	struct worker *w = arg;
	struct engine *e = w->engine;

	w->tid = (int)syscall(SYS_gettid);
	w->schedstat = e->config.steady
			       ? (int)syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/schedstat",
					      O_RDONLY | O_CLOEXEC)
			       : -1;
	__atomic_store_n(&w->state, 1, __ATOMIC_RELEASE);
	while (w->run != run_blocked && !__atomic_load_n(&e->go, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, &e->go, FUTEX_WAIT_PRIVATE, 0, NULL);
	w->run(w);
	if (w->run == run_steps) {
		__atomic_add_fetch(&e->done, 1, __ATOMIC_ACQ_REL);
		call(w, SYS_futex, (long)&e->done, FUTEX_WAKE_PRIVATE, INT32_MAX, 0);
	}
	__atomic_store_n(&w->state, 3, __ATOMIC_RELEASE);
	park(&e->sink);
	return NULL;
}

static void finish(struct worker *w)
{
	struct engine *e = w->engine;
	const struct config *c = &e->config;

	if (c->blocked)
		call(w, SYS_write, e->pipe[1], (long)"", 1, 0);
	__atomic_store_n(&e->stop_noise, 1, __ATOMIC_RELEASE);
	if (e->helper)
		ask_helper(w);
	for (int i = 0; i < e->n_workers; i++)
		while (&e->workers[i] != w &&
		       __atomic_load_n(&e->workers[i].state, __ATOMIC_ACQUIRE) < 3)
			spin(100);
	w->calls[SYS_rt_sigreturn] += (uint64_t)signals_seen;
	if (c->exec || c->exec_thread) {
		w->calls[SYS_execve]++;
		if (c->truth)
			write_truth(w, c->truth_before_exec);
		syscall(SYS_execve, "/proc/self/exe", e->next_argv, environ);
	}
	if (c->truth)
		write_truth(w, c->truth);
	syscall(SYS_exit_group, 0);
}

/* A thread that ends the process in place of the main thread: execve from a thread. */
static void run_finish(struct worker *w)
{
	wait_for(w, &w->engine->done, (int)w->engine->config.step_threads);
	finish(w);
}

static void on_signal(int signo)
{
	(void)signo;
	signals_seen = signals_seen + 1;
}

static struct worker *add_worker(struct engine *e, const char *role, void (*run)(struct worker *w))
{
	struct worker *w = &e->workers[e->n_workers];

	w->engine = e;
	w->role = role;
	w->run = run;
	if (run == run_steps) {
		w->spans = mmap(NULL, MAX_SPANS * sizeof(*w->spans), PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (w->spans == MAP_FAILED)
			return NULL;
	}
	if (e->n_workers > 0 && pthread_create(&w->thread, NULL, run_thread, w) != 0)
		return NULL;
	e->n_workers++;
	return w;
}

static int add_workers(struct engine *e)
{
	const struct config *c = &e->config;
	bool ok = true;

	for (long i = 0; c->step_threads > 1 && i < c->step_threads; i++)
		ok = ok && add_worker(e, "step", run_steps);
	for (long i = 0; i < c->noise; i++)
		ok = ok && add_worker(e, "noise", run_noise);
	if (c->blocked)
		ok = ok && add_worker(e, "blocked", run_blocked);
	if (c->exec_thread)
		ok = ok && add_worker(e, "exec", run_finish);
	if (e->trouble && e->trouble->help)
		ok = ok && (e->helper = add_worker(e, "helper", run_helper));
	return ok ? 0 : -EAGAIN;
}

/* Before the go, does everything for which libc makes system calls. */
static int set_up(struct engine *e, int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal};
	sigset_t signals;
	int n = 0, err;

	err = set_up_trouble(e);
	if (err)
		return err;
	e->next_argv = calloc((size_t)argc + 1, sizeof(*argv));
	e->devnull = open("/dev/null", O_RDWR | O_CLOEXEC);
	e->devzero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	e->text = mmap(NULL, TEXT_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!e->next_argv || e->devnull < 0 || e->devzero < 0 || e->text == MAP_FAILED ||
	    pipe(e->pipe) < 0)
		return -errno;
	for (int i = 0; i < argc; i++)
		if (strncmp(argv[i], "--exec", 6) != 0 && strcmp(argv[i], "--wait") != 0)
			e->next_argv[n++] = argv[i];
	calibrate(e);
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	e->workers[0].tid = getpid();
	if (!add_worker(e, e->config.step_threads > 1 ? "main" : "step", run_steps) ||
	    add_workers(e) < 0)
		return -EAGAIN;
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
	for (int i = 1; i < e->n_workers; i++)
		while (__atomic_load_n(&e->workers[i].state, __ATOMIC_ACQUIRE) == 0)
			spin(100);
	usleep(10000); /* time to get from "ready to wait" into the wait itself */
	return e->trouble && e->trouble->start ? e->trouble->start(e) : 0;
}

static void await_go(struct engine *e)
{
	char line[64];
	long n = snprintf(line, sizeof(line), "ready %d\n", e->workers[0].tid);

	syscall(SYS_write, STDOUT_FILENO, line, n);
	do {
		n = syscall(SYS_read, STDIN_FILENO, line, sizeof(line));
	} while (n > 0 && !memchr(line, '\n', (size_t)n));
}

static void load_late_step(struct worker *w)
{
	const struct config *c = &w->engine->config;
	void *library;

	if (c->late_ms > 0)
		sleep_us(w, c->late_ms * 1000);
	library = dlopen(c->late, RTLD_NOW);
	if (library)
		*(void **)&w->engine->late_step = dlsym(library, "late_step");
	if (!w->engine->late_step) {
		fprintf(stderr, "engine: %s\n", dlerror());
		syscall(SYS_exit_group, 1);
	}
}

static void run(struct engine *e)
{
	const struct config *c = &e->config;
	struct worker *w = &e->workers[0];

	e->exact = c->wait && !c->late && c->short_threads == 0 &&
		   !(e->trouble && e->trouble->inexact);
	if (c->wait)
		await_go(e);
	__atomic_store_n(&e->go, 1, __ATOMIC_RELEASE);
	if (e->n_workers > 1)
		call(w, SYS_futex, (long)&e->go, FUTEX_WAKE_PRIVATE, INT32_MAX, 0);
	if (c->late)
		load_late_step(w);
	run_short_threads(w);
	if (c->step_threads > 1)
		wait_for(w, &e->done, (int)c->step_threads);
	else
		run_steps(w);
	if (!c->exec_thread)
		finish(w);
	__atomic_store_n(&e->done, (int)c->step_threads, __ATOMIC_RELEASE);
	call(w, SYS_futex, (long)&e->done, FUTEX_WAKE_PRIVATE, INT32_MAX, 0);
	__atomic_store_n(&w->state, 3, __ATOMIC_RELEASE);
	park(&e->sink);
}

int main(int argc, char **argv)
{
	struct engine *e = calloc(1, sizeof(*e));
	int err;

	if (!e)
		return 1;
	e->config = (struct config){.steps = 100,
				    .sleep_us = 1000,
				    .step_threads = 1,
				    .slow_us = 20000,
				    .noise_us = 100,
				    .short_calls = 10,
				    .trouble_every = 20,
				    .trouble_us = 50000,
				    .calls = {5, 4, 3, 7, 6, 2},
				    .errors = {1, 2, 0, 3, 1, 1}};
	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		print_help();
		free(e);
		return 0;
	}
	if (parse_options(&e->config, argc, argv)) {
		free(e);
		fprintf(stderr, "engine: bad option, --help lists them\n");
		return 2;
	}
	err = set_up(e, argc, argv);
	if (err) {
		fprintf(stderr, "engine: %s\n", strerror(-err));
		return 1;
	}
	run(e);
	return 0;
}

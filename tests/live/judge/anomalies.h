/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Steps that are slow for a reason that lies outside of their own work. */
#ifndef FBT_TESTS_JUDGE_ANOMALIES_H
#define FBT_TESTS_JUDGE_ANOMALIES_H

#include <linux/random.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <poll.h>
#include "engine.h"

enum {
	HELD_US = 40000,
	CREW = 3,
	STOPPED_US = 300000,
	BUSY_US = 30000,
	STORM_NS = 80000,
	STORM_HANDLER_US = 60,
	STORM_SIGNALS = 300,
	PAGE_BYTES = 4096,
	COLD_BYTES = 64 << 20,
	FAULT_BYTES = 128 << 20,
	SOME_BYTES = 2 << 20,
	MAPPED_BYTES = 2 << 20,
	ASKED_BYTES = 16 << 10,
	LAYERS = 16,
	LAYER_US = 200,
};

static inline void *hold_lock(void *engine)
{
	struct engine *e = engine;

	for (;;) {
		sem_wait(&e->ask);
		pthread_mutex_lock(&e->lock);
		sem_post(&e->answer);
		pause_us(HELD_US);
		pthread_mutex_unlock(&e->lock);
	}
	return NULL;
}

/* The holder computes, as one that compacts a cache: a lock all the same. */
static inline void *compute_in_lock(void *engine)
{
	struct engine *e = engine;

	for (;;) {
		sem_wait(&e->ask);
		pthread_mutex_lock(&e->lock);
		sem_post(&e->answer);
		pause_us(1000); /* where threads go first, the step gets its CPU */
		work(HELD_US);
		pthread_mutex_unlock(&e->lock);
	}
	return NULL;
}

/*
 * Three threads meet at barriers before and after their work in each step; the step's thread is one
 * of them.
 */
static inline void make_crew(struct engine *e)
{
	must(!pthread_barrier_init(&e->start, NULL, CREW) &&
		     !pthread_barrier_init(&e->end, NULL, CREW),
	     "pthread_barrier_init");
	for (int i = 1; i < CREW; i++)
		start_helper(e);
}

static inline void meet_crew(struct engine *e, bool due)
{
	e->due = due;
	pthread_barrier_wait(&e->start);
	pthread_barrier_wait(&e->end);
}

/* When it is due, one of them comes late. */
static inline void *come_late(void *engine)
{
	struct engine *e = engine;
	bool is_first = __atomic_fetch_add(&e->crew, 1, __ATOMIC_RELAXED) == 0;

	for (;;) {
		pthread_barrier_wait(&e->start);
		if (is_first && e->due)
			pause_us(HELD_US);
		pthread_barrier_wait(&e->end);
	}
	return NULL;
}

static inline void take_lock(struct engine *e, bool due)
{
	(void)due;
	pthread_mutex_lock(&e->lock);
	pthread_mutex_unlock(&e->lock);
}

static inline void sleep_if_due(struct engine *e, bool due)
{
	(void)e;
	if (due)
		pause_us(BUSY_US);
}

static inline void hold_by_signal(const struct engine *e, pid_t thread, bool begin)
{
	(void)e;
	kill(thread, begin ? SIGSTOP : SIGCONT);
}

/* Stops as a debugger does, but one thread only. */
static inline void hold_by_tracing(const struct engine *e, pid_t thread, bool begin)
{
	int status;

	(void)e;
	if (!begin) {
		/* The engine may have ended meanwhile. */
		ptrace(PTRACE_DETACH, thread, NULL, NULL);
		return;
	}
	must(ptrace(PTRACE_SEIZE, thread, NULL, NULL) == 0 &&
		     ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) == 0,
	     "PTRACE_SEIZE");
	must(waitpid(thread, &status, __WALL) == thread, "waitpid");
}

static inline void write_in_cgroup(const struct engine *e, const char *name, const char *text)
{
	char path[4096];
	int file;

	snprintf(path, sizeof(path), "%s/%s", e->cgroup, name);
	file = open(path, O_WRONLY | O_CLOEXEC);
	must(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text), path);
	close(file);
}

static inline bool has_in_cgroup(const struct engine *e, const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", e->cgroup, name);
	return access(path, W_OK) == 0;
}

static inline void hold_by_freezing(const struct engine *e, pid_t thread, bool begin)
{
	(void)thread;
	if (has_in_cgroup(e, "engine/cgroup.freeze"))
		write_in_cgroup(e, "engine/cgroup.freeze", begin ? "1" : "0");
	else
		write_in_cgroup(e, "engine/freezer.state", begin ? "FROZEN" : "THAWED");
}

/* Where the engine's threads go first, one that stops them goes before them: they may spin. */
static inline void go_before(void)
{
	struct sched_param param;

	if (sched_getscheduler(0) != SCHED_FIFO || sched_getparam(0, &param) != 0)
		return;
	param.sched_priority++;
	sched_setscheduler(0, SCHED_FIFO, &param);
}

/* Only another process can end a stop. */
static inline void start_stopper(struct engine *e)
{
	const pid_t thread = e->worker ? e->worker : getpid();
	char byte;

	must(pipe(e->pipe) == 0, "pipe");
	if (fork() != 0) {
		close(e->pipe[0]);
		return;
	}
	close(e->pipe[1]);
	prctl(PR_SET_NAME, "judge_stopper");
	go_before();
	/* So that it is not frozen itself. */
	if (e->cgroup)
		write_in_cgroup(e, "cgroup.procs", "0");
	while (read(e->pipe[0], &byte, 1) == 1) {
		pause_us(1000);
		e->mode->hold(e, thread, true);
		pause_us(STOPPED_US);
		e->mode->hold(e, thread, false);
	}
	_exit(0);
}

static inline void ask_stopper(struct engine *e)
{
	must(write(e->pipe[1], "", 1) == 1, "write");
}

/* The worker of a team that meets at a spinning barrier after each layer, as ggml's does. */
static inline void *work_in_team(void *engine)
{
	struct engine *e = engine;

	e->worker = gettid();
	must(pthread_getcpuclockid(pthread_self(), &e->worker_clock) == 0, "pthread_getcpuclockid");
	sem_post(&e->answer);
	for (long round = 1;; round++) {
		while (__atomic_load_n(&e->round, __ATOMIC_ACQUIRE) < round)
			;
		work(LAYER_US);
		__atomic_store_n(&e->arrived, round, __ATOMIC_RELEASE);
	}
	return NULL;
}

static inline void lead_team(struct engine *e, bool due)
{
	(void)due;
	for (int i = 0; i < LAYERS; i++) {
		long round = __atomic_add_fetch(&e->round, 1, __ATOMIC_ACQ_REL);

		work(LAYER_US);
		while (__atomic_load_n(&e->arrived, __ATOMIC_ACQUIRE) < round)
			;
	}
}

/* When it is due, the worker comes late to one of the layers: it is in a call. */
static inline void lead_team_to_call(struct engine *e, bool due)
{
	__atomic_store_n(&e->due, due, __ATOMIC_RELEASE);
	lead_team(e, due);
}

static inline bool is_late_now(struct engine *e, long round)
{
	return round % LAYERS == LAYERS / 2 && __atomic_load_n(&e->due, __ATOMIC_ACQUIRE);
}

static inline void *call_in_team(void *engine)
{
	struct engine *e = engine;

	e->worker = gettid();
	sem_post(&e->answer);
	for (long round = 1;; round++) {
		while (__atomic_load_n(&e->round, __ATOMIC_ACQUIRE) < round)
			;
		if (is_late_now(e, round))
			pause_us(HELD_US);
		work(LAYER_US);
		__atomic_store_n(&e->arrived, round, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* The same, for a lock that another thread holds. */
static inline void *lock_in_team(void *engine)
{
	struct engine *e = engine;

	e->worker = gettid();
	sem_post(&e->answer);
	for (long round = 1;; round++) {
		while (__atomic_load_n(&e->round, __ATOMIC_ACQUIRE) < round)
			;
		if (is_late_now(e, round)) {
			sem_post(&e->ask);
			sem_wait(&e->answer);
			pthread_mutex_lock(&e->lock);
			pthread_mutex_unlock(&e->lock);
		}
		work(LAYER_US);
		__atomic_store_n(&e->arrived, round, __ATOMIC_RELEASE);
	}
	return NULL;
}

static inline void find_team_and_holder(struct engine *e)
{
	pthread_t holder;

	start_helper(e);
	sem_wait(&e->answer);
	must(pthread_create(&holder, NULL, hold_lock, e) == 0, "pthread_create");
}

static inline void find_team(struct engine *e)
{
	start_helper(e);
	sem_wait(&e->answer);
}

static inline void find_team_and_stopper(struct engine *e)
{
	find_team(e);
	start_stopper(e);
}

static inline void pin_team(struct engine *e)
{
	use_first_cpus(0, 1);
	use_first_cpus(e->worker, 1);
}

static inline void free_team(struct engine *e)
{
	use_first_cpus(0, CPU_SETSIZE);
	use_first_cpus(e->worker, CPU_SETSIZE);
}

/* Takes the CPU away from the step, by its real-time priority. */
static inline void *hog_cpu(void *engine)
{
	const struct sched_param first = {.sched_priority = 50};
	struct engine *e = engine;
	uint64_t begin;

	use_first_cpus(0, 1);
	must(sched_setscheduler(0, SCHED_FIFO, &first) == 0, "sched_setscheduler");
	for (;;) {
		sem_wait(&e->ask);
		sem_post(&e->answer);
		pause_us(1000);
		begin = clock_ns(CLOCK_MONOTONIC);
		while (!passed(begin, BUSY_US))
			;
	}
	return NULL;
}

/* A worker of the step on the CPU of the hog. */
static inline void *work_beside_hog(void *engine)
{
	struct engine *e = engine;

	use_first_cpus(0, 1);
	for (;;) {
		sem_wait(&e->work);
		work(1000);
		sem_post(&e->worked);
	}
	return NULL;
}

static inline void give_worker_to_hog(struct engine *e)
{
	pthread_t worker;

	must(sem_init(&e->work, 0, 0) == 0 && sem_init(&e->worked, 0, 0) == 0, "sem_init");
	must(pthread_create(&worker, NULL, work_beside_hog, e) == 0, "pthread_create");
	start_helper(e);
	leave_first_cpu();
}

static inline void ask_worker(struct engine *e, bool due)
{
	(void)due;
	sem_post(&e->work);
	sem_wait(&e->worked);
}

static inline void share_cpu(struct engine *e)
{
	use_first_cpus(0, 1);
	start_helper(e);
}

static inline void make_file(struct engine *e, long bytes)
{
	static char block[1 << 20];

	memset(block, 1, sizeof(block));
	e->file = open(e->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	must(e->file >= 0, e->path);
	for (long done = 0; done < bytes; done += (long)sizeof(block))
		must(write(e->file, block, sizeof(block)) == (long)sizeof(block), e->path);
	must(fsync(e->file) == 0, e->path);
}

static inline void map_weights(struct engine *e)
{
	make_file(e, COLD_BYTES);
	e->memory = mmap(NULL, COLD_BYTES, PROT_READ, MAP_SHARED, e->file, 0);
	must(e->memory != MAP_FAILED, "mmap");
}

static inline void cool_weights(struct engine *e)
{
	madvise(e->memory, COLD_BYTES, MADV_DONTNEED);
	posix_fadvise(e->file, 0, 0, POSIX_FADV_DONTNEED);
}

static inline void read_weights(struct engine *e, bool due)
{
	(void)due;
	for (long at = 0; at < COLD_BYTES; at += PAGE_BYTES)
		(void)*(volatile char *)&e->memory[at];
}

static inline void reserve_memory(struct engine *e)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

	e->memory = mmap(NULL, FAULT_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
	must(e->memory != MAP_FAILED && madvise(e->memory, FAULT_BYTES, MADV_NOHUGEPAGE) == 0,
	     "mmap");
}

static inline void touch_memory(struct engine *e, bool due)
{
	for (long at = 0; due && at < FAULT_BYTES; at += PAGE_BYTES)
		*(volatile char *)&e->memory[at] = 1;
}

static inline void give_memory_back(struct engine *e)
{
	madvise(e->memory, FAULT_BYTES, MADV_DONTNEED);
}

/* The limit of a storm, so that it ends even if the signals leave the step no time. */
static volatile int storm_left;

static inline void on_storm(int signo)
{
	const uint64_t begin = clock_ns(CLOCK_MONOTONIC);

	(void)signo;
	if (storm_left <= 0)
		return;
	storm_left = storm_left - 1;
	while (!passed(begin, STORM_HANDLER_US))
		;
}

/* A timer of this thread, as of a profiler that is asked for too much. */
static inline void make_timer(struct engine *e)
{
	struct sigaction action = {.sa_handler = on_storm, .sa_flags = SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR2};

	event._sigev_un._tid = gettid();
	must(sigaction(SIGUSR2, &action, NULL) == 0, "sigaction");
	must(timer_create(CLOCK_MONOTONIC, &event, &e->timer) == 0, "timer_create");
}

static inline void set_timer(struct engine *e, long ns)
{
	const struct itimerspec times = {{0, ns}, {0, ns}};

	timer_settime(e->timer, 0, &times, NULL);
}

static inline void start_storm(struct engine *e)
{
	storm_left = STORM_SIGNALS;
	set_timer(e, STORM_NS);
}

static inline void end_storm(struct engine *e)
{
	set_timer(e, 0);
}

static inline void *return_at_once(void *arg)
{
	return arg;
}

static inline void churn_threads(struct engine *e, bool due)
{
	const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	pthread_t thread;

	(void)e;
	while (due && !passed(begin, BUSY_US))
		if (pthread_create(&thread, NULL, return_at_once, NULL) == 0)
			pthread_join(thread, NULL);
}

static inline void map_and_unmap(struct engine *e, bool due)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
	const uint64_t begin = clock_ns(CLOCK_MONOTONIC);

	(void)e;
	while (due && !passed(begin, BUSY_US))
		munmap(mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0),
		       MAPPED_BYTES);
}

/* A worker computes something for each step, and is held up in it. */
static inline void *compute_and_be_held(void *engine)
{
	struct engine *e = engine;

	e->worker = gettid();
	sem_post(&e->answer);
	for (;;) {
		sem_wait(&e->ask);
		work(3000);
		sem_post(&e->answer);
	}
	return NULL;
}

static inline void start_worker_and_stopper(struct engine *e)
{
	start_helper(e);
	sem_wait(&e->answer);
	start_stopper(e);
}

static inline void wait_for_helper(struct engine *e, bool due)
{
	(void)due;
	ask_helper(e);
}

/* The weights are no longer in memory when a worker needs them. */
static inline void *read_weights_for_step(void *engine)
{
	struct engine *e = engine;

	for (;;) {
		sem_wait(&e->ask);
		read_weights(e, true);
		sem_post(&e->answer);
	}
	return NULL;
}

static inline void map_weights_of_worker(struct engine *e)
{
	map_weights(e);
	start_helper(e);
}

static inline void start_answering(struct engine *e)
{
	pthread_t thread;

	must(pthread_create(&thread, NULL, e->mode->help, e) == 0, "pthread_create");
}

/* Descriptors to which nobody writes, as an event loop watches them too. */
static inline void make_silent_pipe(struct engine *e)
{
	must(pipe2(e->pipe, O_CLOEXEC) == 0, "pipe2");
}

static inline void make_eventfds(struct engine *e)
{
	make_silent_pipe(e);
	e->asked[0] = e->asked[1] = eventfd(0, EFD_CLOEXEC);
	e->answered[0] = e->answered[1] = eventfd(0, EFD_CLOEXEC);
	must(e->asked[0] >= 0 && e->answered[0] >= 0, "eventfd");
	start_answering(e);
}

static inline void make_pipes(struct engine *e)
{
	must(pipe2(e->asked, O_CLOEXEC) == 0 && pipe2(e->answered, O_CLOEXEC) == 0, "pipe2");
	start_answering(e);
}

static inline void make_sockets(struct engine *e)
{
	const int type = SOCK_STREAM | SOCK_CLOEXEC;

	make_silent_pipe(e);
	must(socketpair(AF_UNIX, type, 0, e->asked) == 0 &&
		     socketpair(AF_UNIX, type, 0, e->answered) == 0,
	     "socketpair");
	start_answering(e);
}

static inline void make_pipes_and_epoll(struct engine *e)
{
	struct epoll_event event = {.events = EPOLLIN};

	e->epoll = epoll_create1(EPOLL_CLOEXEC);
	make_silent_pipe(e);
	make_pipes(e);
	must(epoll_ctl(e->epoll, EPOLL_CTL_ADD, e->pipe[0], &event) == 0 &&
		     epoll_ctl(e->epoll, EPOLL_CTL_ADD, e->answered[0], &event) == 0,
	     "epoll_ctl");
}

/* A worker that is late with its answer. */
static inline void *answer_late(void *engine)
{
	struct engine *e = engine;
	uint64_t one;

	while (read(e->asked[0], &one, sizeof(one)) == sizeof(one)) {
		work(300);
		if (e->due)
			pause_us(HELD_US);
		must(write(e->answered[1], &one, sizeof(one)) == sizeof(one), "write");
	}
	return NULL;
}

static inline void ask_by_descriptor(struct engine *e, bool due)
{
	uint64_t one = 1;

	e->due = due;
	must(write(e->asked[1], &one, sizeof(one)) == sizeof(one), "write");
}

static inline void take_answer(struct engine *e)
{
	uint64_t one;

	must(read(e->answered[0], &one, sizeof(one)) == sizeof(one), "read");
}

static inline void read_answer(struct engine *e, bool due)
{
	ask_by_descriptor(e, due);
	take_answer(e);
}

static inline void poll_answer(struct engine *e, bool due)
{
	struct pollfd polled[2] = {{.fd = e->pipe[0], .events = POLLIN},
				   {.fd = e->answered[0], .events = POLLIN}};

	ask_by_descriptor(e, due);
	must(poll(polled, 2, -1) > 0, "poll");
	take_answer(e);
}

static inline void epoll_answer(struct engine *e, bool due)
{
	struct epoll_event event;

	ask_by_descriptor(e, due);
	must(epoll_wait(e->epoll, &event, 1, -1) == 1, "epoll_wait");
	take_answer(e);
}

static inline void make_small_file(struct engine *e)
{
	make_file(e, 1 << 20);
}

static inline void write_often(struct engine *e, bool due)
{
	const uint64_t begin = clock_ns(CLOCK_MONOTONIC);

	while (due && !passed(begin, BUSY_US))
		must(pwrite(e->file, "tinytiny", 8, 0) == 8, "pwrite");
}

static inline void read_much(struct engine *e, bool due)
{
	const uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	static char block[1 << 20];

	while (due && !passed(begin, BUSY_US))
		must(pread(e->file, block, sizeof(block), 0) > 0, "pread");
}

static inline void open_random(struct engine *e)
{
	e->file = open("/dev/random", O_WRONLY | O_CLOEXEC);
	must(e->file >= 0, "/dev/random");
}

/*
 * Requests that keep a driver busy, as the programs of a GPU's driver do: to mix bytes into the
 * pool of random numbers, which count as no entropy.
 */
static inline void ask_driver(struct engine *e, bool due)
{
	static struct {
		int entropy, size;
		char bytes[ASKED_BYTES];
	} request = {.size = ASKED_BYTES};
	const uint64_t begin = clock_ns(CLOCK_MONOTONIC);

	while (due && !passed(begin, BUSY_US))
		must(ioctl(e->file, RNDADDENTROPY, &request) == 0, "RNDADDENTROPY");
}

#endif

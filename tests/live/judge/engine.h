/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What the anomalies and the healthy variations of tests/live/judge.c share. */
#ifndef FBT_TESTS_JUDGE_ENGINE_H
#define FBT_TESTS_JUDGE_ENGINE_H

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include "../program.h"

#define US 1000L
/* The clock is read more often than this, unless there is something else to do. */
#define AWAY_NS (20 * US)

struct engine;

/* One way to be slow, or to be healthy but unsteady. Functions may be NULL. */
struct mode {
	const char *name;
	const char *causes; /* those that are right for it, joined by commas; "": it is healthy */
	void (*set_up)(struct engine *e);
	void *(*help)(void *engine); /* what a helper does that set_up starts */
	/* Around a due step, so that it holds nothing but its trouble. */
	void (*before)(struct engine *e);
	void (*after)(struct engine *e);
	/* What a step does beside its work. */
	void (*in_step)(struct engine *e, bool due);
	long (*work_of)(struct engine *e, long number); /* in us; NULL: */
	/*
	 * Reads the counter of the trouble. A due step in which the counter does not grow was not
	 * slow. NULL: the engine counts.
	 */
	uint64_t (*counter)(const struct engine *e);
	/* Begins or ends to hold a thread up; called in a process of its own. */
	void (*hold)(const struct engine *e, pid_t thread, bool begin);
	bool throttles;	  /* the counter is in ns of time off the CPU */
	bool is_team;	  /* the worker spins as the step does: neither may lack a CPU */
	long work_us;	  /* of a step that is not due */
	long due_work_us; /* of one that is; 0: as much */
	long every;	  /* which steps are due; 0: none */
};

struct engine {
	const struct mode *mode;
	const char *path;   /* of a file that it may make */
	const char *cgroup; /* a folder, NULL: none; with its limit and its counters */
	int limit, counters;
	bool is_v2;
	uint64_t random;
	long steps;
	int file;
	char *memory;
	long touched;
	timer_t timer;
	/* The helper: a thread, or for a stop a process that is asked through the pipe. */
	sem_t ask, answer;
	pthread_mutex_t lock;
	pthread_cond_t given,
		done; /* of a pool: parts that are not taken yet, and parts that are done */
	int parts, parts_left;
	pthread_barrier_t start, end; /* of a crew */
	int crew;
	sem_t work, worked; /* of a worker that the step asks each time */
	bool due;
	int pipe[2];
	pid_t worker;		   /* the helper that meets this thread again and again */
	clockid_t worker_clock;	   /* of a team: its CPU time */
	int asked[2], answered[2]; /* by which a worker is asked, and answers: to read, to write */
	int epoll;
	long round, arrived;
};

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline void must(bool is_so, const char *what)
{
	if (is_so)
		return;
	perror(what);
	exit(EXIT_FAILURE);
}

/*
 * Computes for that long by the clock, so that the load of the other hyperthread does not matter.
 * Time in which this thread did something else, or nothing, does not count.
 */
static inline void work(long us)
{
	uint64_t last = clock_ns(CLOCK_MONOTONIC), now, passed, done = 0;

	while (done < (uint64_t)(us * US)) {
		now = clock_ns(CLOCK_MONOTONIC);
		passed = now - last;
		done += passed < AWAY_NS ? passed : 0;
		last = now;
	}
}

static inline void pause_us(long us)
{
	const struct timespec length = {us / 1000000, us % 1000000 * US};

	nanosleep(&length, NULL);
}

static inline bool passed(uint64_t begin, long us)
{
	return clock_ns(CLOCK_MONOTONIC) - begin >= (uint64_t)us * US;
}

static inline long below(struct engine *e, long limit)
{
	e->random = e->random * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (long)(e->random >> 33) % limit;
}

static inline void start_helper(struct engine *e)
{
	pthread_t thread;

	must(sem_init(&e->ask, 0, 0) == 0 && sem_init(&e->answer, 0, 0) == 0, "sem_init");
	must(pthread_create(&thread, NULL, e->mode->help, e) == 0, "pthread_create");
}

/* A thread that is always busy and unrelated to the steps. */
static inline void *compute_always(void *arg)
{
	const struct sched_param none = {0};

	must(sched_setscheduler(0, SCHED_OTHER, &none) == 0, "sched_setscheduler");
	for (;;)
		work(1000);
	return arg;
}

static inline void start_helper_and_stranger(struct engine *e)
{
	pthread_t stranger;

	must(pthread_create(&stranger, NULL, compute_always, NULL) == 0, "pthread_create");
	start_helper(e);
}

/* The helper does its part, and the step may begin. */
static inline void ask_helper(struct engine *e)
{
	sem_post(&e->ask);
	sem_wait(&e->answer);
}

/* All but the first. */
static inline void leave_first_cpu(void)
{
	cpu_set_t cpus;

	must(sched_getaffinity(0, sizeof(cpus), &cpus) == 0, "sched_getaffinity");
	CPU_CLR(0, &cpus);
	must(sched_setaffinity(0, sizeof(cpus), &cpus) == 0, "sched_setaffinity");
}

/* Allows that many of the CPUs; tid 0 is this thread. */
static inline void use_first_cpus(pid_t tid, int count)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	for (int i = 0; i < count; i++)
		CPU_SET(i, &cpus);
	must(sched_setaffinity(tid, sizeof(cpus), &cpus) == 0, "sched_setaffinity");
}

#endif

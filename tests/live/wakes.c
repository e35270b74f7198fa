/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * wakes TRUTH ROUNDS: steps that wait for another thread. The row of each step says which thread
 * ended its wait, and how long that thread used a CPU and waited for one, by its own clocks, from
 * the begin of the wait to its end.
 */
#include <inttypes.h>
#include <linux/futex.h>
#include <stdbool.h>
#include "judge/engine.h"

enum {
	WORK_US = 20000,
	SLEEP_US = 20000,
	NAPS = 20,
	ROWS_MAX = 1000,
};

enum way { COMPUTES, CALLS, SLEEPS, EARLIER, NAPS_OFTEN, LOCKS, BARRIER, ANSWERS, REQUEUES, WAYS };

static const char *const names[WAYS] = {"computes", "calls",   "sleeps",  "earlier", "naps_often",
					"locks",    "barrier", "answers", "requeues"};

struct clocks {
	uint64_t time_ns;
	uint64_t cpu_ns;
	uint64_t delay_ns;
};

struct row {
	enum way way;
	pid_t waker;
	struct clocks begin, end;
};

struct team {
	sem_t ask, answer, begun;
	pthread_mutex_t lock;
	pthread_barrier_t barrier;
	pthread_t worker;
	pid_t worker_tid, step_tid;
	struct row *row;
	bool stranger_stops;
	int pipe[2]; /* by which it answers */
	/* Its place in the queue moves from the first word to the second, as in locks of musl. */
	int words[2];
	bool is_released;
};

static void read_clocks(pthread_t thread, pid_t tid, struct clocks *clocks)
{
	unsigned long long run_ns, delay_ns;
	struct timespec time;
	clockid_t clock;
	char path[64];
	FILE *file;

	must(pthread_getcpuclockid(thread, &clock) == 0, "pthread_getcpuclockid");
	must(clock_gettime(clock, &time) == 0, "clock_gettime");
	clocks->cpu_ns = (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", (int)tid);
	file = fopen(path, "r");
	must(file && fscanf(file, "%llu %llu", &run_ns, &delay_ns) == 2, path);
	fclose(file);
	clocks->delay_ns = delay_ns;
	clocks->time_ns = clock_ns(CLOCK_MONOTONIC);
}

/* Computes for that long, by the thread's own clock. */
static void compute(long us, bool with_calls)
{
	uint64_t end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)(us * US);

	for (long i = 0; clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns; i++) {
		for (volatile int busy = 0; busy < 20000; busy = busy + 1)
			;
		if (with_calls)
			syscall(SYS_sched_getaffinity, 0, 0, NULL);
	}
}

static void do_work(enum way way)
{
	compute(WORK_US / 2, way == CALLS);
	if (way == SLEEPS)
		pause_us(SLEEP_US);
	for (int i = 0; way == NAPS_OFTEN && i < NAPS; i++) {
		pause_us(SLEEP_US / NAPS);
		compute(WORK_US / NAPS, false);
	}
	compute(WORK_US / 2, way == CALLS);
}

/*
 * Makes sure that all of the worker's work for a step lies within the wait, whatever else runs on
 * the machine.
 */
static void await_wait(const struct team *team)
{
	long nr = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)team->step_tid);
	while (nr != (team->row->way == ANSWERS ? SYS_read : SYS_futex)) {
		FILE *file = fopen(path, "r");

		pause_us(1000);
		must(file != NULL, path);
		if (fscanf(file, "%ld", &nr) != 1)
			nr = -1;
		fclose(file);
	}
}

static long futex(int *word, int operation, long count, int *to)
{
	return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, count, 1, to, 0);
}

/* Wakes nobody at the address at which the step waits. */
static void requeue(struct team *team)
{
	while (futex(&team->words[0], FUTEX_REQUEUE, 0, &team->words[1]) != 1)
		pause_us(100);
	__atomic_store_n(&team->is_released, true, __ATOMIC_RELEASE);
	futex(&team->words[1], FUTEX_WAKE, 1, NULL);
}

static void *worker_main(void *arg)
{
	struct team *team = arg;

	team->worker_tid = gettid();
	sem_post(&team->begun);
	for (;;) {
		sem_wait(&team->ask);
		if (team->row->way == LOCKS)
			pthread_mutex_lock(&team->lock);
		sem_post(&team->begun);
		if (team->row->way != EARLIER)
			await_wait(team);
		do_work(team->row->way);
		read_clocks(pthread_self(), team->worker_tid, &team->row->end);
		if (team->row->way == LOCKS)
			pthread_mutex_unlock(&team->lock);
		else if (team->row->way == BARRIER)
			pthread_barrier_wait(&team->barrier);
		else if (team->row->way == ANSWERS)
			must(write(team->pipe[1], "", 1) == 1, "write");
		else if (team->row->way == REQUEUES)
			requeue(team);
		else
			sem_post(&team->answer);
	}
	return NULL;
}

/* Computes all the time, independently of the steps. */
static void *stranger_main(void *arg)
{
	struct team *team = arg;

	while (!__atomic_load_n(&team->stranger_stops, __ATOMIC_RELAXED))
		compute(1000, false);
	return NULL;
}

static void await(struct team *team)
{
	char byte;

	if (team->row->way == LOCKS) {
		pthread_mutex_lock(&team->lock);
		pthread_mutex_unlock(&team->lock);
	} else if (team->row->way == BARRIER) {
		pthread_barrier_wait(&team->barrier);
	} else if (team->row->way == ANSWERS) {
		must(read(team->pipe[0], &byte, 1) == 1, "read");
	} else if (team->row->way == REQUEUES) {
		while (!__atomic_exchange_n(&team->is_released, false, __ATOMIC_ACQ_REL))
			syscall(SYS_futex, &team->words[0], FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	} else {
		sem_wait(&team->answer);
	}
}

void waiting_step(struct team *team);

STEP void waiting_step(struct team *team)
{
	read_clocks(team->worker, team->worker_tid, &team->row->begin);
	await(team);
	STAY();
}

static void make_step(struct team *team, struct row *row, enum way way)
{
	*row = (struct row){.way = way, .waker = team->worker_tid};
	team->row = row;
	sem_post(&team->ask);
	sem_wait(&team->begun);
	if (way == EARLIER)
		compute(WORK_US / 4, false);
	waiting_step(team);
	pause_us(200);
}

static void write_truth(FILE *truth, const struct row *rows, long count)
{
	fprintf(truth, "[");
	for (long i = 0; i < count; i++)
		fprintf(truth,
			"%s\n{\"way\": \"%s\", \"waker\": %d, \"cpu_ns\": %" PRIu64
			", \"delay_ns\": %" PRIu64 ", \"ns\": %" PRIu64 "}",
			i ? "," : "", names[rows[i].way], (int)rows[i].waker,
			rows[i].end.cpu_ns - rows[i].begin.cpu_ns,
			rows[i].end.delay_ns - rows[i].begin.delay_ns,
			rows[i].end.time_ns - rows[i].begin.time_ns);
	fprintf(truth, "]\n");
	fclose(truth);
}

int main(int argc, char **argv)
{
	static struct row rows[ROWS_MAX];
	struct team team = {.stranger_stops = false};
	FILE *truth = open_truth(argv);
	long rounds = number_at(argv, 2, 0), count = 0;
	pthread_t stranger;

	(void)argc;
	must(rounds * WAYS <= ROWS_MAX, "rounds");
	must(!sem_init(&team.ask, 0, 0) && !sem_init(&team.answer, 0, 0) &&
		     !sem_init(&team.begun, 0, 0) && !pthread_mutex_init(&team.lock, NULL) &&
		     !pthread_barrier_init(&team.barrier, NULL, 2) && !pipe(team.pipe),
	     "init");
	must(!pthread_create(&team.worker, NULL, worker_main, &team), "pthread_create");
	must(!pthread_create(&stranger, NULL, stranger_main, &team), "pthread_create");
	sem_wait(&team.begun);
	team.step_tid = gettid();
	wait_for_go();
	for (long i = 0; i < rounds; i++)
		for (int way = 0; way < WAYS; way++)
			make_step(&team, &rows[count++], (enum way)way);
	write_truth(truth, rows, count);
	return 0;
}

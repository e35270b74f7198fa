/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * team TRUTH [SLEEPERS]: steps (team_step) beside three other threads: one computes all the time,
 * one computes on a CPU that it shares with another process, and one sleeps. SLEEPERS more threads
 * sleep too; steps are longer then. Before the first and after the last step of a series, the
 * program reads the CPU clocks and schedstat of the three from the kernel.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include "program.h"

#define NS_PER_S  1000000000ll
#define NS_PER_MS 1000000ll
#define STEPS	  60
#define TEAM	  3
#define CROWD_MAX 400

static struct worker {
	pthread_t thread;
	clockid_t clock;
	int schedstat_fd;
} team[TEAM], crowd[CROWD_MAX];

static long work_ms = 20;

static long long clock_now(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void sleep_ms(long ms)
{
	clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ms / 1000, ms % 1000 * NS_PER_MS},
			NULL);
}

static void bind_to(int which)
{
	cpu_set_t all, one;

	sched_getaffinity(0, sizeof(all), &all);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all) || which--)
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		return;
	}
}

static void *sleep_always(void *arg)
{
	for (;;)
		sleep_ms(100000);
	return arg;
}

static void *run_worker(void *arg)
{
	struct worker *worker = arg;
	ptrdiff_t number = worker - team;

	worker->schedstat_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	if (number == 1)
		bind_to(0);
	while (number == 2)
		sleep_ms(1000);
	for (;;)
		__asm__ volatile("");
	return NULL;
}

static void start_worker(struct worker *worker)
{
	if (pthread_create(&worker->thread, NULL, run_worker, worker) ||
	    pthread_getcpuclockid(worker->thread, &worker->clock))
		exit(EXIT_FAILURE);
}

/* Steps are longer then: every one is measured from 0.2 ms a thread on. */
static int start_crowd(const char *count)
{
	int sleepers = atoi(count);

	if (sleepers > CROWD_MAX)
		exit(EXIT_FAILURE);
	for (int i = 0; i < sleepers; i++) {
		if (pthread_create(&crowd[i].thread, NULL, sleep_always, NULL))
			exit(EXIT_FAILURE);
	}
	work_ms += sleepers / 4;
	return sleepers;
}

/* Runs on the second worker's CPU, so that the worker waits half of the time. */
static pid_t start_neighbour(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	bind_to(0);
	for (;;)
		__asm__ volatile("");
}

STEP void team_step(void (*body)(void));
void team_step(void (*body)(void))
{
	body();
	STAY();
}

static void work(void)
{
	sleep_ms(work_ms);
}

static void *end_at_once(void *arg)
{
	return arg;
}

static void lose_a_thread(void)
{
	pthread_t thread;

	sleep_ms(10);
	if (!pthread_create(&thread, NULL, end_at_once, NULL))
		pthread_join(thread, NULL);
	sleep_ms(10);
}

static struct worker late;

static void gain_a_thread(void)
{
	sleep_ms(20);
	late = (struct worker){.schedstat_fd = -1};
	if (pthread_create(&late.thread, NULL, run_worker, &team[0]))
		exit(EXIT_FAILURE);
	sleep_ms(20);
}

struct sums {
	long long wall_ns;
	long long cpu_ns;
	long long delay_ns;
};

static void add_sums(struct sums *sums, int sign)
{
	sums->wall_ns += sign * clock_now(CLOCK_MONOTONIC);
	for (int i = 0; i < TEAM; i++) {
		unsigned long long delay = 0;
		char line[128] = "";

		sums->cpu_ns += sign * clock_now(team[i].clock);
		if (pread(team[i].schedstat_fd, line, sizeof(line) - 1, 0) > 0)
			sscanf(line, "%*u %llu", &delay);
		sums->delay_ns += sign * (long long)delay;
	}
}

int main(int argc, char **argv)
{
	FILE *file = open_truth(argv);
	struct sums sums = {0};
	pid_t neighbour;
	int sleepers;

	for (int i = 0; i < TEAM; i++)
		start_worker(&team[i]);
	sleepers = start_crowd(argc > 2 ? argv[2] : "0");
	neighbour = start_neighbour();
	sleep_ms(100);
	wait_for_go();
	team_step(work); /* the first step tells how long steps take */
	add_sums(&sums, -1);
	for (int i = 0; i < STEPS; i++)
		team_step(work);
	add_sums(&sums, 1);
	team_step(lose_a_thread);
	team_step(gain_a_thread);
	fprintf(file,
		"{\"steps\": %d, \"threads\": %d, \"busy\": %d, \"tick_ns\": %lld, \"wall_ns\": "
		"%lld, "
		"\"cpu_ns\": %lld, \"delay_ns\": %lld}\n",
		STEPS, TEAM + sleepers, TEAM, NS_PER_S / 100, sums.wall_ns, sums.cpu_ns,
		sums.delay_ns);
	fclose(file);
	kill(neighbour, SIGKILL);
	waitpid(neighbour, NULL, 0);
	return EXIT_SUCCESS;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * long_step TRUTH SECONDS DONE: three threads make one step each. The first step makes BURST write
 * calls at once, then alternates between a futex call that waits for 100 ms and a write call. The
 * second sleeps in one call. Both last SECONDS; then the file DONE is created. The third is still
 * open when SIGTERM ends the program. The truth has each step's begin and end by the program's
 * clock, read inside and outside of the step, and its CPU time, in ns.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>
#include "program.h"

/* More calls than the tool keeps of a step. */
#define BURST	70000
#define WAIT_NS 100000000

struct span {
	uint64_t outer_begin_ns, begin_ns, end_ns, outer_end_ns;
	uint64_t inner_cpu_ns, outer_cpu_ns; /* CPU time, read inside of the step and outside */
};

struct work {
	uint64_t length_ns;
	int null;
	long tids[3];
	struct span spans[3];
	uint64_t writes;
	uint64_t waits;
	volatile int over; /* never set; the step has an exit for its probes */
};

void busy_step(struct work *work);
void asleep_step(struct work *work);
void open_step(struct work *work);

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

STEP void busy_step(struct work *work)
{
	const struct timespec wait = {.tv_nsec = WAIT_NS};
	struct span *span = &work->spans[0];
	uint32_t word = 0;

	span->begin_ns = now_ns();
	span->inner_cpu_ns -= cpu_ns();
	for (int i = 0; i < BURST; i++)
		work->writes += syscall(SYS_write, work->null, "x", 1) == 1;
	do {
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &wait, NULL, 0);
		work->waits++;
		work->writes += syscall(SYS_write, work->null, "x", 1) == 1;
		span->end_ns = now_ns();
	} while (span->end_ns - span->begin_ns < work->length_ns);
	span->inner_cpu_ns += cpu_ns();
	STAY();
}

STEP void asleep_step(struct work *work)
{
	const struct timespec length = {.tv_sec = (time_t)(work->length_ns / 1000000000u)};
	struct span *span = &work->spans[1];

	span->begin_ns = now_ns();
	span->inner_cpu_ns -= cpu_ns();
	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &length, NULL);
	span->inner_cpu_ns += cpu_ns();
	span->end_ns = now_ns();
	STAY();
}

STEP void open_step(struct work *work)
{
	work->spans[2].begin_ns = now_ns();
	while (!work->over)
		pause();
	STAY();
}

static void *run_busy(void *arg)
{
	struct work *work = arg;

	work->tids[0] = syscall(SYS_gettid);
	work->spans[0].outer_begin_ns = now_ns();
	work->spans[0].outer_cpu_ns -= cpu_ns();
	busy_step(work);
	work->spans[0].outer_cpu_ns += cpu_ns();
	work->spans[0].outer_end_ns = now_ns();
	return NULL;
}

static void *run_asleep(void *arg)
{
	struct work *work = arg;

	work->tids[1] = syscall(SYS_gettid);
	work->spans[1].outer_begin_ns = now_ns();
	work->spans[1].outer_cpu_ns -= cpu_ns();
	asleep_step(work);
	work->spans[1].outer_cpu_ns += cpu_ns();
	work->spans[1].outer_end_ns = now_ns();
	return NULL;
}

static void *run_open(void *arg)
{
	struct work *work = arg;

	work->tids[2] = syscall(SYS_gettid);
	work->spans[2].outer_begin_ns = now_ns();
	open_step(work);
	return NULL;
}

static void write_truth(FILE *truth, const struct work *work)
{
	static const char *const names[] = {"busy_step", "asleep_step", "open_step"};

	fprintf(truth, "{\"writes\": %lu, \"waits\": %lu", work->writes, work->waits);
	for (int i = 0; i < 3; i++) {
		const struct span *span = &work->spans[i];

		fprintf(truth,
			", \"%s\": {\"tid\": %ld, \"begin\": [%lu, %lu], \"end\": [%lu, %lu], "
			"\"cpu\": [%lu, %lu]}",
			names[i], work->tids[i], span->outer_begin_ns, span->begin_ns, span->end_ns,
			span->outer_end_ns, span->inner_cpu_ns, span->outer_cpu_ns);
	}
	fprintf(truth, "}\n");
}

int main(int argc, char **argv)
{
	static void *(*const runs[])(void *) = {run_busy, run_asleep, run_open};
	struct work work = {
		.length_ns = (uint64_t)number_at(argv, 2, 10) * 1000000000u,
		.null = open("/dev/null", O_WRONLY | O_CLOEXEC),
	};
	pthread_t threads[3];
	sigset_t end;
	FILE *truth;
	int signo;

	if (argc < 4 || work.null < 0)
		return EXIT_FAILURE;
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &end, NULL);
	truth = open_truth(argv);
	wait_for_go();
	for (int i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, runs[i], &work))
			return EXIT_FAILURE;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	close(open(argv[3], O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	sigwait(&end, &signo);
	write_truth(truth, &work);
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}

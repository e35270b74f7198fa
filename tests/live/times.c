/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * times TRUTH FOLDER: steps (times_step) that use a CPU, wait for one, sleep, are stopped, or read
 * pages from a disk. Before and after each step the program asks the kernel for how long: the
 * thread's CPU clock and its schedstat. FOLDER is on a disk.
 */
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include "program.h"

#define NS_PER_S  1000000000ll
#define NS_PER_MS 1000000ll
#define SHORT	  2000
#define CROWDED	  8000
#define BIG	  (96 << 20)

struct truth {
	long long wall_ns;
	long long cpu_ns;
	long long delay_ns;
	long long counted_ns; /* CPU time by schedstat, as of the last tick */
	long long stolen_ns;  /* upper bound of what the host of this guest took from all CPUs */
};

static char *weights;
static int weights_fd, zero_fd, schedstat_fd;
static char *target;

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

/* Makes no calls: the clock is read in the vDSO. */
static void spin_ms(long ms)
{
	long long end = clock_now(CLOCK_MONOTONIC) + ms * NS_PER_MS;

	while (clock_now(CLOCK_MONOTONIC) < end)
		;
}

static void spin(void)
{
	spin_ms(40);
}

static void doze(void)
{
	sleep_ms(30);
}

/*
 * When a thread wakes up, the scheduler now and then runs it at once, and lets it wait only after
 * its call. So it sleeps several times.
 */
static void doze_often(void)
{
	for (int i = 0; i < 16; i++)
		sleep_ms(8);
}

static void spin_and_doze(void)
{
	for (int i = 0; i < 8; i++) {
		spin_ms(3);
		sleep_ms(2);
	}
}

/* CPU time within a call. */
static void copy(void)
{
	while (read(zero_fd, target, BIG) < 0)
		;
}

static void touch_weights(void)
{
	volatile char sum = 0;

	for (size_t i = 0; i < BIG; i += 1 << 20)
		sum += weights[i];
}

static void move_about(void)
{
	cpu_set_t all, one;

	sched_getaffinity(0, sizeof(all), &all);
	for (int i = 0; i < 40; i++) {
		CPU_ZERO(&one);
		CPU_SET(i % CPU_SETSIZE, &one);
		CPU_AND(&one, &one, &all);
		if (CPU_COUNT(&one))
			sched_setaffinity(0, sizeof(one), &one);
		else
			sched_setaffinity(0, sizeof(all), &all);
		spin_ms(1);
	}
	sched_setaffinity(0, sizeof(all), &all);
}

static void stop_me(long after_ms, long for_ms)
{
	pid_t parent = getpid();

	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sleep_ms(after_ms);
	kill(parent, SIGSTOP);
	sleep_ms(for_ms);
	kill(parent, SIGCONT);
	_exit(0);
}

static void stop_soon(void)
{
	stop_me(20, 150);
}

static void stay_a_while(void)
{
	spin_ms(300);
}

static void cool(void)
{
	posix_fadvise(weights_fd, 0, BIG, POSIX_FADV_DONTNEED);
	madvise(weights, BIG, MADV_DONTNEED);
	posix_fadvise(weights_fd, 0, BIG, POSIX_FADV_DONTNEED);
}

static pid_t crowd;

static void crowd_in(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	crowd = fork();
	if (crowd)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		;
}

/* With this policy the thread does not preempt any other when it wakes up. */
static void crowd_in_idly(void)
{
	crowd_in();
	sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0});
}

static void crowd_out(void)
{
	cpu_set_t all;

	sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
	if (crowd > 0)
		kill(crowd, SIGKILL);
	crowd = 0;
}

static void nothing(void)
{
}

static const struct step {
	const char *name;
	void (*before)(void);
	void (*body)(void);
	void (*after)(void);
} steps[] = {
	{"spin", nothing, spin, nothing},
	{"doze", nothing, doze, nothing},
	{"spin_and_doze", nothing, spin_and_doze, nothing},
	{"copy", nothing, copy, nothing},
	{"move", nothing, move_about, nothing},
	{"cold", cool, touch_weights, nothing},
	{"stop", stop_soon, stay_a_while, nothing},
	{"stop_in_call", stop_soon, spin_and_doze, nothing},
	{"crowd", crowd_in, spin, crowd_out},
	{"crowd_dozes", crowd_in_idly, doze_often, crowd_out},
};

#define STEPS (sizeof(steps) / sizeof(steps[0]))

STEP void times_step(void (*body)(void));
void times_step(void (*body)(void))
{
	body();
	STAY();
}

static void read_schedstat(struct truth *truth, int sign)
{
	unsigned long long cpu = 0, delay = 0;
	char line[128] = "";

	if (pread(schedstat_fd, line, sizeof(line) - 1, 0) > 0)
		sscanf(line, "%llu %llu", &cpu, &delay);
	truth->counted_ns += sign * (long long)cpu;
	truth->delay_ns += sign * (long long)delay;
}

/* /proc/stat counts in ticks. A machine without any is no guest, or its host has spare CPUs. */
static long long read_stolen(void)
{
	FILE *file = fopen("/proc/stat", "r");
	long long ticks = 0;

	if (!file || fscanf(file, "cpu %*d %*d %*d %*d %*d %*d %*d %lld", &ticks) != 1)
		exit(EXIT_FAILURE);
	fclose(file);
	return ticks ? (ticks + 1) * (NS_PER_S / sysconf(_SC_CLK_TCK)) : 0;
}

/*
 * Each clock is read before and after the step, so each value is at least the step's time. The wall
 * clock's value includes the readings of the others.
 */
static void run_step(const struct step *step, struct truth *truth)
{
	step->before();
	*truth = (struct truth){.stolen_ns = -read_stolen()};
	truth->wall_ns -= clock_now(CLOCK_MONOTONIC);
	read_schedstat(truth, -1);
	truth->cpu_ns -= clock_now(CLOCK_THREAD_CPUTIME_ID);
	times_step(step->body);
	truth->cpu_ns += clock_now(CLOCK_THREAD_CPUTIME_ID);
	read_schedstat(truth, 1);
	truth->wall_ns += clock_now(CLOCK_MONOTONIC);
	truth->stolen_ns += read_stolen();
	if (read_stolen())
		truth->stolen_ns += NS_PER_S / sysconf(_SC_CLK_TCK);
	step->after();
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static void prepare(const char *folder)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/weights", folder);
	weights_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	zero_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	schedstat_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	target = malloc(BIG);
	if (weights_fd < 0 || zero_fd < 0 || schedstat_fd < 0 || !target)
		exit(EXIT_FAILURE);
	memset(target, 1, BIG);
	for (size_t done = 0; done < BIG;) {
		ssize_t count = write(weights_fd, target + done, BIG - done);

		if (count <= 0)
			exit(EXIT_FAILURE);
		done += (size_t)count;
	}
	fsync(weights_fd);
	weights = mmap(NULL, BIG, PROT_READ, MAP_PRIVATE, weights_fd, 0);
	if (weights == MAP_FAILED)
		exit(EXIT_FAILURE);
	madvise(weights, BIG, MADV_RANDOM);
}

/* CPU time of many short steps, read inside and outside of them. The true value lies in between. */
static long long inner_ns;

static struct series {
	int count;
	long long inner_ns;
	long long outer_ns;
	struct truth whole; /* includes the time between the steps */
} series[2];

static void spin_shortly(void)
{
	long long end = clock_now(CLOCK_MONOTONIC) + 50000;

	inner_ns -= clock_now(CLOCK_THREAD_CPUTIME_ID);
	while (clock_now(CLOCK_MONOTONIC) < end)
		;
	inner_ns += clock_now(CLOCK_THREAD_CPUTIME_ID);
}

static void run_short(struct series *to, int count)
{
	inner_ns = 0;
	to->count = count;
	read_schedstat(&to->whole, -1);
	to->whole.cpu_ns -= clock_now(CLOCK_THREAD_CPUTIME_ID);
	for (int i = 0; i < count; i++) {
		to->outer_ns -= clock_now(CLOCK_THREAD_CPUTIME_ID);
		times_step(spin_shortly);
		to->outer_ns += clock_now(CLOCK_THREAD_CPUTIME_ID);
	}
	to->whole.cpu_ns += clock_now(CLOCK_THREAD_CPUTIME_ID);
	read_schedstat(&to->whole, 1);
	to->inner_ns = inner_ns;
}

static void write_series(FILE *file, const char *name, const struct series *from)
{
	fprintf(file,
		"\"%s\": {\"count\": %d, \"inner_ns\": %lld, \"outer_ns\": %lld, "
		"\"cpu_ns\": %lld, \"counted_ns\": %lld, \"delay_ns\": %lld}, ",
		name, from->count, from->inner_ns, from->outer_ns, from->whole.cpu_ns,
		from->whole.counted_ns, from->whole.delay_ns);
}

int main(int argc, char **argv)
{
	FILE *file = open_truth(argv);
	struct truth truths[STEPS];

	if (argc < 3)
		return EXIT_FAILURE;
	prepare(argv[2]);
	wait_for_go();
	for (size_t i = 0; i < STEPS; i++)
		run_step(&steps[i], &truths[i]);
	run_short(&series[0], SHORT);
	crowd_in();
	run_short(&series[1], CROWDED);
	crowd_out();
	fputs("{", file);
	write_series(file, "short", &series[0]);
	write_series(file, "crowded", &series[1]);
	fprintf(file, "\"tick_ns\": %lld, \"steps\": [", NS_PER_S / 100);
	for (size_t i = 0; i < STEPS; i++)
		fprintf(file,
			"%s{\"name\": \"%s\", \"wall_ns\": %lld, \"cpu_ns\": %lld, "
			"\"delay_ns\": %lld, \"stolen_ns\": %lld}",
			i ? ",\n" : "", steps[i].name, truths[i].wall_ns, truths[i].cpu_ns,
			truths[i].delay_ns, truths[i].stolen_ns);
	fputs("]}\n", file);
	fclose(file);
	return EXIT_SUCCESS;
}

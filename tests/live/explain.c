/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * An engine whose steps are slow now and then for a reason that --explain finds out, and which
 * knows what that was:
 *
 *	explain TRUTH MODE STEPS EVERY
 *
 * hog        another process, "fbt_hog", takes the CPU of the step for 40 ms
 * hog6       the same, in the first six slow steps only
 * own        a thread of the engine, "fbt_own", does the same
 * hog+own    both do, one after the other
 * hog+crew   the same, and its own threads are ten, each for a tenth of the time
 * build      sixteen processes do, for 5 ms each, one after the other; the process that starts
 *            them is in the cgroup FBT_GROUP (the path of its folder)
 * build+hog  the same with five of 0.2 ms each, and then another one, "fbt_last", for 70 ms
 * worker     as hog, to a thread "fbt_worker", for which the step spins on another CPU
 * pipe       the step waits 30 ms for "fbt_feeder", another process, which writes to a pipe
 * socket     the same by TCP, within the machine
 * timer      the step waits as long for a timerfd
 * compute    the step computes for 80 ms in slow_part(), which others do not call
 * turns      the same, and each 80 steps have a thread of their own
 * quota      nobody does: the cgroup of the engine is at its limit
 *
 * All but "quota" have real-time priorities, so that nobody else comes between. Every EVERY-th step
 *is slow. TRUTH gets the ids of those that took part, and of each slow step its number, and for how
 *long they had the CPU in it by their own clock.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "program.h"

#define MS	  1000000ull
#define WORK_NS	  (2 * MS)
#define TAKEN_NS  (40 * MS)
#define STEPS_MAX 100000
#define SLOW_MAX  1000
#define REST_US	  2500
/* The worker computes for most of its time. */
#define WORKER_REST_US 1500
#define LATE_US	       30000
#define COMPUTED_NS    (80 * MS)
#define FIRST_SLOW     70
#define TURN_STEPS     80
#define CREW	       10
#define COMPILERS      16
#define COMPILED_NS    (5 * MS)
/* With their parent as many as have places. */
#define SHORTS	 5
#define SHORT_NS (MS / 5)
#define LAST_NS	 (70 * MS)

/* Shared with the process that takes the CPU. */
struct shared {
	_Atomic uint64_t taken_ns;  /* by its own clock, in total */
	_Atomic uint64_t passed_ns; /* meanwhile: interrupts and the host take CPU time too */
	_Atomic int tid;
};

/* The thread for which steps spin. */
struct worker {
	_Atomic uint64_t done; /* steps */
	_Atomic int tid;
	int request; /* 0: there is none */
	int cpu;
};

struct engine {
	struct shared *shared;
	int request;
	int first;  /* the same for the own thread before a hog; 0: there is none */
	int next;   /* whom that thread asks to go on when it has done */
	int answer; /* what the step reads from; 0: it does not */
	int cpu;    /* which is taken */
	int step_cpu;
	struct worker worker;
	int pid;	   /* of who takes the CPU */
	uint64_t taken_ns; /* each time */
	const char *mode;
};

struct slow {
	uint64_t step;
	uint64_t taken_ns;
	uint64_t passed_ns;
	uint64_t waited_ns;
};

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(EXIT_FAILURE);
}

static uint64_t clock_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void compute(uint64_t ns)
{
	uint64_t start_ns = clock_of(CLOCK_THREAD_CPUTIME_ID);

	while (clock_of(CLOCK_THREAD_CPUTIME_ID) - start_ns < ns)
		;
}

/* How long the thread that is kept off its CPU has waited for one. */
static uint64_t run_delay_ns(const struct engine *engine)
{
	unsigned long long cpu = 0, delay = 0;
	char path[64] = "/proc/thread-self/schedstat";
	FILE *file;

	if (engine->worker.tid)
		snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", engine->worker.tid);
	file = fopen(path, "re");
	if (file && fscanf(file, "%llu %llu", &cpu, &delay) != 2)
		delay = 0;
	if (file)
		fclose(file);
	return delay;
}

static void pin(int cpu, int priority)
{
	struct sched_param param = {.sched_priority = priority};
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	must(!sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
	if (priority)
		must(!sched_setscheduler(0, SCHED_FIFO, &param), "sched_setscheduler");
}

/* Takes the CPU each time that it is asked to. */
static void take_turns(struct engine *engine)
{
	uint64_t count;

	pin(engine->cpu, 2);
	engine->shared->tid = gettid();
	while (read(engine->request, &count, sizeof(count)) == sizeof(count)) {
		uint64_t start_ns = clock_of(CLOCK_THREAD_CPUTIME_ID);
		uint64_t begin_ns = clock_of(CLOCK_MONOTONIC);

		/* It has the same priority, so it comes next, before the step does. */
		if (engine->next)
			must(write(engine->next, &count, sizeof(count)) == sizeof(count), "write");
		compute(engine->taken_ns);
		engine->shared->taken_ns += clock_of(CLOCK_THREAD_CPUTIME_ID) - start_ns;
		engine->shared->passed_ns += clock_of(CLOCK_MONOTONIC) - begin_ns;
	}
}

static void join_group(void)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/cgroup.procs", getenv("FBT_GROUP"));
	file = fopen(path, "r+e");
	must(file && fprintf(file, "%d\n", getpid()) > 0 && !fclose(file), path);
}

static uint64_t children_ns(void)
{
	struct rusage usage;

	must(!getrusage(RUSAGE_CHILDREN, &usage), "getrusage");
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 * MS +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
}

static void compile(const char *name, uint64_t ns)
{
	pid_t child = fork();

	must(child >= 0, "fork");
	if (!child) {
		prctl(PR_SET_NAME, name);
		compute(ns);
		_exit(0);
	}
	must(waitpid(child, NULL, 0) == child, "waitpid");
}

/* As take_turns(), by processes that have ended by the time that somebody asks for them. */
static void build(struct engine *engine)
{
	bool has_hog = !strcmp(engine->mode, "build+hog");
	uint64_t count;

	join_group();
	pin(engine->cpu, 2);
	engine->shared->tid = gettid();
	while (read(engine->request, &count, sizeof(count)) == sizeof(count)) {
		uint64_t cpu_ns = clock_of(CLOCK_THREAD_CPUTIME_ID) + children_ns();
		uint64_t begin_ns = clock_of(CLOCK_MONOTONIC);

		for (int i = 0; i < (has_hog ? SHORTS : COMPILERS); i++)
			compile("fbt_compiler", has_hog ? SHORT_NS : COMPILED_NS);
		if (has_hog)
			compile("fbt_last", LAST_NS);
		engine->shared->taken_ns +=
			clock_of(CLOCK_THREAD_CPUTIME_ID) + children_ns() - cpu_ns;
		engine->shared->passed_ns += clock_of(CLOCK_MONOTONIC) - begin_ns;
	}
}

static void *own_thread(void *ctx)
{
	prctl(PR_SET_NAME, "fbt_own");
	take_turns(ctx);
	return NULL;
}

/* Part of each step: for longer than the step's own. */
static void *work(void *ctx)
{
	struct engine *engine = ctx;
	struct worker *worker = &engine->worker;
	uint64_t count;

	prctl(PR_SET_NAME, "fbt_worker");
	pin(engine->cpu, 1);
	worker->tid = gettid();
	while (read(worker->request, &count, sizeof(count)) == sizeof(count)) {
		compute(2 * WORK_NS);
		worker->done++;
	}
	return NULL;
}

/* On the next CPU that the program may use, with the hog. */
static void begin_worker(struct engine *engine)
{
	cpu_set_t set;
	pthread_t thread;

	must(!sched_getaffinity(0, sizeof(set), &set), "sched_getaffinity");
	do {
		engine->cpu = (engine->cpu + 1) % CPU_SETSIZE;
	} while (!CPU_ISSET(engine->cpu, &set));
	must(engine->cpu != engine->step_cpu, "a second CPU");
	engine->worker.request = eventfd(0, EFD_CLOEXEC);
	must(!pthread_create(&thread, NULL, work, engine), "pthread_create");
	while (!engine->worker.tid)
		usleep(1000);
}

/* Two ends of a connection within the machine. */
static void connect_ends(int ends[2])
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	must(!bind(listener, (struct sockaddr *)&address, size) && !listen(listener, 1) &&
		     !getsockname(listener, (struct sockaddr *)&address, &size),
	     "listen");
	ends[1] = socket(AF_INET, SOCK_STREAM, 0);
	must(!connect(ends[1], (struct sockaddr *)&address, size), "connect");
	ends[0] = accept(listener, NULL, NULL);
	setsockopt(ends[1], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	must(ends[0] >= 0, "accept");
	close(listener);
}

/* Answers each request after a while. */
static void feed(struct engine *engine, int to)
{
	uint64_t count;

	engine->shared->tid = gettid();
	while (read(engine->request, &count, sizeof(count)) == sizeof(count)) {
		usleep(LATE_US);
		must(write(to, &count, sizeof(count)) == sizeof(count), "write");
	}
}

static void begin_feeder(struct engine *engine)
{
	int ends[2];

	if (!strcmp(engine->mode, "pipe"))
		must(!pipe(ends), "pipe");
	else
		connect_ends(ends);
	engine->pid = fork();
	must(engine->pid >= 0, "fork");
	if (!engine->pid) {
		prctl(PR_SET_PDEATHSIG, 9);
		prctl(PR_SET_NAME, "fbt_feeder");
		feed(engine, ends[1]);
		_exit(0);
	}
	engine->answer = ends[0];
}

static int begin_waker(struct engine *engine)
{
	if (!strcmp(engine->mode, "timer"))
		engine->answer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	else if (!strcmp(engine->mode, "pipe") || !strcmp(engine->mode, "socket"))
		begin_feeder(engine);
	return engine->answer;
}

/* So many threads, each of which asks the next one, and the last one asks the hog. */
static void begin_own(struct engine *engine, int count)
{
	static struct engine own[CREW];
	pthread_t thread;

	engine->first = engine->request;
	for (int i = 0; i < count; i++) {
		own[i] = *engine;
		own[i].taken_ns = TAKEN_NS / (uint64_t)count;
		own[i].next = engine->first;
		own[i].request = engine->first = eventfd(0, EFD_CLOEXEC);
		engine->shared->tid = 0;
		must(!pthread_create(&thread, NULL, own_thread, &own[i]), "pthread_create");
		while (!engine->shared->tid)
			usleep(1000);
	}
	engine->shared->tid = 0;
}

static void begin_taker(struct engine *engine)
{
	pthread_t thread;

	if (!strcmp(engine->mode, "hog+own"))
		begin_own(engine, 1);
	else if (!strcmp(engine->mode, "hog+crew"))
		begin_own(engine, CREW);
	if (begin_waker(engine) && !engine->pid)
		return;
	if (engine->answer) {
		while (!engine->shared->tid)
			usleep(1000);
		return;
	}

	if (!strcmp(engine->mode, "own")) {
		engine->pid = getpid();
		must(!pthread_create(&thread, NULL, own_thread, engine), "pthread_create");
	} else if (!strncmp(engine->mode, "hog", 3) || engine->worker.tid ||
		   !strncmp(engine->mode, "build", 5)) {
		engine->pid = fork();
		must(engine->pid >= 0, "fork");
		if (!engine->pid) {
			prctl(PR_SET_PDEATHSIG, 9);
			prctl(PR_SET_NAME, "fbt_hog");
			if (!strncmp(engine->mode, "build", 5))
				build(engine);
			take_turns(engine);
			_exit(0);
		}
	} else {
		return;
	}
	while (!engine->shared->tid)
		usleep(1000);
}

static void await_answer(struct engine *engine)
{
	const struct itimerspec late = {.it_value.tv_nsec = LATE_US * 1000};
	uint64_t count = 1;

	if (engine->pid)
		must(write(engine->request, &count, sizeof(count)) == sizeof(count), "write");
	else
		must(!timerfd_settime(engine->answer, 0, &late, NULL), "timerfd_settime");
	must(read(engine->answer, &count, sizeof(count)) == sizeof(count), "read");
}

STEP void usual_part(void);
STEP void slow_part(void);
STEP void explained_step(struct engine *engine, int is_slow);
static uint64_t multiply(uint64_t rounds)
{
	uint64_t sum = 1;

	for (uint64_t i = 0; i < rounds; i++) {
		sum = sum * 6364136223846793005u + i;
		__asm__ volatile("" : "+r"(sum));
	}
	return sum;
}

void usual_part(void)
{
	multiply(2000000);
	STAY();
}

void slow_part(void)
{
	uint64_t start_ns = clock_of(CLOCK_THREAD_CPUTIME_ID);

	while (clock_of(CLOCK_THREAD_CPUTIME_ID) - start_ns < COMPUTED_NS)
		multiply(1000000);
	STAY();
}

static void step_with_worker(struct engine *engine, int is_slow)
{
	uint64_t before = engine->worker.done, one = 1;

	must(write(engine->worker.request, &one, sizeof(one)) == sizeof(one), "write");
	compute(WORK_NS);
	if (is_slow)
		must(write(engine->request, &one, sizeof(one)) == sizeof(one), "write");
	while (engine->worker.done == before)
		;
}

void explained_step(struct engine *engine, int is_slow)
{
	const uint64_t one = 1;

	if (!strcmp(engine->mode, "compute") || !strcmp(engine->mode, "turns")) {
		usual_part();
		if (is_slow)
			slow_part();
		STAY();
		return;
	}
	if (engine->worker.tid) {
		step_with_worker(engine, is_slow);
		STAY();
		return;
	}
	compute(WORK_NS);
	if (is_slow && engine->answer) {
		await_answer(engine);
		return;
	}
	if (is_slow && engine->first)
		must(write(engine->first, &one, sizeof(one)) == sizeof(one), "write");
	else if (is_slow && engine->pid)
		must(write(engine->request, &one, sizeof(one)) == sizeof(one), "write");
	compute(WORK_NS / 4);
	STAY();
}

/* Steps on one thread. */
struct turn {
	struct engine *engine;
	uint64_t first;
	uint64_t last;
	uint64_t every;
};

static struct slow slow[SLOW_MAX];
static size_t slow_count;

static void *run_steps(void *ctx)
{
	const struct turn *turn = ctx;
	struct engine *engine = turn->engine;
	size_t most = strcmp(engine->mode, "hog6") ? SLOW_MAX : 6;

	for (uint64_t step = turn->first; step <= turn->last; step++) {
		int is_slow = step >= FIRST_SLOW && step % turn->every == 0 && slow_count < most;
		uint64_t taken_ns = engine->shared->taken_ns, delay_ns = run_delay_ns(engine);
		uint64_t passed_ns = engine->shared->passed_ns;
		uint64_t cpu_ns = clock_of(CLOCK_THREAD_CPUTIME_ID);
		uint64_t begin_ns = clock_of(CLOCK_MONOTONIC);

		explained_step(engine, is_slow);
		if (!strcmp(engine->mode, "compute")) {
			engine->shared->taken_ns += clock_of(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
			engine->shared->passed_ns += clock_of(CLOCK_MONOTONIC) - begin_ns;
		}
		if (is_slow)
			slow[slow_count++] =
				(struct slow){step, engine->shared->taken_ns - taken_ns,
					      engine->shared->passed_ns - passed_ns,
					      run_delay_ns(engine) - delay_ns};
		/* Others have to have a CPU too. */
		if (strcmp(engine->mode, "quota") != 0)
			usleep(engine->worker.tid ? WORKER_REST_US : REST_US);
	}
	return NULL;
}

static void run_turns(struct engine *engine, uint64_t steps, uint64_t every)
{
	for (uint64_t first = 1; first <= steps; first += TURN_STEPS) {
		uint64_t last = first + TURN_STEPS - 1;
		struct turn turn = {engine, first, last < steps ? last : steps, every};
		pthread_t thread;

		must(!pthread_create(&thread, NULL, run_steps, &turn), "pthread_create");
		pthread_join(thread, NULL);
	}
}

static void write_truth(const char *path, const struct engine *engine)
{
	FILE *file = fopen(path, "we");

	must(file != NULL, "truth");
	fprintf(file,
		"{\"pid\": %d, \"taker_pid\": %d, \"taker_tid\": %d, \"worker_tid\": %d, "
		"\"cpu\": %d, \"slow\": [",
		getpid(), engine->pid, engine->shared->tid, engine->worker.tid, engine->cpu);
	for (size_t i = 0; i < slow_count; i++)
		fprintf(file,
			"%s{\"step\": %llu, \"taken_ns\": %llu, \"passed_ns\": %llu, "
			"\"waited_ns\": %llu}",
			i ? ", " : "", (unsigned long long)slow[i].step,
			(unsigned long long)slow[i].taken_ns, (unsigned long long)slow[i].passed_ns,
			(unsigned long long)slow[i].waited_ns);
	fprintf(file, "]}\n");
	must(!fclose(file), "truth");
}

int main(int argc, char **argv)
{
	struct engine engine = {.mode = argc == 5 ? argv[2] : "", .taken_ns = TAKEN_NS};
	uint64_t steps, every;

	must(argc == 5, "usage");
	steps = strtoull(argv[3], NULL, 10);
	every = strtoull(argv[4], NULL, 10);
	must(steps && steps <= STEPS_MAX && every, "usage");
	engine.shared = mmap(NULL, sizeof(*engine.shared), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(engine.shared != MAP_FAILED, "mmap");
	engine.request = eventfd(0, EFD_CLOEXEC);
	engine.cpu = engine.step_cpu = sched_getcpu();
	if (!strcmp(engine.mode, "worker"))
		begin_worker(&engine);
	begin_taker(&engine);
	pin(engine.step_cpu, strcmp(engine.mode, "quota") ? 1 : 0);
	wait_for_go();
	if (!strcmp(engine.mode, "turns"))
		run_turns(&engine, steps, every);
	else
		run_steps(&(struct turn){&engine, 1, steps, every});
	write_truth(argv[1], &engine);
	return 0;
}

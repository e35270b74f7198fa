/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * looks TRUTH ROUNDS: steps (look_step) of which, after WARM, every twentieth waits for another
 * thread, each in another way. That thread has what is waited for until the step has waited for
 * HOLD_MS. The account has of each such step who has it, in which function, and for which process
 * that thread waits. With a third argument only that way is taken, once, and the step waits for six
 * seconds.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include "program.h"

#define WARM	40
#define EVERY	20
#define HOLD_MS 400
#define KEEP_MS 50   /* how long one that waited keeps the lock */
#define LIVE_MS 1000 /* how long it lives on: the tool reads its name after the step */

static long hold_ms = HOLD_MS;
static FILE *truth;

/* What a thread holds, and since when the step waits for it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive, inheriting, robust;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static int pipe_fds[2];
/* Another process, and the ways to ask it and to hear from it. */
static pid_t server;
static int requests[2], answers[2], sockets[2];
/* As a mutex of glibc looks like, but of another make: nobody says that the second word is a
 * thread. */
static _Atomic int own_lock[8];
static atomic_bool is_held, hog_runs;
static atomic_int begun;

void look_step(int way);

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void nap(long ms)
{
	struct timespec left = {ms / 1000, ms % 1000 * 1000000};

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

static int gettid_here(void)
{
	return (int)syscall(SYS_gettid);
}

/* Waits until the step does, so that it is the step that wakes nobody. */
static void await_step(void)
{
	while (!begun)
		nap(1);
}

/* One sleep: what the thread is in while it is looked at is no matter of luck. */
#define HOLDER(name)                                                                               \
	void name(void);                                                                           \
	STEP void name(void)

HOLDER(hold_sleeping)
{
	is_held = true;
	await_step();
	nap(hold_ms);
	STAY();
}

HOLDER(hold_computing)
{
	long end_ms;

	is_held = true;
	while (!begun)
		;
	end_ms = now_ms() + hold_ms;
	while (now_ms() < end_ms)
		;
	STAY();
}

HOLDER(hold_reading)
{
	char byte;

	is_held = true;
	if (read(pipe_fds[0], &byte, 1) != 1)
		exit(EXIT_FAILURE);
	STAY();
}

/* A part of the function that holds the lock. */
static inline __attribute__((always_inline)) void ask(char what)
{
	char byte;

	if (write(requests[1], &what, 1) != 1)
		exit(EXIT_FAILURE);
	is_held = true;
	if (read(what == 's' ? sockets[0] : answers[0], &byte, 1) != 1)
		exit(EXIT_FAILURE);
}

HOLDER(hold_asking)
{
	ask('p');
	STAY();
}

HOLDER(hold_asking_socket)
{
	ask('s');
	STAY();
}

HOLDER(hold_asking_stopped)
{
	ask('t');
	STAY();
}

HOLDER(hold_second)
{
	while (!is_held)
		nap(1);
	pthread_mutex_lock(&second);
	STAY();
	pthread_mutex_unlock(&second);
	STAY();
}

/* Another thread of a higher priority takes its CPU: it is ready to run all the time. */
HOLDER(hold_starved)
{
	hog_runs = true;
	while (hog_runs)
		;
	STAY();
}

static void *hog(void *unused)
{
	struct sched_param first = {.sched_priority = 1};
	cpu_set_t cpu;
	long end_ms;

	CPU_ZERO(&cpu);
	CPU_SET(0, &cpu);
	if (sched_setaffinity(0, sizeof(cpu), &cpu) || sched_setscheduler(0, SCHED_FIFO, &first))
		return NULL;
	while (!hog_runs)
		nap(1);
	is_held = true;
	while (!begun)
		;
	end_ms = now_ms() + hold_ms;
	while (now_ms() < end_ms)
		;
	hog_runs = false;
	return unused;
}

enum way {
	SLEEPS,
	COMPUTES,
	CHAIN,
	READS,
	STARVED,
	READER,
	WRITER,
	INHERITS,
	RECURSES,
	ROBUST,
	TIMED,
	CONDITION,
	SEMAPHORE,
	MANY_READERS,
	OWN,
	TWO,
	SPINS,
	NAPS,
	ASKS,
	ASKS_SOCKET,
	ASKS_STOPPED,
	WAYS
};

static const char *const names[] = {
	"sleeps",   "computes", "chain",  "reads", "starved",	"reader",      "writer",
	"inherits", "recurses", "robust", "timed", "condition", "semaphore",   "many_readers",
	"own",	    "two",	"spins",  "naps",  "asks",	"asks_socket", "asks_stopped"};

/* The function that has the lock, "" if no owner is known; and the chain's second one. */
static const char *const functions[][2] = {{"hold_sleeping", ""},
					   {"hold_computing", ""},
					   {"hold_second", "hold_sleeping"},
					   {"hold_reading", ""},
					   {"hold_starved", ""},
					   {"hold_sleeping", ""},
					   {"hold_sleeping", ""},
					   {"hold_sleeping", ""},
					   {"hold_sleeping", ""},
					   {"hold_sleeping", ""},
					   {"hold_sleeping", ""},
					   {"", ""},
					   {"", ""},
					   {"", ""},
					   {"", ""},
					   {"hold_sleeping", ""},
					   {"", ""},
					   {"", ""},
					   {"hold_asking", ""},
					   {"hold_asking_socket", ""},
					   {"hold_asking_stopped", ""}};

struct holder {
	enum way way;
	int tid;
	pthread_t thread;
};

static struct holder first, other, feeder, hogging;

static void *keep_second(void *unused)
{
	other.tid = gettid_here();
	pthread_mutex_lock(&second);
	hold_sleeping();
	pthread_mutex_unlock(&second);
	return unused;
}

/* Waits for the lock before the step does, so that it gets the lock first. */
static void *take_first(void *unused)
{
	other.tid = gettid_here();
	while (!is_held)
		nap(1);
	pthread_mutex_lock(&lock);
	nap(KEEP_MS);
	pthread_mutex_unlock(&lock);
	/* A thread that has ended has no name, and nobody has looked at this one. */
	nap(LIVE_MS);
	return unused;
}

static void *feed(void *unused)
{
	await_step();
	nap(hold_ms);
	if (write(pipe_fds[1], "", 1) != 1)
		exit(EXIT_FAILURE);
	return unused;
}

static void *wake_server(void *unused)
{
	await_step();
	nap(hold_ms);
	kill(server, SIGCONT);
	return unused;
}

/* The other process: answers after a while, because it sleeps or is stopped. */
static _Noreturn void serve(void)
{
	char byte;

	prctl(PR_SET_NAME, "the-server");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(requests[0], &byte, 1) == 1) {
		if (byte == 't')
			raise(SIGSTOP);
		else
			nap(hold_ms);
		if (write(byte == 's' ? sockets[1] : answers[1], &byte, 1) != 1)
			break;
	}
	_exit(EXIT_SUCCESS);
}

static bool start_server(void)
{
	if (pipe(requests) || pipe(answers) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return false;
	server = fork();
	if (!server) {
		/* It has inherited both ends of pipe_fds, in which threads of the program talk. */
		close(requests[1]);
		close(sockets[0]);
		serve();
	}
	close(answers[1]);
	close(sockets[1]);
	return server > 0;
}

static void hold_pinned(void)
{
	cpu_set_t cpu, before;

	sched_getaffinity(0, sizeof(before), &before);
	CPU_ZERO(&cpu);
	CPU_SET(0, &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
	hold_starved();
	sched_setaffinity(0, sizeof(before), &before);
}

static void hold_mutex(pthread_mutex_t *mutex, void (*hold)(void), int times)
{
	for (int i = 0; i < times; i++)
		pthread_mutex_lock(mutex);
	hold();
	for (int i = 0; i < times; i++)
		pthread_mutex_unlock(mutex);
}

/* What an owner word would be, in a lock that has none. */
static void hold_own(void)
{
	own_lock[2] = gettid_here();
	own_lock[3] = 1;
	own_lock[0] = 2;
	hold_sleeping();
	own_lock[0] = 0;
	syscall(SYS_futex, &own_lock[0], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void hold_without_owner(enum way way)
{
	switch (way) {
	case CONDITION:
		hold_sleeping();
		pthread_mutex_lock(&lock);
		is_held = false;
		pthread_cond_signal(&condition);
		pthread_mutex_unlock(&lock);
		break;
	case SEMAPHORE:
		hold_sleeping();
		sem_post(&semaphore);
		break;
	case MANY_READERS:
		pthread_rwlock_rdlock(&rwlock);
		hold_sleeping();
		pthread_rwlock_unlock(&rwlock);
		break;
	case SPINS:
	case NAPS:
		hold_sleeping();
		is_held = false;
		break;
	default:
		hold_own();
	}
}

static void *run_holder(void *ctx)
{
	struct holder *self = ctx;

	self->tid = gettid_here();
	switch (self->way) {
	case SLEEPS:
	case TIMED:
	case TWO:
		hold_mutex(&lock, hold_sleeping, 1);
		break;
	case COMPUTES:
		hold_mutex(&lock, hold_computing, 1);
		break;
	case CHAIN:
		hold_mutex(&lock, hold_second, 1);
		break;
	case READS:
		hold_mutex(&lock, hold_reading, 1);
		break;
	case STARVED:
		hold_mutex(&lock, hold_pinned, 1);
		break;
	case READER:
	case WRITER:
		pthread_rwlock_wrlock(&rwlock);
		hold_sleeping();
		pthread_rwlock_unlock(&rwlock);
		break;
	case INHERITS:
		hold_mutex(&inheriting, hold_sleeping, 1);
		break;
	case RECURSES:
		hold_mutex(&recursive, hold_sleeping, 3);
		break;
	case ROBUST:
		hold_mutex(&robust, hold_sleeping, 1);
		break;
	case ASKS:
		hold_mutex(&lock, hold_asking, 1);
		break;
	case ASKS_SOCKET:
		hold_mutex(&lock, hold_asking_socket, 1);
		break;
	case ASKS_STOPPED:
		hold_mutex(&lock, hold_asking_stopped, 1);
		break;
	default:
		hold_without_owner(self->way);
	}
	return NULL;
}

static void make(struct holder *holder, void *(*run)(void *), const char *name)
{
	if (pthread_create(&holder->thread, NULL, run, holder))
		exit(EXIT_FAILURE);
	pthread_setname_np(holder->thread, name);
}

/* Waits in a function of its own for each kind of lock. */
static void take(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	pthread_mutex_unlock(mutex);
}

static void take_timed(void)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 60;
	if (!pthread_mutex_timedlock(&lock, &end))
		pthread_mutex_unlock(&lock);
}

static void take_rwlock(bool writes)
{
	if (writes)
		pthread_rwlock_wrlock(&rwlock);
	else
		pthread_rwlock_rdlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
}

static void await_condition(void)
{
	pthread_mutex_lock(&lock);
	while (is_held)
		pthread_cond_wait(&condition, &lock);
	pthread_mutex_unlock(&lock);
}

static void take_own(void)
{
	while (own_lock[0])
		syscall(SYS_futex, &own_lock[0], FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

/* Between two yields it computes, deeper in the stack than the call. */
void check_deeply(char *bytes);

STEP void check_deeply(char *bytes)
{
	for (int i = 0; i < 512; i++)
		((volatile char *)bytes)[i] = (char)i;
	STAY();
}

void spin_yielding(void);

STEP void spin_yielding(void)
{
	char bytes[512];

	while (is_held) {
		sched_yield();
		check_deeply(bytes);
	}
	STAY();
}

void spin_napping(void);

STEP void spin_napping(void)
{
	const struct timespec moment = {0, 100000};

	while (is_held)
		nanosleep(&moment, NULL);
	STAY();
}

static void wait_without_owner(enum way way)
{
	switch (way) {
	case CONDITION:
		await_condition();
		break;
	case SEMAPHORE:
		while (sem_wait(&semaphore))
			;
		break;
	case OWN:
		take_own();
		break;
	case SPINS:
		spin_yielding();
		break;
	case NAPS:
		spin_napping();
		break;
	default:
		break;
	}
}

/*
 * What all steps do: much more than what waiting costs. A step is held against those with as much
 * work, and those that wait must not be of a class of their own, where that is usual.
 */
static void work(void)
{
	for (int i = 0; i < 400000; i++)
		__asm__ volatile("" ::: "memory");
}

STEP void look_step(int way)
{
	work();
	begun = 1;
	switch (way) {
	case SLEEPS:
	case COMPUTES:
	case CHAIN:
	case READS:
	case STARVED:
	case TWO:
	case ASKS:
	case ASKS_SOCKET:
	case ASKS_STOPPED:
		take(&lock);
		break;
	case READER:
	case WRITER:
	case MANY_READERS:
		take_rwlock(way != READER);
		break;
	case INHERITS:
		take(&inheriting);
		break;
	case RECURSES:
		take(&recursive);
		break;
	case ROBUST:
		take(&robust);
		break;
	case TIMED:
		take_timed();
		break;
	default:
		wait_without_owner((enum way)way);
	}
	STAY();
}

static void write_truth(enum way way)
{
	const char *separator = ftell(truth) > 12 ? ", " : "";

	fprintf(truth,
		"%s{\"way\": \"%s\", \"holder\": %d, \"function\": \"%s\", \"second\": %d, "
		"\"second_function\": \"%s\", \"then\": %d, \"peer\": %d}",
		separator, names[way], first.tid, functions[way][0], way == CHAIN ? other.tid : 0,
		functions[way][1], way == TWO ? other.tid : 0, way >= ASKS ? (int)server : 0);
}

/* Leaves the first CPU, which is taken away: on it this thread would begin its step only later. */
static void leave_first_cpu(void)
{
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) || CPU_COUNT(&cpus) < 2)
		return;
	CPU_CLR(0, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

/* Of glibc: 2 is a lock for which a thread waits, or is just about to. */
static void await_waiter(pthread_mutex_t *mutex)
{
	while (__atomic_load_n(&mutex->__data.__lock, __ATOMIC_ACQUIRE) != 2)
		nap(1);
	nap(2);
}

/* Has the lock held, and then waits for it in a step. */
static void run_way(enum way way)
{
	is_held = false;
	begun = 0;
	first.way = way;
	if (way == READS)
		make(&feeder, feed, "feeder");
	if (way == STARVED) {
		leave_first_cpu();
		make(&hogging, hog, "hog");
	}
	if (way == CHAIN)
		make(&other, keep_second, "h-second");
	if (way == TWO)
		make(&other, take_first, "h-second");
	if (way == ASKS_STOPPED)
		make(&feeder, wake_server, "feeder");
	make(&first, run_holder, "h-first");
	while (!is_held)
		nap(1);
	if (way == CHAIN)
		await_waiter(&second);
	if (way == TWO)
		await_waiter(&lock);
	look_step((int)way);
	pthread_join(first.thread, NULL);
	if (way == READS || way == ASKS_STOPPED)
		pthread_join(feeder.thread, NULL);
	if (way == STARVED)
		pthread_join(hogging.thread, NULL);
	if (way == CHAIN || way == TWO)
		pthread_join(other.thread, NULL);
	write_truth(way);
}

static void make_locks(void)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&recursive, &attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_NORMAL);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&inheriting, &attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_NONE);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&robust, &attributes);
	sem_init(&semaphore, 0, 0);
}

int main(int argc, char **argv)
{
	truth = open_truth(argv);
	if (pipe(pipe_fds) || !start_server())
		return EXIT_FAILURE;
	make_locks();
	fprintf(truth, "{\"waits\": [");
	wait_for_go();
	for (int i = 0; argc > 3 && i < WAYS; i++) {
		hold_ms = 6000;
		if (!strcmp(argv[3], names[i]))
			run_way((enum way)i);
	}
	for (int i = 0; argc <= 3 && i < WARM; i++)
		look_step(-1);
	for (long i = 1; argc <= 3 && i <= number_at(argv, 2, 1) * WAYS * EVERY; i++) {
		if (i % EVERY)
			look_step(-1);
		else
			run_way((enum way)(i / EVERY % WAYS));
	}
	fprintf(truth, "]}\n");
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}

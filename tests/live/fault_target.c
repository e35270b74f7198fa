/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * fault_target TRUTH THREADS PAUSE_US CALLS: threads that make steps until SIGTERM. Step n of a
 * thread makes CALLS + n % 5 getppid calls, n % 3 reads and n / 3 % 2 writes that fail. The counts
 * are in a mapped file, so that they survive the kill of any process:
 *
 *	u64 magic, threads, capacity, bad, done, reserved[3]
 *	per thread: u64 tid, begun, ended, reserved; then capacity times u64 begin_ns, end_ns
 *
 * bad counts calls with a wrong result. done is set when the program ends normally.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include "program.h"

#define MAGIC	    0x7475727468746c66ull
#define CAPACITY    (1 << 20)
#define THREADS_MAX 16

struct span {
	uint64_t begin_ns;
	uint64_t end_ns;
};

struct account {
	uint64_t tid;
	uint64_t begun;
	uint64_t ended;
	uint64_t reserved;
	struct span spans[CAPACITY];
};

struct truth {
	uint64_t magic;
	uint64_t threads;
	uint64_t capacity;
	uint64_t bad;
	uint64_t done;
	uint64_t reserved[3];
	struct account accounts[];
};

struct worker {
	pthread_t thread;
	struct truth *truth;
	struct account *account;
	long number;
	long pause_us;
	long calls;
	long parent;
};

static volatile sig_atomic_t ending;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void expect(struct worker *w, int as_wanted)
{
	if (!as_wanted)
		__atomic_add_fetch(&w->truth->bad, 1, __ATOMIC_RELAXED);
}

long fault_step(struct worker *w, long thread, long n);

STEP long fault_step(struct worker *w, long thread, long n)
{
	char byte = 0;

	for (long i = 0; i < w->calls + n % 5; i++)
		expect(w, syscall(SYS_getppid) == w->parent);
	for (long i = 0; i < n % 3; i++)
		expect(w, syscall(SYS_read, -1, &byte, 1) == -1 && errno == EBADF);
	for (long i = 0; i < n / 3 % 2; i++)
		expect(w, syscall(SYS_write, -1, &byte, 1) == -1 && errno == EBADF);
	STAY();
	return thread;
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;
	struct account *account = w->account;
	struct timespec pause = {w->pause_us / 1000000, w->pause_us % 1000000 * 1000};

	account->tid = (uint64_t)syscall(SYS_gettid);
	for (long n = 0; n < CAPACITY && !ending; n++) {
		struct span *span = &account->spans[n];

		if (w->pause_us)
			nanosleep(&pause, NULL);
		span->begin_ns = now_ns();
		__atomic_store_n(&account->begun, (uint64_t)n + 1, __ATOMIC_RELEASE);
		expect(w, fault_step(w, w->number, n) == w->number);
		span->end_ns = now_ns();
		__atomic_store_n(&account->ended, (uint64_t)n + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void on_signal(int signo)
{
	ending = signo;
}

static struct truth *map_truth(const char *path, long threads)
{
	size_t size = sizeof(struct truth) + (size_t)threads * sizeof(struct account);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct truth *truth;

	if (fd < 0 || ftruncate(fd, (off_t)size))
		return NULL;
	truth = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (truth == MAP_FAILED)
		return NULL;
	truth->threads = (uint64_t)threads;
	truth->capacity = CAPACITY;
	truth->magic = MAGIC;
	return truth;
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS_MAX];
	long threads = number_at(argv, 2, 2);
	const struct sigaction action = {.sa_handler = on_signal};
	struct truth *truth;

	if (argc < 2 || threads < 1 || threads > THREADS_MAX)
		return 2;
	truth = map_truth(argv[1], threads);
	if (!truth) {
		perror(argv[1]);
		return 2;
	}
	sigaction(SIGTERM, &action, NULL);
	wait_for_go();
	for (long i = 0; i < threads; i++) {
		workers[i] = (struct worker){
			.truth = truth,
			.account = &truth->accounts[i],
			.number = i,
			.pause_us = number_at(argv, 3, 200),
			.calls = number_at(argv, 4, 3),
			.parent = getppid(),
		};
		if (pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]))
			return 2;
	}
	for (long i = 0; i < threads; i++)
		pthread_join(workers[i].thread, NULL);
	truth->done = 1;
	return truth->bad ? 3 : 0;
}

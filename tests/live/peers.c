/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * peers TRUTH WAY ROUNDS [LATE_MS]: steps that ask another process and wait for its answer, in that
 * WAY. In some of them the other process comes late, by 0.3 s or LATE_MS: it computes, sleeps, is
 * stopped by a third one, has no CPU, or waits for a process behind it. Its account says which, how
 * long the wait was, and how many calls it made. By "yield" the processes share a memfd, by "nap" a
 * file in /dev/shm, else anonymous memory.
 */
#include <inttypes.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "judge/engine.h"

enum {
	FIRST = 800, /* steps before the first trouble: by then it is known who shares memory */
	EVERY = 15,
	LATE_MS = 300,
	NAP_US = 200,
	TIMEOUT_US = 5000,
	ROWS_MAX = 4000,
};

enum way { YIELD, NAP, POLL, FUTEX, FUTEX_LONG, PIPE, SOCKET, WAYS };
static const char *const ways[WAYS] = {"yield",	     "nap",  "poll",  "futex",
				       "futex_long", "pipe", "socket"};

enum trouble { NONE, COMPUTES, SLEEPS, STOPPED, STARVED, BEHIND, TROUBLES };
static const char *const troubles[TROUBLES] = {"none",	  "computes", "sleeps",
					       "stopped", "starved",  "behind"};

struct row {
	enum trouble trouble;
	uint64_t wait_ns;
	uint64_t calls; /* of the wait, in the step */
};

/* What the processes share. */
struct common {
	uint32_t answer;
};

struct engine_pair {
	enum way way;
	struct common *common;
	uint32_t *is_on; /* of the peer and the third process, which has done its part */
	int ask[2], answer[2], order[2]; /* pipes, answer may be a pair of sockets */
	int wish[2], gift[2];		 /* pipes from the peer to the source, and back */
	int epoll;
	long late_us;
	pid_t peer, third, source;
	uint32_t asked;
	struct row *row;
};

static void pin(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	must(sched_setaffinity(0, sizeof(cpus), &cpus) == 0, "sched_setaffinity");
}

static void be_first(int priority)
{
	const struct sched_param first = {.sched_priority = priority};

	must(sched_setscheduler(0, priority ? SCHED_FIFO : SCHED_OTHER, &first) == 0,
	     "sched_setscheduler");
}

static uint32_t load(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void spin_for(uint64_t begin, long us)
{
	while (!passed(begin, us))
		;
}

/* Holds the peer for some time: stops it, or takes its CPU. */
static void third_main(const struct engine_pair *pair)
{
	char trouble;

	pin(1);
	be_first(50);
	while (read(pair->order[0], &trouble, 1) == 1) {
		if (trouble == STOPPED)
			must(kill(pair->peer, SIGSTOP) == 0, "kill");
		if (trouble == STOPPED)
			pause_us(pair->late_us);
		else
			spin_for(clock_ns(CLOCK_MONOTONIC), pair->late_us);
		__atomic_store_n(pair->is_on, 1, __ATOMIC_RELEASE);
		if (trouble == STOPPED)
			must(kill(pair->peer, SIGCONT) == 0, "kill");
	}
	exit(EXIT_SUCCESS);
}

/* The process behind the peer. */
static void source_main(const struct engine_pair *pair)
{
	char byte;

	munmap(pair->is_on, 4096);
	while (read(pair->wish[0], &byte, 1) == 1) {
		pause_us(pair->late_us);
		must(write(pair->gift[1], &byte, 1) == 1, "write");
	}
	exit(EXIT_SUCCESS);
}

static void come_late(const struct engine_pair *pair, char trouble)
{
	uint64_t end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)pair->late_us * US;

	if (trouble == BEHIND)
		must(write(pair->wish[1], &trouble, 1) == 1 &&
			     read(pair->gift[0], &trouble, 1) == 1,
		     "gift");
	if (trouble == SLEEPS)
		pause_us(pair->late_us);
	/* This clock is read by a system call. */
	while (trouble == COMPUTES && clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns)
		for (volatile int busy = 0; busy < 100000; busy = busy + 1)
			;
	if (trouble != STOPPED && trouble != STARVED)
		return;
	__atomic_store_n(pair->is_on, 0, __ATOMIC_RELEASE);
	must(write(pair->order[1], &trouble, 1) == 1, "write");
	while (!load(pair->is_on))
		;
}

void peer_step(const struct engine_pair *pair, char trouble);

STEP void peer_step(const struct engine_pair *pair, char trouble)
{
	if (trouble)
		come_late(pair, trouble);
	else
		spin_for(clock_ns(CLOCK_MONOTONIC), 200);
	STAY();
}

static void peer_main(const struct engine_pair *pair)
{
	char trouble;

	prctl(PR_SET_NAME, "the-peer");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(1);
	while (read(pair->ask[0], &trouble, 1) == 1) {
		peer_step(pair, trouble);
		__atomic_fetch_add(&pair->common->answer, 1, __ATOMIC_RELEASE);
		if (pair->way == FUTEX || pair->way == FUTEX_LONG)
			syscall(SYS_futex, &pair->common->answer, FUTEX_WAKE, 1, NULL, NULL, 0);
		else if (pair->way == POLL || pair->way == PIPE || pair->way == SOCKET)
			must(write(pair->answer[1], "", 1) == 1, "write");
	}
	exit(EXIT_SUCCESS);
}

static bool look(struct engine_pair *pair)
{
	const struct timespec nap = {0, NAP_US * US}, timeout = {0, TIMEOUT_US * US};
	uint32_t *word = &pair->common->answer;
	struct epoll_event event;
	char byte;

	if (pair->way == POLL) {
		pair->row->calls++;
		if (epoll_wait(pair->epoll, &event, 1, 0) != 1)
			return false;
	}
	if (pair->way == POLL || pair->way == PIPE || pair->way == SOCKET) {
		must(read(pair->answer[0], &byte, 1) == 1, "read");
		return true;
	}
	if (load(word) == pair->asked)
		return true;
	pair->row->calls++;
	if (pair->way == YIELD)
		sched_yield();
	else if (pair->way == NAP)
		nanosleep(&nap, NULL);
	else
		syscall(SYS_futex, word, FUTEX_WAIT, pair->asked - 1,
			pair->way == FUTEX ? &timeout : NULL, NULL, 0);
	return false;
}

void waiting_step(struct engine_pair *pair);

STEP void waiting_step(struct engine_pair *pair)
{
	char trouble = (char)pair->row->trouble;
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);

	pair->asked++;
	must(write(pair->ask[1], &trouble, 1) == 1, "write");
	while (!look(pair))
		;
	pair->row->wait_ns = clock_ns(CLOCK_MONOTONIC) - begin;
	spin_for(clock_ns(CLOCK_MONOTONIC), 300);
	STAY();
}

static void write_truth(FILE *truth, const struct engine_pair *pair, const struct row *rows,
			long count)
{
	fprintf(truth, "{\"peer\": %d, \"third\": %d, \"source\": %d, \"steps\": [",
		(int)pair->peer, (int)pair->third, (int)pair->source);
	for (long i = 0; i < count; i++)
		fprintf(truth,
			"%s\n{\"trouble\": \"%s\", \"ns\": %" PRIu64 ", \"calls\": %" PRIu64 "}",
			i ? "," : "", troubles[rows[i].trouble], rows[i].wait_ns, rows[i].calls);
	fprintf(truth, "]}\n");
	fclose(truth);
}

/* The name of the memory in /dev/shm. */
static const char *shm_name(void)
{
	static char name[64];

	snprintf(name, sizeof(name), "/fbt_peers_%d", (int)getpid());
	return name;
}

/* One page that the processes share. */
static void *share(enum way way)
{
	int flags = way == YIELD || way == NAP ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, fd = -1;
	void *page;

	if (way == YIELD)
		fd = memfd_create("fbt_peers", MFD_CLOEXEC);
	if (way == NAP)
		fd = shm_open(shm_name(), O_RDWR | O_CREAT | O_EXCL, 0600);
	must(flags & MAP_ANONYMOUS || (fd >= 0 && !ftruncate(fd, 4096)), "shared memory");
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, fd, 0);
	must(page != MAP_FAILED, "mmap");
	if (fd >= 0)
		close(fd);
	return page;
}

/* A process that shares no memory with the step, nor an end of a pipe that a step reads from. */
static pid_t start_beside(struct engine_pair *pair, const char *name,
			  void (*run)(const struct engine_pair *pair))
{
	pid_t pid = fork();

	must(pid >= 0, "fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, name);
	close(pair->answer[0]);
	close(pair->ask[1]);
	munmap(pair->common, 4096);
	run(pair);
	exit(EXIT_FAILURE);
}

static void start_peer(struct engine_pair *pair)
{
	pair->peer = fork();
	must(pair->peer >= 0, "fork");
	if (pair->peer)
		return;
	close(pair->answer[0]);
	close(pair->ask[1]);
	close(pair->gift[1]);
	peer_main(pair);
}

static void set_up(struct engine_pair *pair)
{
	struct epoll_event event = {.events = EPOLLIN};

	pair->common = share(pair->way);
	pair->is_on = share(WAYS);
	must(!pipe(pair->ask) && !pipe(pair->order) && !pipe(pair->wish) && !pipe(pair->gift),
	     "pipe");
	if (pair->way == SOCKET)
		must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair->answer), "socketpair");
	else
		must(!pipe(pair->answer), "pipe");
	pair->epoll = epoll_create1(0);
	must(!epoll_ctl(pair->epoll, EPOLL_CTL_ADD, pair->answer[0], &event), "epoll_ctl");
	start_peer(pair);
	close(pair->answer[1]);
	pair->source = start_beside(pair, "the-source", source_main);
	close(pair->gift[1]);
	pair->third = start_beside(pair, "the-third", third_main);
	munmap(pair->is_on, 4096);
	pin(0);
}

int main(int argc, char **argv)
{
	static struct row rows[ROWS_MAX];
	struct engine_pair pair = {.way = WAYS};
	FILE *truth = open_truth(argv);
	long rounds = number_at(argv, 3, 1), count = FIRST + rounds * (TROUBLES - 1) * EVERY;

	for (int i = 0; argc > 2 && i < WAYS; i++)
		if (!strcmp(argv[2], ways[i]))
			pair.way = (enum way)i;
	pair.late_us = 1000 * number_at(argv, 4, LATE_MS);
	must(pair.way != WAYS && count <= ROWS_MAX, "usage");
	set_up(&pair);
	wait_for_go();
	for (long i = 0; i < count; i++) {
		long due = i - FIRST;

		pair.row = &rows[i];
		if (rounds && due >= 0 && due % EVERY == EVERY / 2)
			rows[i].trouble = 1 + (int)(due / EVERY) % (TROUBLES - 1);
		waiting_step(&pair);
		pause_us(1000);
	}
	write_truth(truth, &pair, rows, count);
	if (pair.way == NAP)
		shm_unlink(shm_name());
	kill(pair.peer, SIGKILL);
	kill(pair.third, SIGKILL);
	kill(pair.source, SIGKILL);
	return 0;
}

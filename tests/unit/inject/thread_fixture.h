/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A child whose threads do, or wait in, what a test wants, and what /proc shows of them. x86-64.
 * Include after cmocka.h.
 */
#ifndef FBT_THREAD_FIXTURE_H
#define FBT_THREAD_FIXTURE_H

#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../fake/seccomp_filters.h"

#define PATIENCE_S  120
#define TASKS	    8
#define STACK_BYTES 65536
#define PAUSES	    20

/* What a thread of the child does or waits in. */
enum task {
	TASK_NONE,
	TASK_PAUSE, /* INJECT_RANK_RESTART */
	TASK_SLEEP, /* INJECT_RANK_BLOCK */
	TASK_EPOLL, /* INJECT_RANK_EINTR */
	TASK_SPIN,
	TASK_LOCK,
	TASK_OFTEN,  /* as TASK_PAUSE, after several sleeps */
	TASK_LOADER, /* as TASK_PAUSE, by a syscall instruction of ld.so */
	TASK_FIFO,   /* as TASK_PAUSE, with a real-time policy */
	TASK_NICE,   /* as TASK_PAUSE, with a low priority */
	TASK_IDLE,   /* as TASK_PAUSE, runs only where a CPU is idle */
	TASK_FILTERED,
	TASK_FILTERED_SLEEP,
	TASK_READ,
	TASK_EXIT, /* the thread ends; only for the first thread */
};

struct child {
	pid_t pid;
	bool cannot;
	int input[2];
	uint32_t tids[TASKS];
	enum task tasks[TASKS]; /* the first entry is the first thread's */
	size_t many;		/* number of further threads, all with TASK_PAUSE */
	size_t many_there;
};

static inline int setup(void **state)
{
	struct child *child = mmap(NULL, sizeof(*child), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (child == MAP_FAILED || pipe(child->input))
		return -1;
	alarm(PATIENCE_S);
	*state = child;
	return 0;
}

static inline int teardown(void **state)
{
	struct child *child = *state;

	alarm(0);
	if (child->pid > 0) {
		kill(child->pid, SIGKILL);
		waitpid(child->pid, NULL, 0);
	}
	close(child->input[0]);
	close(child->input[1]);
	munmap(child, sizeof(*child));
	return 0;
}

/* Finds a syscall instruction in ld.so. */
static inline int find_gate(struct dl_phdr_info *info, size_t size, void *gate)
{
	if (info->dlpi_addr != getauxval(AT_BASE))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		const char *code = (const char *)info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X)
			*(const void **)gate = memmem(code, segment->p_filesz, "\x0f\x05", 2);
	}
	return 1;
}

static inline void pause_in_loader(struct child *child)
{
	const void *gate = NULL;
	long nr = SYS_pause;

	dl_iterate_phdr(find_gate, (void *)&gate);
	if (!gate) {
		child->cannot = true;
		return;
	}
	/* The jump does not return. */
	__asm__ volatile("jmp *%1" : : "a"(nr), "r"(gate) : "rcx", "r11", "memory");
}

static inline void turn_real_time(struct child *child)
{
	struct sched_param param = {.sched_priority = 1};

	child->cannot |= sched_setscheduler(0, SCHED_FIFO, &param) != 0;
}

static inline void turn_idle(struct child *child)
{
	static const struct sched_param param;

	child->cannot |= sched_setscheduler(0, SCHED_IDLE, &param) != 0;
}

static inline void put_filter_on(struct child *child)
{
	struct filter filter;

	filter_docker(&filter);
	child->cannot |= filter_install(&filter) != 0;
}

static inline void be_task(struct child *child, enum task task)
{
	static const struct timespec time = {1000, 0}, moment = {0, 1000};
	static uint32_t lock = 2;
	struct epoll_event event;
	char byte;

	switch (task) {
	case TASK_SLEEP:
		syscall(SYS_nanosleep, &time, NULL);
		break;
	case TASK_EPOLL:
		syscall(SYS_epoll_wait, epoll_create1(0), &event, 1, -1);
		break;
	case TASK_SPIN:
		for (;;)
			__asm__ volatile("pause");
		break;
	case TASK_LOCK:
		syscall(SYS_futex, &lock, 128, 2, NULL, NULL, 0);
		break;
	case TASK_OFTEN:
		for (int i = 0; i < PAUSES; i++)
			nanosleep(&moment, NULL);
		break;
	case TASK_LOADER:
		pause_in_loader(child);
		break;
	case TASK_FIFO:
		turn_real_time(child);
		break;
	case TASK_NICE:
		child->cannot |= setpriority(PRIO_PROCESS, 0, 19) != 0;
		break;
	case TASK_IDLE:
		turn_idle(child);
		break;
	case TASK_FILTERED:
		put_filter_on(child);
		break;
	case TASK_FILTERED_SLEEP:
		put_filter_on(child);
		syscall(SYS_nanosleep, &time, NULL);
		break;
	case TASK_READ:
		syscall(SYS_read, child->input[0], &byte, 1);
		break;
	case TASK_EXIT:
		pthread_exit(NULL);
	default:
		break;
	}
	for (;;)
		syscall(SYS_pause);
}

struct start {
	struct child *child;
	size_t index;
};

static inline void *run_task(void *arg)
{
	struct start *start = arg;
	struct child *child = start->child;

	__atomic_store_n(&child->tids[start->index], (uint32_t)gettid(), __ATOMIC_RELEASE);
	be_task(child, child->tasks[start->index]);
	return NULL;
}

static inline void *run_many(void *arg)
{
	struct child *child = arg;

	__atomic_fetch_add(&child->many_there, 1, __ATOMIC_RELEASE);
	be_task(child, TASK_PAUSE);
	return NULL;
}

static inline void be_child(struct child *child)
{
	static struct start starts[TASKS];
	pthread_attr_t attributes;
	pthread_t id;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	for (size_t i = 1; i < TASKS && child->tasks[i]; i++) {
		starts[i] = (struct start){child, i};
		child->cannot |= pthread_create(&id, NULL, run_task, &starts[i]) != 0;
	}
	for (size_t i = 0; i < child->many; i++)
		child->cannot |= pthread_create(&id, &attributes, run_many, child) != 0;
	starts[0] = (struct start){child, 0};
	run_task(&starts[0]);
	_exit(0);
}

/* The thread's state, and the number of the call that it waits in; -1: it is in no call. */
static inline char look(pid_t pid, uint32_t tid, long *nr)
{
	char path[64], line[1024], state = '?';
	FILE *file;

	*nr = -1;
	snprintf(path, sizeof(path), "/proc/%d/task/%u/syscall", pid, tid);
	file = fopen(path, "re");
	if (file && fgets(line, sizeof(line), file) && line[0] != 'r')
		*nr = strtol(line, NULL, 10);
	if (file)
		fclose(file);
	snprintf(path, sizeof(path), "/proc/%d/task/%u/stat", pid, tid);
	file = fopen(path, "re");
	if (file && fgets(line, sizeof(line), file) && strrchr(line, ')'))
		state = strrchr(line, ')')[2];
	if (file)
		fclose(file);
	return state;
}

static inline bool is_there(pid_t pid, uint32_t tid, enum task task)
{
	long nr;
	char state = look(pid, tid, &nr);

	switch (task) {
	case TASK_SPIN:
		return state == 'R';
	case TASK_EXIT:
		return state == 'Z';
	case TASK_SLEEP:
	case TASK_FILTERED_SLEEP:
		return state == 'S' && nr == SYS_nanosleep;
	case TASK_EPOLL:
		return state == 'S' && nr == SYS_epoll_wait;
	case TASK_LOCK:
		return state == 'S' && nr == SYS_futex;
	case TASK_READ:
		return state == 'S' && nr == SYS_read;
	default:
		return state == 'S' && nr == SYS_pause;
	}
}

/*
 * Starts the child with its tasks. Some of the many threads may not wait yet. false: a task is not
 * possible here.
 */
static inline bool start(struct child *child)
{
	pid_t pid = fork(); /* the child sees the same struct */

	assert_true(pid >= 0);
	if (!pid)
		be_child(child);
	child->pid = pid;
	for (size_t i = 0; i < TASKS && (!i || child->tasks[i]); i++) {
		while (!__atomic_load_n(&child->tids[i], __ATOMIC_ACQUIRE) ||
		       (!child->cannot && !is_there(child->pid, child->tids[i], child->tasks[i])))
			usleep(500);
	}
	while (!child->cannot &&
	       __atomic_load_n(&child->many_there, __ATOMIC_ACQUIRE) < child->many)
		usleep(500);
	return !child->cannot;
}

#endif

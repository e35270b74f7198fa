/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A lock in llama.cpp that another thread holds now and then, without a change to llama.cpp: loaded
 * by LD_PRELOAD, this library comes before libggml-base where libllama looks for the function that
 * llama_decode computes with, and takes a mutex around it. A thread of this library holds that
 * mutex for FBT_LOCK_MS whenever a byte can be read from the FIFO FBT_LOCK_GO. Each call that found
 * the mutex held is a line in FBT_LOCK_LOG: begin and end of its wait (CLOCK_MONOTONIC ns) and the
 * thread: the truth that a test compares with.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef int compute_fn(void *sched, void *graph);

/* The interposed function has no argument for this state, so the state is global. */
static struct {
	pthread_once_t once;
	pthread_mutex_t lock;
	compute_fn *compute;
	int go, log;
	struct timespec held;
} state = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER, .go = -1, .log = -1};

int ggml_backend_sched_graph_compute_async(void *sched, void *graph);

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void *hold_when_told(void *arg)
{
	char byte;

	while (read(state.go, &byte, 1) == 1) {
		pthread_mutex_lock(&state.lock);
		nanosleep(&state.held, NULL);
		pthread_mutex_unlock(&state.lock);
	}
	return arg;
}

/* The addon was loaded with a local scope, so RTLD_NEXT does not see libggml-base. */
static void set_up(void)
{
	const char *ms = getenv("FBT_LOCK_MS"), *go = getenv("FBT_LOCK_GO");
	const char *log = getenv("FBT_LOCK_LOG");
	void *library = dlopen("libggml-base.so", RTLD_LAZY | RTLD_NOLOAD);
	long held_ms = ms ? strtol(ms, NULL, 10) : 300;
	pthread_t holder;

	if (library)
		*(void **)&state.compute = dlsym(library, "ggml_backend_sched_graph_compute_async");
	if (!state.compute || !go || !log) {
		fputs("held_lock: no libggml-base.so, FBT_LOCK_GO or FBT_LOCK_LOG\n", stderr);
		abort();
	}
	state.held = (struct timespec){held_ms / 1000, held_ms % 1000 * 1000000};
	state.log = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	state.go = open(go, O_RDONLY | O_CLOEXEC);
	if (state.log < 0 || state.go < 0 ||
	    pthread_create(&holder, NULL, hold_when_told, NULL) != 0) {
		perror("held_lock");
		abort();
	}
}

__attribute__((visibility("default"))) int ggml_backend_sched_graph_compute_async(void *sched,
										  void *graph)
{
	uint64_t begin = now_ns();
	int ret;

	pthread_once(&state.once, set_up);
	if (pthread_mutex_trylock(&state.lock) != 0) {
		pthread_mutex_lock(&state.lock);
		dprintf(state.log, "%llu %llu %ld\n", (unsigned long long)begin,
			(unsigned long long)now_ns(), syscall(SYS_gettid));
	}
	ret = state.compute(sched, graph);
	pthread_mutex_unlock(&state.lock);
	return ret;
}

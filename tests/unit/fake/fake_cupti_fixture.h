/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A client of CUPTI's double. It keeps the double's rules, except where a test breaks one. Each
 * client runs in its own process, because a broken rule ends it. Include after cmocka.h.
 */
#ifndef FBT_FAKE_CUPTI_FIXTURE_H
#define FBT_FAKE_CUPTI_FIXTURE_H

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "../fake/fake_cuda.h"

#define BUFFER_BYTES 65536
#define RECORDS_MAX  4096

struct params {
	size_t size;
	const char *name;
	char *old_name;
	size_t old_name_size;
};

/* A record as the client read it from its buffer. */
struct taken {
	uint32_t kind;
	uint32_t correlation;
	uint64_t start;
	uint64_t end;
	uint32_t graph;
	uint32_t cbid;
};

struct client {
	int (*subscribe)(void **, void *, void *);
	int (*subscribe_v2)(void **, void *, void *, struct params *);
	int (*unsubscribe)(void *);
	int (*enable)(uint32_t);
	int (*disable)(uint32_t);
	int (*enable_runtime_api)(uint32_t, uint8_t);
	int (*register_callbacks)(void (*)(uint8_t **, size_t *, size_t *),
				  void (*)(void *, uint32_t, uint8_t *, size_t, size_t));
	int (*register_timestamp)(uint64_t (*)(void));
	int (*set_attribute)(uint32_t, size_t *, void *);
	int (*flush_all)(uint32_t);
	int (*get_next_record)(uint8_t *, size_t, uint8_t **);
	int (*get_dropped)(void *, uint32_t, size_t *);
	int (*get_timestamp)(uint64_t *);
	int (*get_version)(uint32_t *);
	int (*get_callback_name)(uint32_t, uint32_t, const char **);
	int (*enable_callback)(uint32_t, void *, uint32_t, uint32_t);
	int (*finalize)(void);
	void (*launch)(struct fake_launch *);
	void (*wait)(struct fake_wait *);
	void (*noise)(uint32_t);
	void *subscriber;
	uint8_t *last;	     /* the buffer that was handed out last */
	const char *trouble; /* what the client does wrong */
	struct taken taken[RECORDS_MAX];
	uint32_t count;
	bool dirty; /* buffers are not zeroed */
};

static struct client client;

/* Kinds of records for begin(). */
static const uint32_t kernels[] = {10, 0};
static const uint32_t kernels_and_calls[] = {10, 5, 0};

static inline uint64_t read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static inline uint64_t monotonic(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

static inline uint64_t realtime(void)
{
	return read_clock(CLOCK_REALTIME);
}

static inline void request(uint8_t **buffer, size_t *size, size_t *records)
{
	const char *trouble = client.trouble ? client.trouble : "";

	*records = 0;
	*size = BUFFER_BYTES;
	if (strcmp(trouble, "null") == 0)
		return;
	if (strcmp(trouble, "flush in request") == 0)
		client.flush_all(0);
	if (strcmp(trouble, "same") != 0 || !client.last)
		client.last = aligned_alloc(4096, BUFFER_BYTES);
	memset(client.last, client.dirty ? 1 : 0, BUFFER_BYTES);
	*buffer = client.last + (strcmp(trouble, "crooked") == 0 ? 4 : 0);
}

static inline void take(const uint8_t *record)
{
	struct taken *taken = &client.taken[client.count++ % RECORDS_MAX];
	bool api, sync, work;

	memcpy(&taken->kind, record, 4);
	api = taken->kind == 4 || taken->kind == 5;
	sync = taken->kind == 38;
	work = taken->kind == 1 || taken->kind == 2 || taken->kind == 10;
	if (api)
		memcpy(&taken->cbid, record + 4, 4);
	memcpy(&taken->start, record + (work ? 16 : taken->kind == 17 ? 24 : 8), 8);
	memcpy(&taken->end, record + (work ? 24 : taken->kind == 17 ? 32 : 16), 8);
	memcpy(&taken->correlation,
	       record + (api		     ? 32
			 : sync		     ? 24
			 : taken->kind == 10 ? 92
			 : taken->kind == 17 ? 40
					     : 44),
	       4);
	if (work)
		memcpy(&taken->graph, record + (taken->kind == 10 ? 156 : 72), 4);
}

static inline void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size,
			     size_t valid)
{
	uint8_t *record = NULL;

	(void)context, (void)stream, (void)size;
	if (client.trouble && strcmp(client.trouble, "flush in completed") == 0)
		client.flush_all(0);
	while (client.get_next_record(buffer, valid, &record) == 0)
		take(record);
	free(buffer);
}

static inline void *find(void *library, const char *name)
{
	return dlsym(library, name);
}

static inline void load(const char *major)
{
	char self[PATH_MAX] = "", path[PATH_MAX + 64];
	void *cuda, *cupti;
	const char *folder;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		_exit(3);
	folder = dirname(self);
	snprintf(path, sizeof(path), "%s/libcuda.so.1", folder);
	cuda = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	snprintf(path, sizeof(path), "%s/libcupti.so.%s", folder, major);
	cupti = dlopen(path, RTLD_NOW);
	if (!cuda || !cupti) {
		fprintf(stderr, "%s\n", dlerror());
		_exit(3);
	}
#define FIND(library, field, name) *(void **)&client.field = find(library, name)
	FIND(cupti, subscribe, "cuptiSubscribe");
	FIND(cupti, subscribe_v2, "cuptiSubscribe_v2");
	FIND(cupti, unsubscribe, "cuptiUnsubscribe");
	FIND(cupti, enable, "cuptiActivityEnable");
	FIND(cupti, disable, "cuptiActivityDisable");
	FIND(cupti, enable_runtime_api, "cuptiActivityEnableRuntimeApi");
	FIND(cupti, register_callbacks, "cuptiActivityRegisterCallbacks");
	FIND(cupti, register_timestamp, "cuptiActivityRegisterTimestampCallback");
	FIND(cupti, set_attribute, "cuptiActivitySetAttribute");
	FIND(cupti, flush_all, "cuptiActivityFlushAll");
	FIND(cupti, get_next_record, "cuptiActivityGetNextRecord");
	FIND(cupti, get_dropped, "cuptiActivityGetNumDroppedRecords");
	FIND(cupti, get_timestamp, "cuptiGetTimestamp");
	FIND(cupti, get_version, "cuptiGetVersion");
	FIND(cupti, get_callback_name, "cuptiGetCallbackName");
	FIND(cupti, enable_callback, "cuptiEnableCallback");
	FIND(cupti, finalize, "cuptiFinalize");
	FIND(cuda, launch, "fake_cuda_launch");
	FIND(cuda, wait, "fake_cuda_wait");
	FIND(cuda, noise, "fake_cuda_noise");
#undef FIND
}

/* Asserts a fact within a client. On failure the text names the fact. */
#define MUST(fact)                                                                                 \
	do {                                                                                       \
		if (!(fact)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #fact);                 \
			_exit(2);                                                                  \
		}                                                                                  \
	} while (0)

/* Makes a client ready to record: subscriber, callbacks, and kinds; 0 ends the kinds. */
static inline void begin(const uint32_t *kinds)
{
	MUST(client.subscribe(&client.subscriber, NULL, NULL) == 0);
	MUST(client.register_callbacks(request, completed) == 0);
	for (; *kinds; kinds++)
		MUST(client.enable(*kinds) == 0);
}

static inline void launch_kernels(uint32_t count, uint32_t graph, uint64_t duration_ns,
				  struct fake_work *works)
{
	struct fake_launch launch = {.domain = FAKE_RUNTIME,
				     .runtime_cbid =
					     graph ? FAKE_CUDA_GRAPH_LAUNCH : FAKE_CUDA_LAUNCH,
				     .driver_cbid = graph ? FAKE_CU_GRAPH_LAUNCH : FAKE_CU_LAUNCH,
				     .count = count,
				     .works = works,
				     .api_ns = 1000};

	for (uint32_t i = 0; i < count; i++)
		works[i] = (struct fake_work){.kind = FAKE_KERNEL,
					      .graph = graph,
					      .graph_node = graph ? i + 1 : 0,
					      .duration_ns = duration_ns,
					      .name = "kernel"};
	client.launch(&launch);
}

static inline void pause_ms(long ms)
{
	struct timespec time = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&time, NULL);
}

static inline uint32_t count_taken(uint32_t kind)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < client.count; i++)
		count += client.taken[i].kind == kind;
	return count;
}

/*
 * Runs a client in a child with environment variables "NAME=VALUE"; NULL ends them. text gets the
 * child's stderr. Returns the wait status.
 */
static inline int run_client(void (*body)(void), const char *const *variables, const char *major,
			     char *text, size_t size)
{
	int pipes[2], status = -1;
	size_t length = 0;
	ssize_t got;
	pid_t pid;

	assert_return_code(pipe(pipes), 0);
	pid = fork();
	if (pid == 0) {
		dup2(pipes[1], STDERR_FILENO);
		for (; variables && *variables; variables++)
			putenv((char *)(uintptr_t)*variables);
		/* In the child, cmocka's own handler would continue with the next test. */
		signal(SIGABRT, SIG_DFL);
		load(major);
		body();
		_exit(0);
	}
	close(pipes[1]);
	while (length + 1 < size && (got = read(pipes[0], text + length, size - 1 - length)) > 0)
		length += (size_t)got;
	text[length] = '\0';
	close(pipes[0]);
	waitpid(pid, &status, 0);
	return status;
}

static inline void expect_good(void (*body)(void), const char *const *variables, const char *major)
{
	char text[1024];
	int status = run_client(body, variables, major, text, sizeof(text));

	if (status != 0)
		print_error("%s", text);
	assert_int_equal(status, 0);
}

static inline void expect_abort(void (*body)(void), const char *const *variables, const char *what)
{
	char text[1024];
	int status = run_client(body, variables, "13", text, sizeof(text));

	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || !strstr(text, what))
		print_error("status %x, said: %s, wanted: %s\n", (unsigned)status, text, what);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
	assert_non_null(strstr(text, what));
}

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * shim SHIM CUPTI feed ROUNDS | idle SECONDS: what libferrum_cupti.so costs its process, with
 * cupti_double.c as its CUPTI. A child of this process is the tool: it arms and reads.
 *
 *	feed	fills all buffers with launches and kernels and completes them, ROUNDS times; prints
 *		records=N ns=N syscalls=N lost=N rss_kib=N enabled=N
 *		ns and syscalls (-1: cannot be counted here) are of the callbacks alone; rss_kib is
 *what the shim has added, ring and buffers included idle	prints wakeups=F cpu_us=F enabled=N
 *rss_kib=N: a second of its threads, unarmed
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../cupti/buffer_pool.h"
#include "../../cupti/cupti_abi.h"
#include "base/clock.h"
#include "shim/ring.h"

#define NAMES	     24
#define KERNEL_BYTES 216 /* as cupti_double.c has it */
#define WAIT_NS	     10000000000ull

typedef void complete_fn(void *context, uint32_t stream, uint8_t *buffer, size_t size,
			 size_t valid);

struct bench {
	cupti_request_fn *request;
	complete_fn *complete;
	void (*callbacks)(cupti_request_fn **request, complete_fn **complete);
	uint32_t (*enabled)(void);
	const struct fbt_gpu_ring *ring;
	char names[NAMES][160];
	uint32_t correlation;
};

static void die(const char *what)
{
	fprintf(stderr, "bench_shim: %s\n", what);
	exit(EXIT_FAILURE);
}

struct totals {
	uint64_t works;
	uint64_t lost;
};

static void on_record(void *ctx, struct fbt_header *record)
{
	struct totals *totals = ctx;

	totals->works += record->type == FBT_EVENT_GPU_WORK;
	if (record->type == FBT_EVENT_GPU_FLUSH)
		totals->lost = ((struct fbt_gpu_flush *)record)->ring_lost;
}

/* The child: arms once a byte comes, reads until the pipe is closed, answers with its totals. */
static void play_tool(uint32_t tgid, int in, int out)
{
	struct totals totals = {0};
	struct gpu_ring *ring;
	uint32_t version, holder;
	uint64_t begin;
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(in, &byte, 1) != 1)
		_exit(0);
	if (gpu_ring__open(&ring, tgid, &version, &holder))
		die("no ring");
	gpu_ring__arm(ring);
	fcntl(in, F_SETFL, O_NONBLOCK);
	while (read(in, &byte, 1) != 0) {
		gpu_ring__beat(ring);
		if (gpu_ring__read(ring, on_record, &totals))
			die("the ring is not sound");
		usleep(200);
	}
	gpu_ring__disarm(ring);
	begin = clock_ns(CLOCK_MONOTONIC);
	while (!gpu_ring__is_dormant(ring) && clock_ns(CLOCK_MONOTONIC) - begin < WAIT_NS) {
		gpu_ring__read(ring, on_record, &totals);
		usleep(200);
	}
	gpu_ring__read(ring, on_record, &totals);
	_exit(write(out, &totals, sizeof(totals)) != sizeof(totals));
}

static const struct fbt_gpu_ring *find_ring(void)
{
	const struct dirent *entry;
	char path[300], name[64];
	void *map = MAP_FAILED;
	DIR *dir = opendir("/proc/self/fd");
	ssize_t size;

	while (dir && map == MAP_FAILED && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		size = readlink(path, name, sizeof(name) - 1);
		name[size > 0 ? size : 0] = 0;
		if (!strncmp(name, "/memfd:" FBT_GPU_MEMFD, strlen("/memfd:" FBT_GPU_MEMFD)))
			map = mmap(NULL, FBT_GPU_HEADER_BYTES, PROT_READ, MAP_SHARED,
				   atoi(entry->d_name), 0);
	}
	if (dir)
		closedir(dir);
	return map == MAP_FAILED ? NULL : map;
}

static uint64_t rss_kib(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	unsigned long long kib = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Rss: %llu kB", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

/* Injected as the driver would; in its own time it makes its ring. */
static void load(struct bench *bench, const char *shim, const char *cupti)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	int (*initialize)(void);
	void *library, *double_library;

	setenv("FERRUM_CUPTI_LIBRARY", cupti, 1);
	double_library = dlopen(cupti, RTLD_NOW);
	library = dlopen(shim, RTLD_NOW);
	if (!library || !double_library)
		die(dlerror());
	*(void **)&initialize = dlsym(library, "InitializeInjection");
	*(void **)&bench->callbacks = dlsym(double_library, "bench_cupti_callbacks");
	*(void **)&bench->enabled = dlsym(double_library, "bench_cupti_enabled");
	if (!initialize || !bench->callbacks || !bench->enabled)
		die("a symbol is missing");
	initialize();
	while (!bench->ring && clock_ns(CLOCK_MONOTONIC) - begin < WAIT_NS) {
		bench->ring = find_ring();
		usleep(1000);
	}
	if (!bench->ring)
		die("the shim made no ring");
}

/* Counts all system calls of this thread; -1 if that is not possible. */
static int open_counter(void)
{
	static const char *const paths[] = {
		"/sys/kernel/tracing/events/raw_syscalls/sys_enter/id",
		"/sys/kernel/debug/tracing/events/raw_syscalls/sys_enter/id"};
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .disabled = 1};
	unsigned long long id;
	FILE *file;

	for (int i = 0; i < 2; i++) {
		file = fopen(paths[i], "r");
		if (!file)
			continue;
		if (fscanf(file, "%llu", &id) == 1)
			attr.config = id;
		fclose(file);
	}
	if (!attr.config)
		return -1;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Launches with their kernels until no more find room. Returns the bytes of it. */
static size_t fill(struct bench *bench, uint8_t *buffer, size_t size, uint64_t *records)
{
	uint32_t pid = (uint32_t)getpid();
	uint8_t *at = buffer;

	while (at + sizeof(struct cupti_api) + KERNEL_BYTES <= buffer + size) {
		struct cupti_api *api = (struct cupti_api *)at;
		struct cupti_kernel *kernel = (struct cupti_kernel *)(at + sizeof(*api));
		uint64_t now = clock_ns(CLOCK_MONOTONIC);

		bench->correlation++;
		*api = (struct cupti_api){.kind = CUPTI_KIND_RUNTIME,
					  .cbid = 211,
					  .start = now - 9000,
					  .end = now - 7000,
					  .process = pid,
					  .thread = pid,
					  .correlation = bench->correlation};
		*kernel = (struct cupti_kernel){
			.kind = CUPTI_KIND_CONCURRENT_KERNEL,
			.start = now - 5000,
			.end = now - 1000,
			.stream = 7,
			.correlation = bench->correlation,
			.name = bench->names[bench->correlation % NAMES],
			.grid = {128, 1, 1},
			.block = {256, 1, 1},
		};
		at += sizeof(*api) + KERNEL_BYTES;
		*records += 2;
	}
	return (size_t)(at - buffer);
}

static void wait_until_read(const struct bench *bench)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);

	while (__atomic_load_n(&bench->ring->head, __ATOMIC_ACQUIRE) !=
	       __atomic_load_n(&bench->ring->tail, __ATOMIC_ACQUIRE)) {
		if (clock_ns(CLOCK_MONOTONIC) - begin > WAIT_NS)
			die("nobody reads the ring");
		usleep(200);
	}
}

struct meter {
	int counter;
	uint64_t ns;
	uint64_t uses;
	uint64_t before_ns;
};

/* CPU time of this thread, so that other threads on its CPU do not count. */
static void begin(struct meter *meter)
{
	meter->before_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	ioctl(meter->counter, PERF_EVENT_IOC_ENABLE, 0);
}

static void end(struct meter *meter)
{
	ioctl(meter->counter, PERF_EVENT_IOC_DISABLE, 0);
	meter->ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - meter->before_ns;
	meter->uses++;
}

static long long read_syscalls(const struct meter *meter)
{
	long long count;

	if (meter->counter < 0 || read(meter->counter, &count, sizeof(count)) != sizeof(count))
		return -1;
	/* The ioctl that stops it is one. */
	return count - (long long)meter->uses;
}

static void wait_until_armed(struct bench *bench)
{
	uint64_t since = clock_ns(CLOCK_MONOTONIC);

	while (!bench->complete || !bench->enabled()) {
		bench->callbacks(&bench->request, &bench->complete);
		if (clock_ns(CLOCK_MONOTONIC) - since > WAIT_NS)
			die("the shim was not armed");
		usleep(1000);
	}
}

/* As CUPTI's threads would: requests all buffers, fills in records, and returns the buffers. */
static void feed_all(struct bench *bench, struct meter *meter, uint64_t *records)
{
	uint8_t *buffers[BUFFER_POOL_COUNT] = {NULL};
	size_t sizes[BUFFER_POOL_COUNT], valid[BUFFER_POOL_COUNT], most;

	for (uint32_t i = 0; i < BUFFER_POOL_COUNT; i++) {
		begin(meter);
		bench->request(&buffers[i], &sizes[i], &most);
		end(meter);
		if (!buffers[i] || sizes[i] != BUFFER_POOL_BYTES)
			die("there was no buffer");
	}
	for (uint32_t i = 0; i < BUFFER_POOL_COUNT; i++)
		valid[i] = fill(bench, buffers[i], sizes[i], records);
	wait_until_read(bench);
	for (uint32_t i = 0; i < BUFFER_POOL_COUNT; i++) {
		begin(meter);
		bench->complete(NULL, 0, buffers[i], sizes[i], valid[i]);
		end(meter);
	}
	wait_until_read(bench);
}

static void feed(struct bench *bench, long rounds, int tool, int answer)
{
	struct meter meter = {.counter = open_counter()};
	struct totals totals;
	uint64_t records = 0;

	if (write(tool, "a", 1) != 1)
		die("pipe");
	wait_until_armed(bench);
	for (long i = 0; i < rounds; i++)
		feed_all(bench, &meter, &records);
	printf("records=%llu ns=%llu syscalls=%lld rss_kib=%llu enabled=%u ",
	       (unsigned long long)records, (unsigned long long)meter.ns, read_syscalls(&meter),
	       (unsigned long long)rss_kib(), bench->enabled());
	close(tool);
	if (read(answer, &totals, sizeof(totals)) != sizeof(totals))
		die("the reader failed");
	printf("lost=%lld\n", (long long)(records / 2 - totals.works));
}

/* Times the other threads of this process got a CPU, and how long they had one. */
static void read_threads(uint64_t *slices, uint64_t *ns)
{
	const struct dirent *entry;
	unsigned long long run, waited, count;
	DIR *dir = opendir("/proc/self/task");
	char path[300];
	FILE *file;

	*slices = *ns = 0;
	while (dir && (entry = readdir(dir))) {
		if (atoi(entry->d_name) <= 0 || atoi(entry->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", entry->d_name);
		file = fopen(path, "r");
		if (file && fscanf(file, "%llu %llu %llu", &run, &waited, &count) == 3) {
			*ns += run;
			*slices += count;
		}
		if (file)
			fclose(file);
	}
	if (dir)
		closedir(dir);
}

static void idle(const struct bench *bench, unsigned int seconds)
{
	uint64_t slices, ns, slices_after, ns_after;

	sleep(1);
	read_threads(&slices, &ns);
	sleep(seconds);
	read_threads(&slices_after, &ns_after);
	printf("wakeups=%.2f cpu_us=%.2f enabled=%u rss_kib=%llu\n",
	       (double)(slices_after - slices) / seconds, (double)(ns_after - ns) / 1e3 / seconds,
	       bench->enabled(), (unsigned long long)rss_kib());
}

int main(int argc, char **argv)
{
	struct bench bench = {.correlation = 0};
	int to_tool[2], from_tool[2];
	uint64_t before_kib;
	pid_t parent = getpid(), child;
	long count = argc == 5 ? strtol(argv[4], NULL, 10) : 0;

	if (count < 1)
		return 2;
	if (pipe2(to_tool, O_CLOEXEC) || pipe2(from_tool, O_CLOEXEC))
		die("pipe");
	for (int i = 0; i < NAMES; i++)
		snprintf(bench.names[i], sizeof(bench.names[i]),
			 "_ZN2at6native29vectorized_elementwise_kernelILi%dENS0_15FunctorOnSelf_add"
			 "IfEENS_6detail5ArrayIPcLi2EEEEEviT0_T1_",
			 i);
	/* Before the shim is there: a fork is the end of it. */
	child = fork();
	if (!child) {
		close(to_tool[1]);
		play_tool((uint32_t)parent, to_tool[0], from_tool[1]);
	}
	close(to_tool[0]);
	close(from_tool[1]);
	before_kib = rss_kib();
	load(&bench, argv[1], argv[2]);
	printf("bare_kib=%llu ", (unsigned long long)before_kib);
	if (!strcmp(argv[3], "idle"))
		idle(&bench, (unsigned int)count);
	else
		feed(&bench, count, to_tool[1], from_tool[0]);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return 0;
}

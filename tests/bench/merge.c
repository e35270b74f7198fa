/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * merge ring|link|all STEPS KERNELS CALLS: what a GPU record costs the tool.
 *
 * Another process plays the shim: steps of one thread, each of KERNELS launches with their kernels,
 * two copies and a synchronization, written to its ring as fast as it is read. This one reads: ring
 * is gpu_ring alone, link also conversion of times and threads, all the whole pipeline with steps
 * of CALLS syscalls, but for sinks. Prints
 *
 *	records=N cpu_ns=N wall_ns=N frame_bytes=N steps=N complete=N joined=N lost=N
 *
 * cpu_ns is of the reading thread: the other process has a core of its own, or takes turns.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>
#include "base/clock.h"
#include "shim/peers.h"
#include "shim/ring.h"
#include "model/gpu.h"
#include "output/pipeline.h"
#include "model/event.h"

#define KERNEL_GAP_NS 2000ull /* from launch to launch */
/*
 * In the time of the steps, which runs twice as fast: the relay takes one flush in 50 ms of our
 * time.
 */
#define FLUSH_NS 120000000ull
#define NAMES	 24
#define BLOCK	 64 /* launches whose records come before those of their kernels */
#define COPIES	 2
#define TAIL_NS	 20000ull /* of a step, behind its last launch */

struct plan {
	uint64_t base_ns; /* CLOCK_MONOTONIC at which the first step begins */
	uint64_t realtime_ns;
	uint64_t step_ns;
	uint64_t steps;
	uint32_t kernels;
	uint32_t calls;
};

static void die(const char *what)
{
	fprintf(stderr, "bench_merge: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static uint64_t step_start(const struct plan *plan, uint64_t step)
{
	return plan->base_ns + step * (plan->step_ns + 1000);
}

struct writer {
	struct fbt_gpu_ring *header;
	char *bytes;
	uint64_t head;
	uint64_t records;
	uint32_t tid;
	uint64_t offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
};

static void publish(struct writer *writer)
{
	__atomic_store_n(&writer->header->head, writer->head, __ATOMIC_RELEASE);
}

/* A shim would drop what finds no room: here nothing may be lost, so that all is measured. */
static void put(struct writer *writer, const void *record, uint32_t size)
{
	uint64_t at = writer->head % FBT_GPU_RING_BYTES;
	uint64_t first = FBT_GPU_RING_BYTES - at < size ? FBT_GPU_RING_BYTES - at : size;

	while (writer->head + size - __atomic_load_n(&writer->header->tail, __ATOMIC_ACQUIRE) >
	       FBT_GPU_RING_BYTES) {
		publish(writer);
		usleep(100);
	}
	memcpy(writer->bytes + at, record, first);
	memcpy(writer->bytes, (const char *)record + first, size - first);
	writer->head += size;
}

static void put_record(struct writer *writer, void *record, uint32_t size, uint16_t type)
{
	struct fbt_header *header = record;

	header->type = type;
	header->size = size;
	put(writer, record, size);
	writer->records++;
}

static void put_strings(struct writer *writer, const void *record, uint32_t size, uint16_t type,
			const char *first, const char *second)
{
	char frame[FBT_GPU_FRAME_MAX] = {0};
	uint32_t end = size;

	memcpy(frame, record, size);
	end += (uint32_t)snprintf(frame + end, 512, "%s", first) + 1;
	if (second)
		end += (uint32_t)snprintf(frame + end, 512, "%s", second) + 1;
	put_record(writer, frame, (end + 7) / 8 * 8, type);
}

static void put_head(struct writer *writer, const struct plan *plan)
{
	struct fbt_gpu_state state = {.status = FBT_GPU_ARMED,
				      .time_ns = plan->base_ns,
				      .cupti_version = 130001,
				      .driver_version = 13000,
				      .shim_version = FBT_GPU_VERSION,
				      .clock_method = FBT_GPU_CLOCK_REALTIME};
	struct fbt_gpu_device device = {.compute_major = 9, .sms = 132, .warp_size = 32};
	struct fbt_gpu_name name = {.kind = FBT_GPU_NAME_KERNEL};
	char text[128];

	put_strings(writer, &state, sizeof(state), FBT_EVENT_GPU_STATE, "", "/lib/libcupti.so.13");
	put_strings(writer, &device, sizeof(device), FBT_EVENT_GPU_DEVICE, "Bench GPU", NULL);
	for (name.id = 1; name.id <= NAMES; name.id++) {
		snprintf(text, sizeof(text), "_ZN5bench6kernelILi%uEEEvPKfPfi", name.id);
		put_strings(writer, &name, sizeof(name), FBT_EVENT_GPU_NAME, text, NULL);
	}
	name.kind = FBT_GPU_NAME_API;
	put_strings(writer, &name, sizeof(name), FBT_EVENT_GPU_NAME, "cudaLaunchKernel_v7000",
		    NULL);
}

static void put_clock(struct writer *writer, uint64_t now_ns)
{
	struct fbt_gpu_clock clock = {.method = FBT_GPU_CLOCK_REALTIME,
				      .mono_ns = now_ns,
				      .gpu_ns = now_ns + writer->offset_ns,
				      .error_ns = 40};

	put_record(writer, &clock, sizeof(clock), FBT_EVENT_GPU_CLOCK);
}

static void put_api(struct writer *writer, uint64_t start_ns, uint32_t correlation, uint32_t class)
{
	struct fbt_gpu_api api = {.tid = writer->tid,
				  .start_ns = start_ns + writer->offset_ns,
				  .end_ns = start_ns + writer->offset_ns + 1200,
				  .correlation = correlation,
				  .cbid = 211,
				  .name = NAMES + 1,
				  .api_class = class};

	put_record(writer, &api, sizeof(api), FBT_EVENT_GPU_API);
}

static void put_work(struct writer *writer, uint64_t launched_ns, uint32_t correlation,
		     uint32_t kind)
{
	struct fbt_gpu_work work = {.kind = kind,
				    .start_ns = launched_ns + writer->offset_ns + 3000,
				    .end_ns = launched_ns + writer->offset_ns + 4500,
				    .context = 1,
				    .stream = 7,
				    .correlation = correlation,
				    .name = 1 + correlation % NAMES};

	if (kind == FBT_GPU_KERNEL) {
		work.kernel.grid[0] = 128;
		work.kernel.block[0] = 256;
	} else {
		work.name = 0;
		work.copy.bytes = 4096;
		work.copy.kind = correlation % 2 ? FBT_GPU_COPY_H2D : FBT_GPU_COPY_D2H;
	}
	put_record(writer, &work, sizeof(work), FBT_EVENT_GPU_WORK);
}

static void put_step(struct writer *writer, const struct plan *plan, uint64_t step)
{
	uint32_t launches = plan->kernels + COPIES;
	uint32_t first = (uint32_t)(step * (launches + 1)) + 1;
	uint64_t at = step_start(plan, step) + 1000;
	struct fbt_gpu_sync sync = {.kind = FBT_GPU_SYNC_STREAM, .context = 1, .stream = 7};

	for (uint32_t i = 0; i < launches; i += BLOCK) {
		uint32_t end = i + BLOCK < launches ? i + BLOCK : launches;

		for (uint32_t j = i; j < end; j++)
			put_api(writer, at + j * KERNEL_GAP_NS, first + j,
				j < plan->kernels ? FBT_GPU_API_LAUNCH : FBT_GPU_API_MEMCPY);
		for (uint32_t j = i; j < end; j++)
			put_work(writer, at + j * KERNEL_GAP_NS, first + j,
				 j < plan->kernels ? FBT_GPU_KERNEL : FBT_GPU_MEMCPY);
	}
	at += launches * KERNEL_GAP_NS;
	put_api(writer, at, first + launches, FBT_GPU_API_SYNC);
	sync.start_ns = at + writer->offset_ns;
	sync.end_ns = sync.start_ns + 1200;
	sync.correlation = first + launches;
	put_record(writer, &sync, sizeof(sync), FBT_EVENT_GPU_SYNC);
}

static void put_flush(struct writer *writer, uint64_t now_ns, bool last)
{
	struct fbt_gpu_flush flush = {
		.last = last, .time_ns = now_ns, .records = writer->records, .clock_error_ns = 40};

	put_clock(writer, now_ns);
	put_record(writer, &flush, sizeof(flush), FBT_EVENT_GPU_FLUSH);
}

static void make_ring(struct writer *writer)
{
	size_t size = FBT_GPU_HEADER_BYTES + FBT_GPU_RING_BYTES;
	int fd = memfd_create(FBT_GPU_MEMFD, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)size) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		die("memfd");
	writer->header = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (writer->header == MAP_FAILED)
		die("mmap");
	writer->bytes = (char *)writer->header + FBT_GPU_HEADER_BYTES;
	/* Touched once: what is measured is not the first use of memory. */
	memset(writer->bytes, 0, FBT_GPU_RING_BYTES);
	writer->header->version = FBT_GPU_VERSION;
	writer->header->header_bytes = FBT_GPU_HEADER_BYTES;
	writer->header->ring_bytes = FBT_GPU_RING_BYTES;
	__atomic_store_n(&writer->header->magic, FBT_GPU_MAGIC, __ATOMIC_RELEASE);
}

static void serve(struct writer *writer)
{
	uint32_t armed = __atomic_load_n(&writer->header->armed, __ATOMIC_ACQUIRE);

	__atomic_store_n(&writer->header->phase, armed & 1 ? FBT_GPU_WORKING : FBT_GPU_DORMANT,
			 __ATOMIC_RELEASE);
	__atomic_store_n(&writer->header->served, armed, __ATOMIC_RELEASE);
}

/* The other process: ready is where it says that its ring is there. */
static void play_shim(const struct plan *plan, int ready)
{
	struct writer writer = {.offset_ns = plan->realtime_ns};
	uint64_t flush_ns = plan->base_ns + FLUSH_NS;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	writer.tid = (uint32_t)getpid();
	make_ring(&writer);
	if (write(ready, "r", 1) != 1)
		die("pipe");
	while (!(__atomic_load_n(&writer.header->armed, __ATOMIC_ACQUIRE) & 1))
		usleep(1000);
	writer.head = __atomic_load_n(&writer.header->head, __ATOMIC_RELAXED);
	serve(&writer);
	put_clock(&writer, plan->base_ns);
	put_head(&writer, plan);
	for (uint64_t step = 0; step < plan->steps; step++) {
		if (step_start(plan, step) > flush_ns) {
			put_flush(&writer, flush_ns, false);
			flush_ns += FLUSH_NS;
		}
		put_step(&writer, plan, step);
		publish(&writer);
	}
	put_flush(&writer, step_start(plan, plan->steps) + FLUSH_NS, true);
	publish(&writer);
	while (__atomic_load_n(&writer.header->armed, __ATOMIC_ACQUIRE) & 1) {
		__atomic_fetch_add(&writer.header->pulse, 1, __ATOMIC_RELAXED);
		usleep(1000);
	}
	serve(&writer);
	pause();
}

struct reader {
	const struct plan *plan;
	struct pipeline *pipeline; /* NULL: records are only counted */
	uint32_t tgid;
	uint64_t next_step;
	uint64_t records;
	uint64_t bytes;
	uint64_t steps;
	uint64_t complete;
	bool last;
};

static void push(struct reader *reader, void *record, uint32_t size, uint16_t type)
{
	struct fbt_header *header = record;

	header->type = type;
	header->size = size;
	pipeline__push(reader->pipeline, record, size);
}

/* What the kernel side sends of a step. */
static void push_step(struct reader *reader, uint64_t number)
{
	uint64_t start_ns = step_start(reader->plan, number);
	struct fbt_call call = {.header.flags = FBT_CALL_ARGS,
				.tgid = reader->tgid,
				.tid = reader->tgid,
				.duration_ns = 700,
				.nr = 16};
	struct fbt_step step = {.tgid = reader->tgid,
				.tid = reader->tgid,
				.kind = 1,
				.start_ns = start_ns,
				.end_ns = start_ns + reader->plan->step_ns,
				.thread_ns = reader->plan->step_ns};

	for (uint32_t i = 0; i < reader->plan->calls; i++) {
		call.start_ns =
			start_ns + 500 + i * (reader->plan->step_ns - 1000) / reader->plan->calls;
		push(reader, &call, sizeof(call), FBT_EVENT_CALL);
	}
	step.sums[FBT_IOCTL].calls = reader->plan->calls;
	step.sums[FBT_IOCTL].ns = 700ull * reader->plan->calls;
	push(reader, &step, sizeof(step), FBT_EVENT_STEP);
}

/* The step records of what has ended come before the GPU's: the kernel side is faster. */
static void take(struct reader *reader, const struct fbt_header *event)
{
	const struct fbt_gpu_flush *flush = (const struct fbt_gpu_flush *)event;

	reader->records++;
	reader->bytes += event->size;
	if (event->type == FBT_EVENT_GPU_FLUSH) {
		reader->last |= flush->last != 0;
		while (reader->pipeline && reader->next_step < reader->plan->steps &&
		       step_start(reader->plan, reader->next_step + 1) <= flush->time_ns)
			push_step(reader, reader->next_step++);
	}
	if (reader->pipeline)
		pipeline__push(reader->pipeline, event, event->size);
}

static void take_frame(void *ctx, struct fbt_header *event)
{
	take(ctx, event);
}

static void take_record(void *ctx, const void *data, size_t size)
{
	take(ctx, data);
}

struct count_sink {
	struct sink sink;
	struct reader *reader;
};

static int count_step(struct sink *sink, const struct window *window, const struct step *step)
{
	struct reader *reader = ((struct count_sink *)sink)->reader;

	reader->steps++;
	reader->complete +=
		step->gpu && step->gpu->complete && step->gpu->all.kernels == reader->plan->kernels;
	return 0;
}

static void free_nothing(struct sink *sink)
{
}

static void open_pipeline(struct reader *reader, struct count_sink *sink)
{
	struct pipeline_options options = {.classify = classify_default_options(),
					   .context = 1,
					   .merge.timeout_ns = MERGE_TIMEOUT_NS};
	struct fbt_window window = {.start_ns = reader->plan->base_ns - 1000,
				    .detail = FBT_DETAIL_ESCALATED,
				    .arch = FBT_ARCH_X86_64};
	struct fbt_target target = {.start_ns = window.start_ns, .tgid = reader->tgid};
	struct fbt_kind kind = {.kind = 1, .tgid = reader->tgid};
	static const char *const texts[] = {"decode", "/engine", ""};
	struct record_output output = {take_record, reader};

	sink->sink = (struct sink){.name = "count", .write_step = count_step, .free = free_nothing};
	sink->reader = reader;
	reader->pipeline = pipeline__new(&options);
	if (!reader->pipeline || pipeline__add_sink(reader->pipeline, &sink->sink) ||
	    record_send_window(&output, &window, "bench") ||
	    record_send_strings(&output, &target, sizeof(target), FBT_EVENT_TARGET, texts, 3) ||
	    record_send_strings(&output, &kind, sizeof(kind), FBT_EVENT_KIND, texts, 2))
		die("pipeline");
	reader->records = reader->bytes = 0;
}

/* Reads until the last flush has come; the pause is the tool's poll, shortened. */
static void read_ring(struct reader *reader)
{
	struct gpu_ring *ring;
	uint32_t version, holder;
	int err = gpu_ring__open(&ring, reader->tgid, &version, &holder);

	if (err) {
		errno = -err;
		die("ring");
	}
	gpu_ring__arm(ring);
	while (!reader->last) {
		gpu_ring__beat(ring);
		if (gpu_ring__read(ring, take_frame, reader))
			die("ring is not sound");
		usleep(500);
	}
	gpu_ring__free(ring);
}

static void read_link(struct reader *reader)
{
	struct record_output output = {take_record, reader};
	struct gpu_link *link = gpu_link__new(GPU_REQUIRE, &output);

	if (!link)
		die("link");
	gpu_link__take(link, reader->tgid, clock_ns(CLOCK_MONOTONIC));
	while (!reader->last) {
		gpu_link__poll(link, clock_ns(CLOCK_MONOTONIC));
		usleep(500);
	}
	gpu_link__finish(link);
	gpu_link__free(link);
}

static void report(struct reader *reader, uint64_t cpu_ns, uint64_t wall_ns)
{
	const struct gpu_process *process = NULL;

	if (reader->pipeline)
		process = gpu_table_find(&pipeline__window(reader->pipeline)->gpus, reader->tgid);
	printf("records=%llu cpu_ns=%llu wall_ns=%llu frame_bytes=%llu steps=%llu complete=%llu "
	       "joined=%llu lost=%llu\n",
	       (unsigned long long)reader->records, (unsigned long long)cpu_ns,
	       (unsigned long long)wall_ns, (unsigned long long)(reader->bytes / reader->records),
	       (unsigned long long)reader->steps, (unsigned long long)reader->complete,
	       (unsigned long long)(process ? process->counts.joined : 0),
	       (unsigned long long)(process ? process->flush.ring_lost : 0));
}

int main(int argc, char **argv)
{
	struct plan plan = {.steps = argc == 5 ? strtoull(argv[2], NULL, 10) : 0};
	struct reader reader = {.plan = &plan};
	struct count_sink sink;
	uint64_t cpu_ns, wall_ns;
	int ready[2];
	pid_t child;
	char byte;

	if (!plan.steps)
		return 2;
	plan.kernels = (uint32_t)strtoul(argv[3], NULL, 10);
	plan.calls = (uint32_t)strtoul(argv[4], NULL, 10);
	plan.step_ns = (plan.kernels + COPIES) * KERNEL_GAP_NS + TAIL_NS;
	/* All times lie in the past, because times in the future are rejected. */
	plan.base_ns = clock_ns(CLOCK_MONOTONIC);
	plan.realtime_ns = clock_ns(CLOCK_REALTIME) - plan.base_ns;
	if (step_start(&plan, plan.steps) - plan.base_ns + 2 * FLUSH_NS > plan.base_ns)
		die("the machine is up for too short a time for so many steps");
	plan.base_ns -= step_start(&plan, plan.steps) - plan.base_ns + 2 * FLUSH_NS;
	if (pipe(ready))
		die("pipe");
	child = fork();
	if (!child)
		play_shim(&plan, ready[1]);
	if (child < 0 || read(ready[0], &byte, 1) != 1)
		die("fork");
	reader.tgid = (uint32_t)child;
	if (!strcmp(argv[1], "all"))
		open_pipeline(&reader, &sink);
	cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	wall_ns = clock_ns(CLOCK_MONOTONIC);
	if (!strcmp(argv[1], "ring"))
		read_ring(&reader);
	else
		read_link(&reader);
	if (reader.pipeline && pipeline__finish(reader.pipeline))
		die("pipeline");
	report(&reader, clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns,
	       clock_ns(CLOCK_MONOTONIC) - wall_ns);
	pipeline__free(reader.pipeline);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return 0;
}

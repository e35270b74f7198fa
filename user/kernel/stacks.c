/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "kernel/stacks.h"

#include <asm/perf_regs.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/thread_use.h"

#define CHOOSE_US  200000
#define SAMPLE_NS  (800 * NS_PER_MS)
#define TURN_US	   20000
#define SAMPLES_HZ 99
/* The highest rate, for a thread that uses little of a CPU. */
#define SAMPLES_HZ_MAX 999
/* The step function of a Rust server may be 20 KiB above the leaf. A record is at most 64 KiB. */
#define STACK_BYTES 32768
/* Four rings are within the 516 KiB that a user without privileges may lock. */
#define THREADS_MAX 4
#define RING_BYTES  (128u << 10)
/* A thread that used less of a CPU is idle: 0.2 %. */
#define BUSY_PART 500

/*
 * Registers that may point into a function that has nothing on the stack yet, in the order of a
 * record.
 */
#ifdef __aarch64__
#define REGS	  (1ull << PERF_REG_ARM64_LR | 1ull << PERF_REG_ARM64_PC)
#define REG_COUNT 2
#else
#define REGS	  (1ull << PERF_REG_X86_IP)
#define REG_COUNT 1
#endif

/* One sampled thread: samples by CPU time and by waits, both in one ring. */
struct sampled {
	int fds[2];
	struct perf_event_mmap_page *ring; /* NULL: none */
};

struct sampler {
	struct stacks *stacks;
	mapping_vec maps;
	struct sampled threads[THREADS_MAX];
	uint8_t record[UINT16_MAX + 1];
};

static bool is_code(const mapping_vec *maps, uint64_t address)
{
	size_t after = first_index(i, maps->count, maps->items[i].start > address);

	return after && address < maps->items[after - 1].end;
}

static int add_place(struct stacks *stacks, uint32_t sample, uint64_t address)
{
	code_place_vec *places = &stacks->places;
	size_t at = vec_lower_bound(places, item->address, address);

	if (at == places->count || places->items[at].address != address) {
		struct code_place place = {.address = address};
		int err = vec_insert(places, at, place);

		if (err)
			return err;
	}
	if (places->items[at].last_sample != sample)
		places->items[at].samples++;
	places->items[at].last_sample = sample;
	return 0;
}

int stacks_add(struct stacks *stacks, const mapping_vec *maps, uint32_t sample, const void *stack,
	       size_t size)
{
	uint64_t word, start, end;
	int err = 0;

	if (!maps->count)
		return 0;
	start = maps->items[0].start;
	end = maps->items[maps->count - 1].end;
	for (size_t at = 0; at + sizeof(word) <= size && !err; at += sizeof(word)) {
		memcpy(&word, (const char *)stack + at, sizeof(word));
		if (word >= start && word < end && is_code(maps, word))
			err = add_place(stacks, sample, word);
	}
	return err;
}

/*
 * By CPU time: a thread that uses a tenth of a CPU gets as many samples as one that uses all of it.
 */
static uint32_t samples_hz(const struct thread_use *use, uint64_t period_ns)
{
	uint64_t hz = SAMPLES_HZ * period_ns / (use->cpu_ns ? use->cpu_ns : 1);

	if (hz < SAMPLES_HZ)
		return SAMPLES_HZ;
	return hz < SAMPLES_HZ_MAX ? (uint32_t)hz : SAMPLES_HZ_MAX;
}

static int open_event(uint32_t tid, uint64_t config, uint32_t hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = config,
		.freq = 1,
		.sample_freq = hz,
		.sample_type = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = REGS,
		.sample_stack_user = STACK_BYTES,
		.exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0 && errno == EACCES) {
		attr.exclude_kernel = 1;
		fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

static void close_sampled(struct sampled *sampled)
{
	if (sampled->ring)
		munmap(sampled->ring, RING_BYTES + (size_t)sysconf(_SC_PAGESIZE));
	for (int i = 0; i < 2; i++)
		if (sampled->fds[i] >= 0)
			close(sampled->fds[i]);
	*sampled = (struct sampled){.fds = {-1, -1}};
}

/* Samples by waits show what a thread that mostly blocks does. Sampling works without them too. */
static int open_sampled(struct sampled *sampled, uint32_t tid, uint32_t hz)
{
	void *ring;

	sampled->fds[0] = open_event(tid, PERF_COUNT_SW_CPU_CLOCK, hz);
	/* The kernel may allow less (kernel.perf_event_max_sample_rate). */
	if (sampled->fds[0] == -EINVAL && hz > SAMPLES_HZ)
		sampled->fds[0] = open_event(tid, PERF_COUNT_SW_CPU_CLOCK, SAMPLES_HZ);
	if (sampled->fds[0] < 0)
		return sampled->fds[0];
	ring = mmap(NULL, RING_BYTES + (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
		    MAP_SHARED, sampled->fds[0], 0);
	if (ring == MAP_FAILED)
		return -errno;
	sampled->ring = ring;
	sampled->fds[1] = open_event(tid, PERF_COUNT_SW_CONTEXT_SWITCHES, SAMPLES_HZ);
	if (sampled->fds[1] >= 0)
		(void)ioctl(sampled->fds[1], PERF_EVENT_IOC_SET_OUTPUT, sampled->fds[0]);
	return 0;
}

/*
 * Reads the ABI, the registers, the size of the stack, the stack, and how many of its bytes are
 * valid.
 */
static int take_sample(struct sampler *sampler, const uint8_t *data, size_t size)
{
	uint64_t abi, stack_bytes, copied;
	uint32_t sample = ++sampler->stacks->samples;
	int err = 0;

	if (size < sizeof(abi))
		return 0;
	memcpy(&abi, data, sizeof(abi));
	data += sizeof(abi);
	size -= sizeof(abi);
	if (abi) {
		if (size < REG_COUNT * sizeof(uint64_t))
			return 0;
		err = stacks_add(sampler->stacks, &sampler->maps, sample, data,
				 REG_COUNT * sizeof(uint64_t));
		data += REG_COUNT * sizeof(uint64_t);
		size -= REG_COUNT * sizeof(uint64_t);
	}
	if (err || size < 2 * sizeof(uint64_t))
		return err;
	memcpy(&stack_bytes, data, sizeof(stack_bytes));
	data += sizeof(stack_bytes);
	size -= 2 * sizeof(uint64_t);
	if (stack_bytes > size)
		return 0;
	memcpy(&copied, data + stack_bytes, sizeof(copied));
	return stacks_add(sampler->stacks, &sampler->maps, sample, data,
			  copied < stack_bytes ? copied : stack_bytes);
}

/* Takes all records from a ring of the kernel, which writes it while we read. */
static int drain(struct sampler *sampler, struct perf_event_mmap_page *ring)
{
	const uint8_t *data = (const uint8_t *)ring + sysconf(_SC_PAGESIZE);
	uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->data_tail;
	struct perf_event_header header;
	int err = 0;

	while (tail < head && !err) {
		for (size_t i = 0; i < sizeof(header); i++)
			((uint8_t *)&header)[i] = data[(tail + i) % RING_BYTES];
		if (header.size < sizeof(header) || header.size > head - tail)
			break;
		for (size_t i = 0; i < header.size; i++)
			sampler->record[i] = data[(tail + i) % RING_BYTES];
		if (header.type == PERF_RECORD_SAMPLE)
			err = take_sample(sampler, sampler->record + sizeof(header),
					  header.size - sizeof(header));
		tail += header.size;
	}
	__atomic_store_n(&ring->data_tail, head, __ATOMIC_RELEASE);
	return err;
}

/* Chooses the threads and opens their events. */
static int choose_threads(struct sampler *sampler, uint32_t tgid, bool yields)
{
	thread_use_vec before = {0}, threads = {0};
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), period_ns = 0;
	int err = thread_use_read(&before, tgid);

	if (!err) {
		usleep(CHOOSE_US);
		err = thread_use_read(&threads, tgid);
		period_ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
		thread_use_since(&threads, &before);
		sampler->stacks->starved = thread_use_is_short(&threads, period_ns);
	}
	if (yields && sampler->stacks->starved)
		threads.count = 0;
	for (size_t i = 0; i < threads.count && !err; i++) {
		struct stacks *stacks = sampler->stacks;

		if (stacks->threads == THREADS_MAX ||
		    threads.items[i].cpu_ns < period_ns / BUSY_PART)
			break;
		err = open_sampled(&sampler->threads[stacks->threads], threads.items[i].tid,
				   samples_hz(&threads.items[i], period_ns));
		if (!err)
			stacks->threads++;
		else
			close_sampled(&sampler->threads[stacks->threads]);
		/* The thread has ended. */
		err = err == -ESRCH ? 0 : err;
	}
	vec_free(&before);
	vec_free(&threads);
	return err;
}

int stacks_sample(struct stacks *stacks, uint32_t tgid, bool yields)
{
	struct sampler *sampler = calloc(1, sizeof(*sampler));
	uint64_t end_ns;
	int err;

	*stacks = (struct stacks){.threads = 0};
	if (!sampler)
		return -ENOMEM;
	sampler->stacks = stacks;
	for (int i = 0; i < THREADS_MAX; i++)
		sampler->threads[i] = (struct sampled){.fds = {-1, -1}};
	err = maps_read_quietly(tgid, &sampler->maps);
	if (!err)
		err = choose_threads(sampler, tgid, yields);
	end_ns = clock_ns(CLOCK_MONOTONIC) + SAMPLE_NS;
	while (!err && stacks->threads && clock_ns(CLOCK_MONOTONIC) < end_ns) {
		usleep(TURN_US);
		for (uint32_t i = 0; i < stacks->threads && !err; i++)
			err = drain(sampler, sampler->threads[i].ring);
	}
	for (int i = 0; i < THREADS_MAX; i++)
		close_sampled(&sampler->threads[i]);
	maps_free(&sampler->maps);
	free(sampler);
	return err;
}

void stacks_clear(struct stacks *stacks)
{
	vec_free(&stacks->places);
}

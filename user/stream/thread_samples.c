/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/thread_samples.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

#define SAMPLES_HZ 99
/* The highest rate, for a thread that uses little of a CPU. */
#define SAMPLES_HZ_MAX 999

struct thread_samples {
	uint32_t tid;
	int fds[2];			   /* by CPU time and by waits, both in one ring */
	struct perf_event_mmap_page *ring; /* NULL: none */
	uint32_t ring_bytes;
	uint32_t registers;		/* how many a sample has */
	uint8_t record[UINT16_MAX + 1]; /* the size of a record is 16 bits */
};

uint32_t thread_samples_hz(const struct thread_use *use, uint64_t period_ns)
{
	uint64_t hz = SAMPLES_HZ * period_ns / (use->cpu_ns ? use->cpu_ns : 1);

	if (hz < SAMPLES_HZ)
		return SAMPLES_HZ;
	return hz < SAMPLES_HZ_MAX ? (uint32_t)hz : SAMPLES_HZ_MAX;
}

static int open_event(uint32_t tid, const struct sampling *sampling, uint64_t config, uint32_t hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = config,
		.freq = 1,
		.sample_freq = hz,
		.sample_type = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = sampling->registers,
		.sample_stack_user = sampling->stack_bytes,
		.exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0 && errno == EACCES) {
		attr.exclude_kernel = 1;
		fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

static size_t mapped_bytes(const struct thread_samples *samples)
{
	return samples->ring_bytes + (size_t)sysconf(_SC_PAGESIZE);
}

static int open_events(struct thread_samples *samples, const struct sampling *sampling, uint32_t hz)
{
	void *ring;
	int fd = open_event(samples->tid, sampling, PERF_COUNT_SW_CPU_CLOCK, hz);

	/* The kernel may allow less (kernel.perf_event_max_sample_rate). */
	if (fd == -EINVAL && hz > SAMPLES_HZ)
		fd = open_event(samples->tid, sampling, PERF_COUNT_SW_CPU_CLOCK, SAMPLES_HZ);
	samples->fds[0] = fd;
	if (fd < 0)
		return fd;
	ring = mmap(NULL, mapped_bytes(samples), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED)
		return -errno;
	samples->ring = ring;
	if (!sampling->waits)
		return 0;
	/* Sampling works without them too. */
	samples->fds[1] =
		open_event(samples->tid, sampling, PERF_COUNT_SW_CONTEXT_SWITCHES, SAMPLES_HZ);
	if (samples->fds[1] >= 0)
		(void)ioctl(samples->fds[1], PERF_EVENT_IOC_SET_OUTPUT, fd);
	return 0;
}

int thread_samples__open(struct thread_samples **result, uint32_t tid,
			 const struct sampling *sampling, uint32_t hz)
{
	struct thread_samples *samples = calloc(1, sizeof(*samples));
	int err;

	*result = NULL;
	if (!samples)
		return -ENOMEM;
	samples->tid = tid;
	samples->fds[0] = samples->fds[1] = -1;
	samples->ring_bytes = sampling->ring_bytes;
	samples->registers = (uint32_t)__builtin_popcountll(sampling->registers);
	err = open_events(samples, sampling, hz);
	if (err) {
		thread_samples__free(samples);
		return err;
	}
	*result = samples;
	return 0;
}

void thread_samples__free(struct thread_samples *samples)
{
	if (!samples)
		return;
	/* The pages of the ring are the kernel's, which does not let us write them. */
	if (samples->ring)
		munmap(samples->ring, mapped_bytes(samples));
	for (int i = 0; i < 2; i++)
		if (samples->fds[i] >= 0)
			close(samples->fds[i]);
	explicit_bzero(samples->record, sizeof(samples->record));
	free(samples);
}

/* Takes the next word from size bytes of a record; false if there is none. */
static bool next_word(const uint8_t **data, size_t *size, uint64_t *word)
{
	if (*size < sizeof(*word))
		return false;
	memcpy(word, *data, sizeof(*word));
	*data += sizeof(*word);
	*size -= sizeof(*word);
	return true;
}

/*
 * A record has the ABI, the registers, the size of the stack, the stack, and how many of its bytes
 * are valid.
 */
static int take_record(const struct thread_samples *samples, const uint8_t *data, size_t size,
		       thread_sample_fn take, void *ctx)
{
	struct thread_sample sample = {.tid = samples->tid};
	uint64_t abi, stack_bytes, copied;

	if (!next_word(&data, &size, &abi))
		return 0;
	for (uint32_t i = 0; abi && i < samples->registers; i++)
		if (!next_word(&data, &size, &sample.registers[i]))
			return 0;
	sample.register_count = abi ? samples->registers : 0;
	if (next_word(&data, &size, &stack_bytes) && stack_bytes && size >= sizeof(copied) &&
	    stack_bytes <= size - sizeof(copied)) {
		memcpy(&copied, data + stack_bytes, sizeof(copied));
		sample.stack = data;
		sample.size = copied < stack_bytes ? copied : stack_bytes;
	}
	return take(ctx, &sample);
}

static void copy_out(const struct thread_samples *samples, uint64_t tail, void *to, size_t size)
{
	const uint8_t *data = (const uint8_t *)samples->ring + sysconf(_SC_PAGESIZE);
	size_t at = tail % samples->ring_bytes, first = samples->ring_bytes - at;

	first = first < size ? first : size;
	memcpy(to, data + at, first);
	memcpy((uint8_t *)to + first, data, size - first);
}

/* The kernel writes the ring while we read it. */
int thread_samples__read(struct thread_samples *samples, thread_sample_fn take, void *ctx)
{
	struct perf_event_mmap_page *ring = samples->ring;
	uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = ring->data_tail;
	struct perf_event_header header;
	int err = 0;

	while (tail < head && !err) {
		copy_out(samples, tail, &header, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - tail)
			break;
		copy_out(samples, tail, samples->record, header.size);
		if (header.type == PERF_RECORD_SAMPLE)
			err = take_record(samples, samples->record + sizeof(header),
					  header.size - sizeof(header), take, ctx);
		tail += header.size;
	}
	__atomic_store_n(&ring->data_tail, head, __ATOMIC_RELEASE);
	return err;
}

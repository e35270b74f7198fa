/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "stream/stacks.h"

#include <asm/perf_regs.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "stream/thread_samples.h"
#include "proc/process.h"
#include "proc/thread_use.h"

#define CHOOSE_US   200000
#define SAMPLE_NS   (800 * NS_PER_MS)
#define TURN_US	    20000
#define THREADS_MAX 4
/* A thread that used less of a CPU is idle: 0.2 %. */
#define BUSY_PART 500

/* Registers that may point into a function that has nothing on the stack yet. */
#ifdef __aarch64__
#define REGISTERS (1ull << PERF_REG_ARM64_LR | 1ull << PERF_REG_ARM64_PC)
#else
#define REGISTERS (1ull << PERF_REG_X86_IP)
#endif

/*
 * The step function of a Rust server may be 20 KiB above the leaf. Four rings are within the
 * 516 KiB that a user without privileges may lock. Samples by waits show what a thread that mostly
 * blocks does.
 */
static const struct sampling sampling = {
	.registers = REGISTERS, .stack_bytes = 32768, .ring_bytes = 128u << 10, .waits = true};

struct sampler {
	struct stacks *stacks;
	mapping_vec maps;
	struct thread_samples *threads[THREADS_MAX];
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

static int take_sample(void *ctx, const struct thread_sample *sample)
{
	struct sampler *sampler = ctx;
	uint32_t number = ++sampler->stacks->samples;
	int err = stacks_add(sampler->stacks, &sampler->maps, number, sample->registers,
			     sample->register_count * sizeof(uint64_t));

	return err ? err
		   : stacks_add(sampler->stacks, &sampler->maps, number, sample->stack,
				sample->size);
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
		err = thread_samples__open(&sampler->threads[stacks->threads], threads.items[i].tid,
					   &sampling,
					   thread_samples_hz(&threads.items[i], period_ns));
		if (!err)
			stacks->threads++;
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
	err = maps_read_quietly(processes_live_thread(tgid), &sampler->maps);
	if (!err)
		err = choose_threads(sampler, tgid, yields);
	end_ns = clock_ns(CLOCK_MONOTONIC) + SAMPLE_NS;
	while (!err && stacks->threads && clock_ns(CLOCK_MONOTONIC) < end_ns) {
		usleep(TURN_US);
		for (uint32_t i = 0; i < stacks->threads && !err; i++)
			err = thread_samples__read(sampler->threads[i], take_sample, sampler);
	}
	for (int i = 0; i < THREADS_MAX; i++)
		thread_samples__free(sampler->threads[i]);
	maps_free(&sampler->maps);
	free(sampler);
	return err;
}

void stacks_clear(struct stacks *stacks)
{
	vec_free(&stacks->places);
}

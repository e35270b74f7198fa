/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Samples the registers and the stack of one thread by a perf event of the kernel. The thread is
 * not stopped, probed or written to. What was on a stack may be the data of users: no copy is left
 * in memory.
 */
#ifndef FBT_KERNEL_THREAD_SAMPLES_H
#define FBT_KERNEL_THREAD_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proc/thread_use.h"

#define SAMPLE_REGISTERS 33 /* the most that an architecture has */

struct sampling {
	uint64_t registers;   /* which ones, bits as of perf_event_attr.sample_regs_user */
	uint32_t stack_bytes; /* that are copied from the stack pointer upwards, at most 64,512 */
	uint32_t ring_bytes;  /* of the ring that samples wait in, a power of two */
	bool waits;	      /* samples when the thread leaves a CPU, too */
};

struct thread_sample {
	uint32_t tid;
	uint32_t register_count; /* 0: it was not in user space before */
	uint64_t registers[SAMPLE_REGISTERS];
	const uint8_t *stack; /* valid during the call */
	size_t size;
};

/* Takes a sample. Not 0: an error, which ends thread_samples__read(). */
typedef int (*thread_sample_fn)(void *ctx, const struct thread_sample *sample);

struct thread_samples;

/*
 * By CPU time: a thread that uses a tenth of a CPU gets about as many samples as one that uses all
 * of it. use: what it used in period_ns.
 */
uint32_t thread_samples_hz(const struct thread_use *use, uint64_t period_ns);

/*
 * Begins sampling a thread hz times in a second of CPU time, or less if the kernel does not allow
 * that. 0; -ESRCH if the thread has ended; -EACCES or -EPERM if the kernel does not allow it; or
 * another -errno. Without a message.
 */
int thread_samples__open(struct thread_samples **samples, uint32_t tid,
			 const struct sampling *sampling, uint32_t hz);

/* Takes the samples that wait. To be called every 20 ms or so. 0, or what take returned. */
int thread_samples__read(struct thread_samples *samples, thread_sample_fn take, void *ctx);

/* Wipes what was read; the kernel frees the ring. */
void thread_samples__free(struct thread_samples *samples);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Scripts of the GPU engine: words such as k50.1, which is an operation, a number (microseconds
 * unless noted otherwise) and a stream; k50@1 is on the second device. The table lists the
 * operations.
 */
#ifndef FBT_TESTS_GPU_ENGINE_SCRIPT_H
#define FBT_TESTS_GPU_ENGINE_SCRIPT_H

#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include "gpu_engine_truth.h"

#define SCRIPT_OPS 256

struct op {
	char letter;
	long value;
	uint32_t stream;
	uint32_t device;
};

struct script {
	struct op ops[SCRIPT_OPS];
	int count;
};

static const char script_help[] =
	"  k K v x  kernel by cudaLaunchKernel, cuLaunchKernel, __cudaLaunchKernel, …ExC\n"
	"  n l t    the same as k: of NCCL, with a very long name, with control characters in it\n"
	"  h d b q  copy to the device, from it, on it, to the other device: cudaMemcpyAsync\n"
	"  H D      the first two by the driver API\n"
	"  p        copy from pageable memory, blocking: cudaMemcpy\n"
	"  m        memset\n"
	"  g G      graph of N nodes by the runtime, by the driver\n"
	"  s S P    wait for the stream: spinning, in futex, in poll; N is what it wakes too late\n"
	"  y e      wait for the device, for the stream's last event: spinning\n"
	"  w        the stream waits for what stream N has now\n"
	"  c        the next launch finds the launch queue full for so long\n"
	"  a o      from here on: length of launch calls; from their end to the start of work\n"
	"  u z f r  compute; nanosleep; futex that times out; N reads of /dev/zero\n"
	"  j        N calls that neither launch nor wait\n";

/* Returns 0, or -1 with the invalid word in *word. */
static inline int script_parse(struct script *script, const char *text, const char **word)
{
	char *end;

	script->count = 0;
	while (*(text += strspn(text, " ,"))) {
		struct op *op = &script->ops[script->count];

		*word = text;
		if (script->count == SCRIPT_OPS ||
		    !strchr("kKvxnlthdbqHDpmgGsSPyewcaouzfrj", *text))
			return -1;
		*op = (struct op){.letter = *text++};
		op->value = strtol(text, &end, 10);
		text = end;
		if (*text == '.') {
			op->stream = (uint32_t)strtoul(text + 1, &end, 10) % FAKE_STREAMS;
			text = end;
		}
		if (*text == '@') {
			op->device = (uint32_t)strtoul(text + 1, &end, 10) % FAKE_DEVICES;
			text = end;
		}
		if (*text && *text != ' ' && *text != ',')
			return -1;
		script->count++;
	}
	return 0;
}

/* A thread that runs scripts. */
struct player {
	struct truth *truth;
	uint32_t tid;
	uint32_t streams; /* added to the streams in the script */
	uint64_t step;	  /* 0: outside of steps */
	uint64_t api_ns;
	int64_t delay_ns;
	uint64_t full_ns;
	int zero; /* /dev/zero */
	uint64_t sum;
};

enum { NAME_PLAIN, NAME_NCCL, NAME_LONG, NAME_CONTROL };

static inline const char *kernel_name(uint32_t name)
{
	static char long_name[3000];

	switch (name) {
	case NAME_NCCL:
		return "ncclDevKernel_AllReduce_Sum_f16_RING_LL";
	case NAME_LONG:
		if (!long_name[0])
			memset(long_name, 'L', sizeof(long_name) - 1);
		return long_name;
	case NAME_CONTROL:
		return "bad\033[31m\n\"name\\\377";
	default:
		return "_Z6matmulPKfS0_Pfi";
	}
}

static inline struct truth_entry player_entry(const struct player *player, uint32_t name)
{
	return (struct truth_entry){
		.tid = player->tid,
		.name = name,
		.step = player->step,
		.launch = __atomic_add_fetch(&player->truth->launches, 1, __ATOMIC_RELAXED)};
}

static inline void play_launch(struct player *player, struct fake_launch *launch, uint32_t name)
{
	struct truth_entry entry = player_entry(player, name);

	launch->api_ns = player->api_ns;
	launch->full_ns = player->full_ns;
	player->full_ns = 0;
	fake_cuda_launch(launch);
	truth_add_calls(player->truth, &entry, launch->calls);
	for (uint32_t i = 0; i < launch->count; i++)
		truth_add_work(player->truth, &entry, &launch->works[i], &launch->calls[0]);
	if (launch->full_ns) {
		entry.type = TRUTH_FULL;
		entry.start_ns = launch->calls[0].start_ns;
		entry.end_ns = launch->calls[0].end_ns;
		truth_add(player->truth, &entry);
	}
}

static inline void play_kernel(struct player *player, const struct op *op)
{
	uint32_t name = op->letter == 'n'   ? NAME_NCCL
			: op->letter == 'l' ? NAME_LONG
			: op->letter == 't' ? NAME_CONTROL
					    : NAME_PLAIN;
	struct fake_work work = {.kind = FAKE_KERNEL,
				 .device = op->device,
				 .stream = op->stream + player->streams,
				 .delay_ns = player->delay_ns,
				 .duration_ns = (uint64_t)op->value * 1000,
				 .name = kernel_name(name)};
	struct fake_launch launch = {.domain = op->letter == 'K' ? FAKE_DRIVER : FAKE_RUNTIME,
				     .runtime_cbid = op->letter == 'x'	 ? FAKE_CUDA_LAUNCH_EX
						     : op->letter == 'v' ? FAKE_CUDA_LAUNCH_13
									 : FAKE_CUDA_LAUNCH,
				     .driver_cbid =
					     op->letter == 'x' ? FAKE_CU_LAUNCH_EX : FAKE_CU_LAUNCH,
				     .count = 1,
				     .works = &work};

	play_launch(player, &launch, name);
}

static inline void play_copy(struct player *player, const struct op *op)
{
	static const struct {
		char letter;
		uint32_t copy, source, target, domain, runtime, driver;
	} rows[] = {
		{'h', 1, 2, 3, FAKE_RUNTIME, FAKE_CUDA_MEMCPY_ASYNC, FAKE_CU_MEMCPY_H2D_ASYNC},
		{'d', 2, 3, 2, FAKE_RUNTIME, FAKE_CUDA_MEMCPY_ASYNC, FAKE_CU_MEMCPY_D2H_ASYNC},
		{'b', 8, 3, 3, FAKE_RUNTIME, FAKE_CUDA_MEMCPY_ASYNC, FAKE_CU_MEMCPY_D2D_ASYNC},
		{'q', 10, 3, 3, FAKE_RUNTIME, FAKE_CUDA_MEMCPY_PEER_ASYNC,
		 FAKE_CU_MEMCPY_PEER_ASYNC},
		{'H', 1, 2, 3, FAKE_DRIVER, 0, FAKE_CU_MEMCPY_H2D_ASYNC},
		{'D', 2, 3, 2, FAKE_DRIVER, 0, FAKE_CU_MEMCPY_D2H_ASYNC},
		{'p', 1, 1, 3, FAKE_RUNTIME, FAKE_CUDA_MEMCPY, FAKE_CU_MEMCPY_H2D},
	};
	size_t row = 0;

	while (rows[row].letter != op->letter)
		row++;
	struct fake_work work = {.kind = FAKE_MEMCPY,
				 .device = op->device,
				 .stream = op->stream + player->streams,
				 .copy_kind = rows[row].copy,
				 .source_memory = rows[row].source,
				 .target_memory = rows[row].target,
				 .peer = 1 - op->device,
				 .delay_ns = player->delay_ns,
				 .duration_ns = (uint64_t)op->value * 1000,
				 .bytes = (uint64_t)op->value * 10000 + 1};
	struct fake_launch launch = {.domain = rows[row].domain,
				     .runtime_cbid = rows[row].runtime,
				     .driver_cbid = rows[row].driver,
				     .count = 1,
				     .works = &work,
				     .blocking = op->letter == 'p'};

	play_launch(player, &launch, NAME_PLAIN);
}

static inline void play_memset(struct player *player, const struct op *op)
{
	struct fake_work work = {.kind = FAKE_MEMSET,
				 .device = op->device,
				 .stream = op->stream + player->streams,
				 .target_memory = 3,
				 .delay_ns = player->delay_ns,
				 .duration_ns = (uint64_t)op->value * 1000,
				 .bytes = (uint64_t)op->value * 1000 + 3};
	struct fake_launch launch = {.domain = FAKE_RUNTIME,
				     .runtime_cbid = FAKE_CUDA_MEMSET_ASYNC,
				     .driver_cbid = FAKE_CU_MEMSET_ASYNC,
				     .count = 1,
				     .works = &work};

	play_launch(player, &launch, NAME_PLAIN);
}

/* A copy, kernels and a memset, with a microsecond or slightly more in between. */
static inline void play_graph(struct player *player, const struct op *op)
{
	uint32_t count = op->value < 1 ? 1 : op->value > FAKE_NODES ? FAKE_NODES : op->value;
	struct fake_work works[FAKE_NODES];
	struct fake_launch launch = {.domain = op->letter == 'g' ? FAKE_RUNTIME : FAKE_DRIVER,
				     .runtime_cbid = FAKE_CUDA_GRAPH_LAUNCH,
				     .driver_cbid = FAKE_CU_GRAPH_LAUNCH,
				     .count = count,
				     .works = works};

	for (uint32_t i = 0; i < count; i++) {
		bool copy = i == 1, set = i > 1 && i == count - 1;

		works[i] = (struct fake_work){.kind = copy  ? FAKE_MEMCPY
						      : set ? FAKE_MEMSET
							    : FAKE_KERNEL,
					      .device = op->device,
					      .stream = op->stream + player->streams,
					      .copy_kind = copy ? 8 : 0,
					      .source_memory = copy ? 3 : 0,
					      .target_memory = copy || set ? 3 : 0,
					      .graph = 7 + op->device,
					      .graph_node = 0x700000000ull + i,
					      .delay_ns = i == 0       ? player->delay_ns
							  : i % 3 == 0 ? 3000
								       : 1000,
					      .duration_ns = 5000 + i,
					      .bytes = copy || set ? 4096 + i : 0,
					      .name = kernel_name(NAME_PLAIN)};
	}
	play_launch(player, &launch, NAME_PLAIN);
}

static inline void play_wait(struct player *player, const struct op *op)
{
	struct truth_entry entry = player_entry(player, NAME_PLAIN);
	struct fake_wait wait = {.domain = FAKE_RUNTIME,
				 .scope = op->letter == 'y'   ? FAKE_DEVICE
					  : op->letter == 'e' ? FAKE_EVENT
							      : FAKE_STREAM,
				 .device = op->device,
				 .stream = op->stream + player->streams,
				 .how = op->letter == 'S'   ? FAKE_FUTEX
					: op->letter == 'P' ? FAKE_POLL
							    : FAKE_SPIN,
				 .tail_ns = (uint64_t)op->value * 1000};

	fake_cuda_wait(&wait);
	entry.kind = wait.scope;
	entry.device = op->device;
	entry.stream = op->stream + player->streams;
	truth_add_calls(player->truth, &entry, wait.calls);
	entry.type = TRUTH_SYNC;
	entry.correlation = wait.calls[0].correlation;
	entry.start_ns = wait.work_end_ns;
	entry.end_ns = wait.calls[0].end_ns;
	truth_add(player->truth, &entry);
}

static inline void play_stream_wait(struct player *player, const struct op *op)
{
	struct truth_entry entry = player_entry(player, NAME_PLAIN);
	struct fake_call calls[2];

	fake_cuda_stream_wait(calls, FAKE_RUNTIME, op->device, op->stream + player->streams,
			      (uint32_t)op->value + player->streams);
	truth_add_calls(player->truth, &entry, calls);
}

static inline void play_host(struct player *player, const struct op *op)
{
	struct timespec time = {op->value / 1000000, op->value % 1000000 * 1000};
	uint64_t until = fake_cuda_now() + (uint64_t)op->value * 1000;
	char bytes[4096];
	int word = 0;

	if (op->letter == 'z')
		syscall(SYS_nanosleep, &time, NULL);
	else if (op->letter == 'f')
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0);
	else if (op->letter == 'r')
		for (long i = 0; i < op->value; i++)
			player->sum +=
				(uint64_t)syscall(SYS_read, player->zero, bytes, sizeof(bytes));
	else if (op->letter == 'j')
		for (long i = 0; i < op->value; i++)
			fake_cuda_noise(i % 2 ? FAKE_DRIVER : FAKE_RUNTIME);
	else
		while (fake_cuda_now() < until)
			player->sum++;
}

static inline void play(struct player *player, const struct script *script)
{
	for (int i = 0; i < script->count; i++) {
		const struct op *op = &script->ops[i];

		if (strchr("kKvxnlt", op->letter))
			play_kernel(player, op);
		else if (strchr("hdbqHDp", op->letter))
			play_copy(player, op);
		else if (op->letter == 'm')
			play_memset(player, op);
		else if (strchr("gG", op->letter))
			play_graph(player, op);
		else if (strchr("sSPye", op->letter))
			play_wait(player, op);
		else if (op->letter == 'w')
			play_stream_wait(player, op);
		else if (op->letter == 'c')
			player->full_ns = (uint64_t)op->value * 1000;
		else if (op->letter == 'a')
			player->api_ns = (uint64_t)op->value * 1000;
		else if (op->letter == 'o')
			player->delay_ns = op->value * 1000;
		else
			play_host(player, op);
	}
}

#endif

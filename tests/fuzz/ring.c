/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The memory of a shim, held by a process of this test: found, armed and read, while it is written
 * to. The input is a struct fbt_gpu_ring, the writes, and the bytes of the ring.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include "model/event.h"
#include "fbt_gpu.h"
#include "fuzz.h"
#include "shim/peer.h"
#include "base/log.h"
#include "output/pipeline.h"
#include "output/kineto.h"

#define RING_BYTES (64u << 10)
#define MAP_BYTES  (FBT_GPU_HEADER_BYTES + RING_BYTES)
#define NOW_NS	   1000000000000ull
#define SECOND_NS  1000000000ull

/* A write to the ring, made after that many records. */
struct change {
	uint32_t at;
	uint32_t value;
};

struct run {
	const struct change *changes;
	size_t count;
	struct pipeline *pipeline;
};

static char *shared; /* shared with the holder */
static pid_t holder;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	int fd = memfd_create(FBT_GPU_MEMFD, MFD_ALLOW_SEALING);

	(void)argc;
	(void)argv;
	log_set_level(LOG_DEBUG);
	fuzz_check(fd >= 0 && !ftruncate(fd, MAP_BYTES));
	fuzz_check(!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
	shared = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	fuzz_check(shared != MAP_FAILED);
	holder = fork();
	if (!holder) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	close(fd);
	return 0;
}

static void take_record(void *ctx, const void *data, size_t size)
{
	const struct fbt_header *event;
	struct run *run = ctx;

	fuzz_check(decode_event(data, size, &event) == (long)size);
	fuzz_check(decode_tgid(event) == (uint32_t)holder);
	pipeline__push(run->pipeline, data, size);
	if (run->count) {
		memcpy(shared + run->changes->at % (MAP_BYTES - 3), &run->changes->value, 4);
		run->changes++;
		run->count--;
	}
}

/* Sets the shim's header fields and the bytes of its ring from the input. */
static void play(const uint8_t *header, const uint8_t *bytes, size_t size)
{
	const struct fbt_gpu_ring *said = (const struct fbt_gpu_ring *)header;
	struct fbt_gpu_ring *ring = (struct fbt_gpu_ring *)shared;

	memcpy(shared + FBT_GPU_HEADER_BYTES, bytes, size < RING_BYTES ? size : RING_BYTES);
	/* Sets the answer of the shim to the latest request, which random input seldom does. */
	ring->served = said->served & 1 ? ring->armed : said->served;
	ring->phase = said->phase;
	ring->pulse = said->pulse;
	ring->head = said->head;
}

static void trace(struct run *run, const uint8_t *header, const uint8_t *bytes, size_t size)
{
	struct record_output output = {.emit = take_record, .ctx = run};
	struct gpu_peer *peer = gpu_peer__new((uint32_t)holder, &output, NOW_NS);
	struct fbt_gpu_ring *ring = (struct fbt_gpu_ring *)shared;

	fuzz_check(peer);
	memcpy(shared, header, sizeof(*ring));
	gpu_peer__look(peer, NOW_NS, SECOND_NS);
	play(header, bytes, size);
	for (uint64_t i = 1; i < 8; i++)
		gpu_peer__poll(peer, NOW_NS + i * SECOND_NS);
	gpu_peer__look_for_cuda(peer, NOW_NS + 8 * SECOND_NS);
	if (ring->reserved[0] & 1)
		gpu_peer__end(peer, NOW_NS + 9 * SECOND_NS);
	gpu_peer__leave(peer, NOW_NS + 10 * SECOND_NS);
	gpu_peer__poll(peer, NOW_NS + 11 * SECOND_NS);
	gpu_peer__give_up(peer, NOW_NS + 12 * SECOND_NS);
	gpu_peer__free(peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t header = sizeof(struct fbt_gpu_ring);
	struct pipeline_options options = {.classify = classify_default_options(), .context = 1};
	struct kineto_options kineto = {.world_size = 1, .path = "trace"};
	FILE *out = fopen("/dev/null", "we");
	struct fbt_window window = {.start_ns = NOW_NS, .arch = FBT_ARCH_X86_64};
	struct run run = {.count = 0};
	struct change *changes;

	if (size < header + 1 || size - header - 1 < data[header] % 16 * sizeof(*changes)) {
		fclose(out);
		return -1;
	}
	run.count = data[header] % 16;
	changes = fuzz_copy(data + header + 1, run.count * sizeof(*changes));
	run.changes = changes;
	run.pipeline = pipeline__new(&options);
	fuzz_check(out && run.pipeline);
	fuzz_check(!pipeline__add_sink(run.pipeline, sink_kineto__new(out, &kineto)));
	record_send_window(&(struct record_output){.emit = (void (*)(void *, const void *,
								     size_t))pipeline__push,
						   .ctx = run.pipeline},
			   &window, "tag");
	size -= header + 1 + run.count * sizeof(*changes);
	trace(&run, data, data + header + 1 + run.count * sizeof(*changes), size);
	pipeline__finish(run.pipeline);
	pipeline__free(run.pipeline);
	fclose(out);
	free(changes);
	return 0;
}

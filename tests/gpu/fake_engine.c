/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The engine of engine.cu on the double of CUDA (tests/fake), with the same options and output, so
 * that run.sh can be tried without a GPU. The double's own times stand for those of CUDA events.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../fake/fake_cuda.h"

#define NODES_MAX 256

struct engine {
	void (*launch)(struct fake_launch *launch);
	void (*wait)(struct fake_wait *wait);
	uint64_t (*now)(void);
	uint32_t kernels;
	uint64_t work_ns;
	uint64_t api_ns; /* minimum length of a launch */
	bool graph;
	bool driver;
	uint64_t first_ns; /* of the work of one step */
	uint64_t last_ns;
};

static void launch(struct engine *engine, struct fake_work *works, uint32_t count)
{
	struct fake_launch launch = {
		.domain = engine->driver ? FAKE_DRIVER : FAKE_RUNTIME,
		.runtime_cbid = engine->graph ? FAKE_CUDA_GRAPH_LAUNCH : FAKE_CUDA_LAUNCH,
		.driver_cbid = engine->graph ? FAKE_CU_GRAPH_LAUNCH : FAKE_CU_LAUNCH,
		.count = count,
		.works = works,
		.api_ns = engine->api_ns};

	engine->launch(&launch);
	if (!engine->first_ns)
		engine->first_ns = works[0].start_ns;
	engine->last_ns = works[count - 1].end_ns;
}

void gpu_step(struct engine *engine);

__attribute__((noinline, used)) void gpu_step(struct engine *engine)
{
	struct fake_work works[NODES_MAX];
	struct fake_wait wait = {.domain = FAKE_RUNTIME, .scope = FAKE_STREAM, .how = FAKE_SPIN};

	engine->first_ns = 0;
	for (uint32_t i = 0; i < engine->kernels; i++)
		works[i] = (struct fake_work){.kind = FAKE_KERNEL,
					      .graph = engine->graph ? 1 : 0,
					      .graph_node = engine->graph ? 1 + i : 0,
					      .delay_ns = i ? 0 : 2000,
					      .duration_ns = engine->work_ns,
					      .name = "_Z4spiny"};
	if (engine->graph)
		launch(engine, works, engine->kernels);
	for (uint32_t i = 0; !engine->graph && i < engine->kernels; i++)
		launch(engine, &works[i], 1);
	engine->wait(&wait);
	/* Prevents a tail jump: the step ends here. */
	__asm__ volatile("" ::: "memory");
}

static bool open_cuda(struct engine *engine)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	int (*initialize)(unsigned flags);

	if (!library) {
		fprintf(stderr, "fake_engine: %s\n", dlerror());
		return false;
	}
	*(void **)&initialize = dlsym(library, "cuInit");
	*(void **)&engine->launch = dlsym(library, "fake_cuda_launch");
	*(void **)&engine->wait = dlsym(library, "fake_cuda_wait");
	*(void **)&engine->now = dlsym(library, "fake_cuda_now");
	if (!initialize || !engine->launch || !engine->wait || !engine->now) {
		fputs("fake_engine: libcuda.so.1 is not that of tests/fake\n", stderr);
		return false;
	}
	return !initialize(0);
}

static void make_steps(struct engine *engine, FILE *out, long steps)
{
	unsigned long long first = 0, start, end = 0;

	for (long i = 1; i <= steps; i++) {
		start = engine->now();
		first = first ? first : start;
		gpu_step(engine);
		end = engine->now();
		fprintf(out,
			"{\"step\":%ld,\"start_ns\":%llu,\"end_ns\":%llu,\"gpu_ns\":%llu,"
			"\"kernels\":%u,\"copies\":0}\n",
			i, start, end, (unsigned long long)(engine->last_ns - engine->first_ns),
			engine->kernels);
	}
	fprintf(out, "{\"done\":%ld,\"wall_ns\":%llu}\n", steps, end - first);
}

int main(int argc, char **argv)
{
	struct engine engine = {.kernels = 20, .work_ns = 30000, .api_ns = 2000};
	const char *variant = "kernels", *path = NULL;
	long steps = 100;
	char line[64];
	FILE *out;

	if (argc == 2 && !strcmp(argv[1], "--list")) {
		puts("kernels\ngraph\ndriver");
		return 0;
	}
	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--out"))
			path = argv[i + 1];
		else if (!strcmp(argv[i], "--variant"))
			variant = argv[i + 1];
		else if (!strcmp(argv[i], "--steps"))
			steps = atol(argv[i + 1]);
		else if (!strcmp(argv[i], "--kernels"))
			engine.kernels = (uint32_t)atol(argv[i + 1]);
		else if (!strcmp(argv[i], "--work-us"))
			engine.work_ns = (uint64_t)atol(argv[i + 1]) * 1000;
		else if (!strcmp(argv[i], "--api-ns"))
			engine.api_ns = (uint64_t)atol(argv[i + 1]);
		else
			return 2;
	}
	if (!path || steps < 1 || !engine.kernels || engine.kernels > NODES_MAX)
		return 2;
	engine.graph = !strcmp(variant, "graph");
	engine.driver = !strcmp(variant, "driver");
	out = fopen(path, "w");
	if (!out || !open_cuda(&engine))
		return EXIT_FAILURE;
	fprintf(out,
		"{\"engine\":\"fake\",\"variant\":\"%s\",\"pid\":%d,\"device\":\"none\","
		"\"driver\":0,\"runtime\":0,\"gapless\":%s}\n",
		variant, (int)getpid(), engine.graph ? "true" : "false");
	fflush(out);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return EXIT_FAILURE;
	make_steps(&engine, out, steps);
	if (fclose(out))
		return EXIT_FAILURE;
	puts("done");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		;
	return EXIT_SUCCESS;
}

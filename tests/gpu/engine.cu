/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * An engine whose GPU time is known: gpu_step() is the step, one variant of GPU work a run, CUDA
 * events around the work of each step.
 *
 *	engine --list			the variants, a line each
 *	engine --out FILE [OPTION]…	says "ready PID", waits for a line on stdin, makes its steps,
 *					says "done", and ends with its stdin
 *
 * FILE gets JSON lines; every engine that tests/gpu/run.sh measures writes these:
 *
 *	{"engine":NAME,"variant":V,"pid":N,"device":NAME,"driver":N,"runtime":N,"gapless":B}
 *	{"step":N,"start_ns":N,"end_ns":N,"gpu_ns":N,"kernels":N,"copies":N}	each step
 *	{"done":N,"wall_ns":N}				N steps, from the first begin to the last end
 *
 * Times are CLOCK_MONOTONIC; gpu_ns is from the event before the first work to the one behind the
 * last, gapless that there is nothing but work in between. Kernels spin by the GPU's own timer, so their length does not depend on the GPU.
 */
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHECK(call)                                                                                \
	do {                                                                                       \
		cudaError_t check_error = (call);                                                  \
		if (check_error != cudaSuccess) {                                                  \
			fprintf(stderr, "engine: %s: %s\n", #call,                                 \
				cudaGetErrorString(check_error));                                  \
			exit(EXIT_FAILURE);                                                        \
		}                                                                                  \
	} while (0)

#define DRIVER(call)                                                                               \
	do {                                                                                       \
		CUresult driver_result = (call);                                                   \
		if (driver_result != CUDA_SUCCESS) {                                               \
			fprintf(stderr, "engine: %s: error %d\n", #call, (int)driver_result);      \
			exit(EXIT_FAILURE);                                                        \
		}                                                                                  \
	} while (0)

/* By name: an engine that is linked with libcuda would not start where there is none. */
struct driver {
	CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			   unsigned, CUstream, void **, void **);
	CUresult (*launch_graph)(CUgraphExec, CUstream);
	CUresult (*copy_in)(CUdeviceptr, const void *, size_t, CUstream);
	CUresult (*copy_out)(void *, CUdeviceptr, size_t, CUstream);
	CUresult (*wait)(CUstream);
	CUfunction spin;
};

struct engine {
	int kernels;
	unsigned long long work_ns;
	size_t bytes;
	int blocks;
	const struct variant *variant;
	cudaStream_t stream;
	cudaEvent_t before, after;
	char *device;
	char *pinned;
	char *pageable;
	cudaGraphExec_t graph;
	struct driver driver;
};

struct variant {
	const char *name;
	void (*work)(struct engine *engine);
	int copies;
	double kernel_share; /* of --kernels */
	double length;	     /* of --work-us */
	bool gapless;	     /* nothing but kernels between its events */
};

__global__ void spin(unsigned long long ns)
{
	unsigned long long begin, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
	do {
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	} while (now - begin < ns);
}

static void launch_kernels(struct engine *engine)
{
	for (int i = 0; i < engine->kernels; i++)
		spin<<<engine->blocks, 128, 0, engine->stream>>>(engine->work_ns);
	CHECK(cudaGetLastError());
}

static void work_kernels(struct engine *engine)
{
	launch_kernels(engine);
	CHECK(cudaEventRecord(engine->after, engine->stream));
	CHECK(cudaStreamSynchronize(engine->stream));
}

/* Two pinned copies in, one memset, kernels, one pinned copy out, one blocking pageable copy. */
static void work_copies(struct engine *engine)
{
	for (int i = 0; i < 2; i++)
		CHECK(cudaMemcpyAsync(engine->device, engine->pinned, engine->bytes,
				      cudaMemcpyHostToDevice, engine->stream));
	CHECK(cudaMemsetAsync(engine->device, 0, engine->bytes, engine->stream));
	launch_kernels(engine);
	CHECK(cudaMemcpyAsync(engine->pinned, engine->device, engine->bytes, cudaMemcpyDeviceToHost,
			      engine->stream));
	CHECK(cudaStreamSynchronize(engine->stream));
	CHECK(cudaMemcpy(engine->pageable, engine->device, engine->bytes, cudaMemcpyDeviceToHost));
	CHECK(cudaEventRecord(engine->after, engine->stream));
	CHECK(cudaEventSynchronize(engine->after));
}

static void work_graph(struct engine *engine)
{
	CHECK(cudaMemcpyAsync(engine->device, engine->pinned, engine->bytes, cudaMemcpyHostToDevice,
			      engine->stream));
	CHECK(cudaGraphLaunch(engine->graph, engine->stream));
	CHECK(cudaEventRecord(engine->after, engine->stream));
	CHECK(cudaStreamSynchronize(engine->stream));
}

static void work_driver(struct engine *engine)
{
	void *arguments[] = {&engine->work_ns};
	CUdeviceptr device = (CUdeviceptr)engine->device;
	CUstream stream = (CUstream)engine->stream;

	DRIVER(engine->driver.copy_in(device, engine->pinned, engine->bytes, stream));
	for (int i = 0; i < engine->kernels; i++)
		DRIVER(engine->driver.launch(engine->driver.spin, (unsigned)engine->blocks, 1, 1,
					     128, 1, 1, 0, stream, arguments, NULL));
	DRIVER(engine->driver.copy_out(engine->pinned, device, engine->bytes, stream));
	CHECK(cudaEventRecord(engine->after, engine->stream));
	DRIVER(engine->driver.wait(stream));
}

static void work_driver_graph(struct engine *engine)
{
	DRIVER(engine->driver.copy_in((CUdeviceptr)engine->device, engine->pinned, engine->bytes,
				      (CUstream)engine->stream));
	DRIVER(engine->driver.launch_graph((CUgraphExec)engine->graph, (CUstream)engine->stream));
	CHECK(cudaEventRecord(engine->after, engine->stream));
	DRIVER(engine->driver.wait((CUstream)engine->stream));
}

/* short: ten times as many kernels of a tenth of the length, which take as long to launch. */
static const struct variant variants[] = {
	{"kernels", work_kernels, 0, 1, 1, true},
	{"copies", work_copies, 4, 0.5, 1, false},
	{"graph", work_graph, 1, 1, 1, true},
	{"driver", work_driver, 2, 1, 1, true},
	{"driver_graph", work_driver_graph, 1, 1, 1, true},
	{"short", work_kernels, 0, 10, 0.1, false},
};

extern "C" __attribute__((noinline, used)) void gpu_step(struct engine *engine)
{
	CHECK(cudaEventRecord(engine->before, engine->stream));
	engine->variant->work(engine);
	/* No tail jump: the step ends here. */
	__asm__ volatile("" ::: "memory");
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static void *find(void *library, const char *name)
{
	void *symbol = dlsym(library, name);

	if (!symbol) {
		fprintf(stderr, "engine: libcuda.so.1 has no %s\n", name);
		exit(EXIT_FAILURE);
	}
	return symbol;
}

static void open_driver(struct engine *engine)
{
	struct driver *driver = &engine->driver;
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	cudaFunction_t function;

	if (!library) {
		fprintf(stderr, "engine: %s\n", dlerror());
		exit(EXIT_FAILURE);
	}
	*(void **)&driver->launch = find(library, "cuLaunchKernel");
	*(void **)&driver->launch_graph = find(library, "cuGraphLaunch");
	*(void **)&driver->copy_in = find(library, "cuMemcpyHtoDAsync_v2");
	*(void **)&driver->copy_out = find(library, "cuMemcpyDtoHAsync_v2");
	*(void **)&driver->wait = find(library, "cuStreamSynchronize");
	CHECK(cudaGetFuncBySymbol(&function, (const void *)spin));
	driver->spin = (CUfunction)function;
}

/*
 * Kernels only: of a graph that was there before CUPTI was, copies may be told as kernels (CUPTI's
 * guide, CUDA graphs, limitations), and then the count of kernels would say nothing.
 */
static void make_graph(struct engine *engine)
{
	cudaGraph_t graph;

	CHECK(cudaStreamBeginCapture(engine->stream, cudaStreamCaptureModeThreadLocal));
	launch_kernels(engine);
	CHECK(cudaStreamEndCapture(engine->stream, &graph));
	CHECK(cudaGraphInstantiateWithFlags(&engine->graph, graph, 0));
	CHECK(cudaGraphDestroy(graph));
}

static void open_gpu(struct engine *engine)
{
	CHECK(cudaSetDevice(0));
	CHECK(cudaStreamCreateWithFlags(&engine->stream, cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&engine->before, cudaEventDefault));
	CHECK(cudaEventCreateWithFlags(&engine->after, cudaEventDefault));
	CHECK(cudaMalloc((void **)&engine->device, engine->bytes));
	CHECK(cudaMallocHost((void **)&engine->pinned, engine->bytes));
	engine->pageable = (char *)malloc(engine->bytes);
	memset(engine->pageable, 1, engine->bytes);
	memset(engine->pinned, 1, engine->bytes);
	open_driver(engine);
	make_graph(engine);
}

static void print_head(FILE *out, const struct engine *engine)
{
	cudaDeviceProp properties;
	int driver = 0, runtime = 0;

	CHECK(cudaGetDeviceProperties(&properties, 0));
	CHECK(cudaDriverGetVersion(&driver));
	CHECK(cudaRuntimeGetVersion(&runtime));
	fprintf(out,
		"{\"engine\":\"cuda\",\"variant\":\"%s\",\"pid\":%d,\"device\":\"%s\","
		"\"driver\":%d,\"runtime\":%d,\"gapless\":%s}\n",
		engine->variant->name, (int)getpid(), properties.name, driver, runtime,
		engine->variant->gapless ? "true" : "false");
	fflush(out);
}

static void make_steps(struct engine *engine, FILE *out, long steps, long pause_us)
{
	uint64_t first = 0, start = 0, end = 0;
	float milliseconds;

	for (long i = 1; i <= steps; i++) {
		start = now_ns();
		first = first ? first : start;
		gpu_step(engine);
		end = now_ns();
		CHECK(cudaEventElapsedTime(&milliseconds, engine->before, engine->after));
		fprintf(out,
			"{\"step\":%ld,\"start_ns\":%llu,\"end_ns\":%llu,\"gpu_ns\":%.0f,"
			"\"kernels\":%d,\"copies\":%d}\n",
			i, (unsigned long long)start, (unsigned long long)end,
			(double)milliseconds * 1e6, engine->kernels, engine->variant->copies);
		if (pause_us)
			usleep((useconds_t)pause_us);
	}
	fprintf(out, "{\"done\":%ld,\"wall_ns\":%llu}\n", steps, (unsigned long long)(end - first));
}

static const struct variant *find_variant(const char *name)
{
	for (const struct variant &variant : variants)
		if (!strcmp(variant.name, name))
			return &variant;
	return NULL;
}

static int usage(void)
{
	fprintf(stderr, "usage: engine --list | --out FILE [--variant NAME] [--steps N] "
			"[--kernels N] [--work-us N] [--blocks N] [--bytes N] [--warm-up N] "
			"[--pause-us N]\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct engine engine = {};
	long steps = 300, warm_up = 20, pause_us = 0, kernels = 60, work_us = 50;
	const char *path = NULL, *name = "kernels";
	char line[64];
	FILE *out;

	engine.bytes = 1 << 20;
	engine.blocks = 64;
	if (argc == 2 && !strcmp(argv[1], "--list")) {
		for (const struct variant &variant : variants)
			puts(variant.name);
		return 0;
	}
	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--out"))
			path = argv[i + 1];
		else if (!strcmp(argv[i], "--variant"))
			name = argv[i + 1];
		else if (!strcmp(argv[i], "--steps"))
			steps = atol(argv[i + 1]);
		else if (!strcmp(argv[i], "--kernels"))
			kernels = atol(argv[i + 1]);
		else if (!strcmp(argv[i], "--work-us"))
			work_us = atol(argv[i + 1]);
		else if (!strcmp(argv[i], "--blocks"))
			engine.blocks = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--bytes"))
			engine.bytes = (size_t)atol(argv[i + 1]);
		else if (!strcmp(argv[i], "--warm-up"))
			warm_up = atol(argv[i + 1]);
		else if (!strcmp(argv[i], "--pause-us"))
			pause_us = atol(argv[i + 1]);
		else
			return usage();
	}
	engine.variant = find_variant(name);
	if (!path || !engine.variant || steps < 1 || kernels < 1 || !engine.bytes ||
	    engine.blocks < 1)
		return usage();
	engine.kernels = (int)((double)kernels * engine.variant->kernel_share);
	engine.kernels = engine.kernels ? engine.kernels : 1;
	engine.work_ns = (unsigned long long)((double)work_us * 1000 * engine.variant->length);
	out = fopen(path, "w");
	if (!out) {
		perror(path);
		return EXIT_FAILURE;
	}
	open_gpu(&engine);
	print_head(out, &engine);
	for (long i = 0; i < warm_up; i++) {
		CHECK(cudaEventRecord(engine.before, engine.stream));
		engine.variant->work(&engine);
	}
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return EXIT_FAILURE;
	make_steps(&engine, out, steps, pause_us);
	if (fclose(out))
		return EXIT_FAILURE;
	puts("done");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		;
	return EXIT_SUCCESS;
}

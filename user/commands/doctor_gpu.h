/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Whether GPU records can be had: the driver and devices of this machine, and the shim of a
 * process. The _judge functions are pure.
 */
#ifndef FBT_COMMANDS_DOCTOR_GPU_H
#define FBT_COMMANDS_DOCTOR_GPU_H

#include "commands/doctor_check.h"
#include "inject/verdict.h"
#include "options.h"

struct doctor_gpu {
	uint32_t devices;  /* /dev/nvidiaN */
	char driver[160];  /* as /proc/driver/nvidia/version names it; "": none */
	bool other_vendor; /* /dev/kfd: AMD's driver */
	char *shim;	   /* path of our libferrum_cupti.so; NULL: not found */
};

void doctor_gpu_read(struct doctor_gpu *gpu);
void doctor_gpu_judge(const struct doctor_gpu *gpu, struct findings *checks);
void doctor_gpu_clear(struct doctor_gpu *gpu);

/* The driver in the first line of /proc/driver/nvidia/version; "" if line is of another form. */
void doctor_gpu_driver(const char *line, char *driver, size_t size);

enum doctor_shim {
	DOCTOR_SHIM_UNKNOWN,  /* it cannot be inspected: words */
	DOCTOR_SHIM_NOT_CUDA, /* there is none, and no CUDA */
	DOCTOR_SHIM_ABSENT,   /* CUDA without a shim: words */
	DOCTOR_SHIM_REST,     /* loaded and free */
	DOCTOR_SHIM_LEFT,     /* still working for a tracer that has exited */
	DOCTOR_SHIM_DEAD,     /* loaded, and will not work again */
	DOCTOR_SHIM_BAD,      /* loaded, and cannot be used as it is: words */
};

struct doctor_process_gpu {
	enum gpu_mode mode;
	enum doctor_shim shim;
	struct doctor_words words;
	bool verdict_made; /* only for DOCTOR_SHIM_ABSENT */
	struct inject_verdict verdict;
};

/*
 * Stops and changes nothing in the process, so the verdict leaves out what only a stopped thread
 * shows. While it reads, for microseconds, no tracer can take the shim.
 */
void doctor_process_gpu_read(struct doctor_process_gpu *gpu, uint32_t tgid, enum gpu_mode mode);
/* GPU_REQUIRE is for a process only if none of the trace has a shim: doctor_needs_ease. */
void doctor_process_gpu_judge(const struct doctor_process_gpu *gpu, struct findings *checks);
void doctor_process_gpu_clear(struct doctor_process_gpu *gpu);

#endif

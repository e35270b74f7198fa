/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The GPU of this machine, and whether GPU records of a process are to be had. */
#ifndef FBT_DOCTOR_GPU_H
#define FBT_DOCTOR_GPU_H

#include "doctor_check.h"
#include "inject_verdict.h"
#include "option_gpu.h"

struct doctor_gpu {
	uint32_t devices;  /* /dev/nvidiaN */
	char driver[160];  /* as /proc/driver/nvidia/version names it; "": there is none */
	bool other_vendor; /* /dev/kfd: AMD's */
	char *shim;	   /* path of our libferrum_cupti.so; NULL: not found */
};

void doctor_gpu_read(struct doctor_gpu *gpu);
void doctor_gpu_clear(struct doctor_gpu *gpu);

/* Pure. */
void doctor_gpu_judge(const struct doctor_gpu *gpu, struct doctor_checks *checks);

/* The driver's name and version in the first line of that file; "" if it is another file. */
void doctor_gpu_driver(const char *line, char *driver, size_t size);

enum doctor_shim {
	DOCTOR_SHIM_UNKNOWN,  /* it may not be looked at: words */
	DOCTOR_SHIM_NOT_CUDA, /* there is none, and no CUDA */
	DOCTOR_SHIM_ABSENT,   /* CUDA without a shim: words */
	DOCTOR_SHIM_REST,     /* there, and free */
	DOCTOR_SHIM_LEFT,     /* a tracer that is gone has left it at work */
	DOCTOR_SHIM_DEAD,     /* there, and will not work again */
	DOCTOR_SHIM_BAD,      /* there, and of no use as it is: words */
};

struct doctor_process_gpu {
	enum gpu_mode mode;
	enum doctor_shim shim;
	struct doctor_words words;
	bool verdict_made; /* of injecting one, where there is none */
	struct inject_verdict verdict;
};

/*
 * The process notices nothing: what injecting would look at in a stopped thread is left out. For
 * an instant no tracer could take its shim.
 */
void doctor_process_gpu_read(struct doctor_process_gpu *gpu, uint32_t tgid, enum gpu_mode mode);
void doctor_process_gpu_clear(struct doctor_process_gpu *gpu);

/* Pure. */
void doctor_process_gpu_judge(const struct doctor_process_gpu *gpu, uint32_t tgid,
			      struct doctor_checks *checks);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Version and devices of the CUDA driver, from the libcuda that the engine has mapped. */
#ifndef FERRUM_CUDA_DEVICES_H
#define FERRUM_CUDA_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "fbt_gpu.h"

#define CUDA_DEVICES_MAX 64

/* The driver's functions. There is nothing to free: libcuda stays mapped. */
struct cuda_driver {
	uint32_t (*driver_version)(int *version);
	uint32_t (*count)(int *count);
	uint32_t (*get)(int *device, int ordinal);
	uint32_t (*name)(char *name, int length, int device);
	uint32_t (*memory)(size_t *bytes, int device);
	uint32_t (*attribute)(int *value, uint32_t attribute, int device);
	uint32_t (*uuid)(uint8_t uuid[16], int device); /* optional */
};

/* Finds libcuda among the mapped libraries; never loads it. 0 or -ENOENT. */
int cuda_driver__find(struct cuda_driver *driver);

/* The driver's version, as in FBT_EVENT_GPU_STATE; 0: not known. */
uint32_t cuda_driver__version(const struct cuda_driver *driver);

/*
 * The number of devices that this process sees; 0 until the engine has initialized CUDA, which the
 * shim never does.
 */
uint32_t cuda_driver__devices(const struct cuda_driver *driver);

/*
 * Whether CUPTI may hang a cooperative launch: under MPS, on a device before Hopper, with a driver
 * before 580 (13.0). false also where the driver does not say.
 */
bool cuda_driver__may_hang(const struct cuda_driver *driver, uint32_t version);

/* Fills in all of device but its header. What the driver does not report is 0 or an empty name. */
void cuda_driver__describe(const struct cuda_driver *driver, uint32_t ordinal,
			   struct fbt_gpu_device *device, char *name, size_t name_size);

#endif

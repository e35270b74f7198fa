/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "cuda_devices.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "cupti_abi.h"

/* CUPTI's release notes of 13.0: tracing of cooperative launches under MPS needs driver 580. */
#define MPS_MENDED 13000
#define HOPPER	   9 /* compute capability */

static const struct {
	uint32_t attribute;
	size_t offset;
} attributes[] = {
	{CUDA_ATTRIBUTE_COMPUTE_MAJOR, offsetof(struct fbt_gpu_device, compute_major)},
	{CUDA_ATTRIBUTE_COMPUTE_MINOR, offsetof(struct fbt_gpu_device, compute_minor)},
	{CUDA_ATTRIBUTE_SMS, offsetof(struct fbt_gpu_device, sms)},
	{CUDA_ATTRIBUTE_WARP_SIZE, offsetof(struct fbt_gpu_device, warp_size)},
	{CUDA_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
	 offsetof(struct fbt_gpu_device, max_threads_per_block)},
	{CUDA_ATTRIBUTE_MAX_THREADS_PER_SM, offsetof(struct fbt_gpu_device, max_threads_per_sm)},
	{CUDA_ATTRIBUTE_REGISTERS_PER_BLOCK, offsetof(struct fbt_gpu_device, registers_per_block)},
	{CUDA_ATTRIBUTE_REGISTERS_PER_SM, offsetof(struct fbt_gpu_device, registers_per_sm)},
	{CUDA_ATTRIBUTE_SHARED_PER_BLOCK, offsetof(struct fbt_gpu_device, shared_per_block)},
	{CUDA_ATTRIBUTE_SHARED_PER_BLOCK_OPTIN,
	 offsetof(struct fbt_gpu_device, shared_per_block_optin)},
	{CUDA_ATTRIBUTE_SHARED_PER_SM, offsetof(struct fbt_gpu_device, shared_per_sm)},
	{CUDA_ATTRIBUTE_MAX_BLOCKS_PER_SM, offsetof(struct fbt_gpu_device, max_blocks_per_sm)},
};

static bool find(void *handle, const char *name, void *function)
{
	void *symbol = dlsym(handle, name);

	memcpy(function, &symbol, sizeof(symbol));
	return symbol;
}

int cuda_driver__find(struct cuda_driver *driver)
{
	void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);

	memset(driver, 0, sizeof(*driver));
	if (!handle || !find(handle, "cuDriverGetVersion", &driver->driver_version) ||
	    !find(handle, "cuDeviceGetCount", &driver->count) ||
	    !find(handle, "cuDeviceGet", &driver->get) ||
	    !find(handle, "cuDeviceGetName", &driver->name) ||
	    !find(handle, "cuDeviceTotalMem_v2", &driver->memory) ||
	    !find(handle, "cuDeviceGetAttribute", &driver->attribute)) {
		memset(driver, 0, sizeof(*driver));
		return -ENOENT;
	}
	/* v2 returns a separate UUID for each MIG instance. */
	if (!find(handle, "cuDeviceGetUuid_v2", &driver->uuid))
		find(handle, "cuDeviceGetUuid", &driver->uuid);
	return 0;
}

uint32_t cuda_driver__version(const struct cuda_driver *driver)
{
	int version = 0;

	if (!driver->driver_version || driver->driver_version(&version) || version < 0)
		return 0;
	return (uint32_t)version;
}

uint32_t cuda_driver__devices(const struct cuda_driver *driver)
{
	int count = 0;

	if (!driver->count || driver->count(&count) || count < 0)
		return 0;
	return count < CUDA_DEVICES_MAX ? (uint32_t)count : CUDA_DEVICES_MAX;
}

/* 0 also if the driver does not know it. */
static int read_attribute(const struct cuda_driver *driver, uint32_t attribute, int handle)
{
	int value = 0;

	return driver->attribute(&value, attribute, handle) ? 0 : value;
}

bool cuda_driver__may_hang(const struct cuda_driver *driver, uint32_t version)
{
	uint32_t count = version < MPS_MENDED ? cuda_driver__devices(driver) : 0;

	for (uint32_t i = 0; i < count; i++) {
		int major, handle = 0;

		if (driver->get(&handle, (int)i))
			continue;
		major = read_attribute(driver, CUDA_ATTRIBUTE_COMPUTE_MAJOR, handle);
		if (major && major < HOPPER &&
		    read_attribute(driver, CUDA_ATTRIBUTE_MPS_ENABLED, handle))
			return true;
	}
	return false;
}

void cuda_driver__describe(const struct cuda_driver *driver, uint32_t ordinal,
			   struct fbt_gpu_device *device, char *name, size_t name_size)
{
	size_t bytes = 0;
	int handle = 0;

	memset(device, 0, sizeof(*device));
	memset(name, 0, name_size);
	device->id = ordinal;
	if (driver->get(&handle, (int)ordinal))
		return;
	if (driver->name(name, (int)name_size - 1, handle))
		name[0] = '\0';
	if (!driver->memory(&bytes, handle))
		device->memory_bytes = bytes;
	if (driver->uuid && driver->uuid(device->uuid, handle))
		memset(device->uuid, 0, sizeof(device->uuid));
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
		uint32_t *field = (uint32_t *)((char *)device + attributes[i].offset);
		int value = read_attribute(driver, attributes[i].attribute, handle);

		if (value > 0)
			*field = (uint32_t)value;
	}
}

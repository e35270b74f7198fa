/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The part of CUPTI's and the CUDA driver's binary interface that the shim uses, CUPTI 11.8
 * to 13.x. The declarations are ours, and cover only what has kept its place through all those
 * versions. Records are prefixes: a library may write longer ones, depending on its version alone.
 * Never use sizeof of a record as its size: cuptiActivityGetNextRecord steps to the next one.
 * tests/unit/cupti/cupti_abi_test.c compares all of this with NVIDIA's headers where they are
 * installed.
 */
#ifndef FERRUM_CUPTI_ABI_H
#define FERRUM_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Versions as cuptiGetVersion returns them; from 13.0 on major * 10000 + minor * 100 + update. */
enum {
	CUPTI_VERSION_11_8 = 18,
	CUPTI_VERSION_12_3 = 21,
	CUPTI_VERSION_12_5 = 23,
	CUPTI_VERSION_12_6 = 24,
	CUPTI_VERSION_12_9 = 27,
	CUPTI_VERSION_13_0 = 130000, /* 130001 is 13.0 U1 */
	CUPTI_VERSION_13_1 = 130100,
	CUPTI_VERSION_13_2 = 130200,
};

/* CUptiResult */
enum {
	CUPTI_OK = 0,
	CUPTI_MAX_LIMIT = 12, /* that was the last record */
	CUPTI_NOT_COMPATIBLE = 14,
	CUPTI_NOT_INITIALIZED = 15,
	CUPTI_MULTIPLE_SUBSCRIBERS = 39,
	CUPTI_UNKNOWN = 999,
};

/* CUpti_ActivityKind */
enum {
	CUPTI_KIND_MEMCPY = 1,
	CUPTI_KIND_MEMSET = 2,
	CUPTI_KIND_DRIVER = 4,
	CUPTI_KIND_RUNTIME = 5,
	CUPTI_KIND_CONCURRENT_KERNEL = 10,
	CUPTI_KIND_OVERHEAD = 17,
	CUPTI_KIND_MEMCPY2 = 22, /* from device to device */
	CUPTI_KIND_SYNCHRONIZATION = 38,
	CUPTI_KIND_COUNT = 39, /* one more than the highest kind that the shim reads */
};

/* CUpti_CallbackDomain */
enum {
	CUPTI_DOMAIN_DRIVER = 1,
	CUPTI_DOMAIN_RUNTIME = 2,
};

/* CUpti_ActivityAttribute */
enum {
	CUPTI_ATTRIBUTE_POOL_LIMIT = 2, /* size_t */
	CUPTI_ATTRIBUTE_ZEROED = 5,	/* uint8_t */
	CUPTI_ATTRIBUTE_PER_THREAD = 9, /* uint8_t */
};

/* CUpti_ActivityThreadIdType */
enum {
	CUPTI_THREAD_ID_SYSTEM = 1, /* gettid */
};

enum {
	CUPTI_FLUSH_FORCED = 1,	 /* CUpti_ActivityFlag */
	CUPTI_OBJECT_THREAD = 2, /* CUpti_ActivityObjectKind: the object id is process, thread */
};

/* CUpti_ActivityKernel5 to 10 */
struct cupti_kernel {
	uint32_t kind;
	uint8_t cache_config;
	uint8_t shared_config;
	uint16_t registers;
	uint32_t partitioned[2];
	uint64_t start;
	uint64_t end;
	uint64_t completed;
	uint32_t device;
	uint32_t context;
	uint32_t stream;
	int32_t grid[3];
	int32_t block[3];
	int32_t static_shared;
	int32_t dynamic_shared;
	uint32_t local_per_thread;
	uint32_t local_total;
	uint32_t correlation;
	int64_t grid_id;
	const char
		*name; /* CUPTI's memory, reused for another kernel after its module is unloaded */
	void *reserved;
	uint64_t queued;
	uint64_t submitted;
	uint8_t launch[4];
	uint32_t shared_executed;
	uint64_t graph_node;
	uint32_t shared_limit;
	uint32_t graph;
};

/* CUpti_ActivityMemcpy4 to 6 */
struct cupti_memcpy {
	uint32_t kind;
	uint8_t copy_kind;
	uint8_t source_memory;
	uint8_t target_memory;
	uint8_t flags;
	uint64_t bytes;
	uint64_t start;
	uint64_t end;
	uint32_t device;
	uint32_t context;
	uint32_t stream;
	uint32_t correlation;
	uint32_t runtime_correlation;
	uint32_t padding;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
};

/* CUpti_ActivityMemcpyPtoP3 and 4 */
struct cupti_memcpy2 {
	uint32_t kind;
	uint8_t copy_kind;
	uint8_t source_memory;
	uint8_t target_memory;
	uint8_t flags;
	uint64_t bytes;
	uint64_t start;
	uint64_t end;
	uint32_t device;
	uint32_t context;
	uint32_t stream;
	uint32_t source_device;
	uint32_t source_context;
	uint32_t target_device;
	uint32_t target_context;
	uint32_t correlation;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
};

/* CUpti_ActivityMemset3 and 4 */
struct cupti_memset {
	uint32_t kind;
	uint32_t value;
	uint64_t bytes;
	uint64_t start;
	uint64_t end;
	uint32_t device;
	uint32_t context;
	uint32_t stream;
	uint32_t correlation;
	uint16_t flags;
	uint16_t memory;
	uint32_t padding;
	void *reserved;
	uint64_t graph_node;
	uint32_t graph;
};

/* CUpti_ActivityAPI */
struct cupti_api {
	uint32_t kind;
	uint32_t cbid;
	uint64_t start;
	uint64_t end;
	uint32_t process;
	uint32_t thread;
	uint32_t correlation;
	uint32_t result;
};

/* CUpti_ActivitySynchronization and …2 */
struct cupti_synchronization {
	uint32_t kind;
	uint32_t type;
	uint64_t start;
	uint64_t end;
	uint32_t correlation;
	uint32_t context;
	uint32_t stream;
	uint32_t event;
};

/* CUpti_ActivityOverhead; correlation from …2 on, data, which the client frees, from …3 on. */
struct cupti_overhead {
	uint32_t kind;
	uint32_t overhead_kind;
	uint32_t object_kind;
	uint32_t object[3];
	uint64_t start;
	uint64_t end;
	uint32_t correlation;
	uint32_t reserved;
	void *data;
};

/* CUpti_SubscriberParams */
struct cupti_subscriber_params {
	size_t size;
	const char *name;
	char *holder; /* name of the present subscriber */
	size_t holder_size;
};

#define CUPTI_HOLDER_BYTES 128 /* CUPTI wants 64 or more */

typedef void cupti_callback_fn(void *user, uint32_t domain, uint32_t cbid, const void *data);
typedef void cupti_request_fn(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void cupti_complete_fn(void *context, uint32_t stream, uint8_t *buffer, size_t size,
			       size_t valid);
typedef uint64_t cupti_timestamp_fn(void);

/* CUPTI's functions. The optional ones are NULL where a version lacks them. */
struct cupti_calls {
	uint32_t (*get_version)(uint32_t *version);
	uint32_t (*get_result_string)(uint32_t result, const char **text);
	uint32_t (*get_callback_name)(uint32_t domain, uint32_t cbid, const char **name);
	uint32_t (*get_timestamp)(uint64_t *time);
	uint32_t (*subscribe)(void **subscriber, cupti_callback_fn *callback, void *user);
	uint32_t (*unsubscribe)(void *subscriber);
	uint32_t (*get_attribute)(uint32_t attribute, size_t *size, void *value);
	uint32_t (*set_attribute)(uint32_t attribute, size_t *size, void *value);
	uint32_t (*get_thread_id_type)(uint32_t *type);
	uint32_t (*set_thread_id_type)(uint32_t type);
	uint32_t (*register_callbacks)(cupti_request_fn *request, cupti_complete_fn *complete);
	uint32_t (*enable)(uint32_t kind);
	uint32_t (*disable)(uint32_t kind);
	uint32_t (*flush_all)(uint32_t flag);
	uint32_t (*get_next_record)(uint8_t *buffer, size_t valid, void **record);
	uint32_t (*get_dropped)(void *context, uint32_t stream, size_t *dropped);
	/* optional */
	uint32_t (*register_timestamp)(cupti_timestamp_fn *callback);
	uint32_t (*subscribe_v2)(void **subscriber, cupti_callback_fn *callback, void *user,
				 struct cupti_subscriber_params *params);
	uint32_t (*enable_runtime_api)(uint32_t cbid, uint8_t enable);
	uint32_t (*enable_driver_api)(uint32_t cbid, uint8_t enable);
};

/* CUdevice_attribute */
enum {
	CUDA_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
	CUDA_ATTRIBUTE_SHARED_PER_BLOCK = 8,
	CUDA_ATTRIBUTE_WARP_SIZE = 10,
	CUDA_ATTRIBUTE_REGISTERS_PER_BLOCK = 12,
	CUDA_ATTRIBUTE_SMS = 16,
	CUDA_ATTRIBUTE_MAX_THREADS_PER_SM = 39,
	CUDA_ATTRIBUTE_COMPUTE_MAJOR = 75,
	CUDA_ATTRIBUTE_COMPUTE_MINOR = 76,
	CUDA_ATTRIBUTE_SHARED_PER_SM = 81,
	CUDA_ATTRIBUTE_REGISTERS_PER_SM = 82,
	CUDA_ATTRIBUTE_SHARED_PER_BLOCK_OPTIN = 97,
	CUDA_ATTRIBUTE_MAX_BLOCKS_PER_SM = 106,
	CUDA_ATTRIBUTE_MPS_ENABLED = 133,
};

#endif

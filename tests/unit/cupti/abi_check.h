/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Compares cupti/cupti_abi.h and the enumerators of fbt_gpu.h with NVIDIA's headers by static
 * assertions. Only cupti_abi_test compiles it, where those headers are installed.
 */
#include <cupti.h>
#include "cupti_abi.h"
#include "fbt_gpu.h"

#define SAME(a, b) _Static_assert((long long)(a) == (long long)(b), #a " is " #b)
/* A field has the same offset and size in both structures. */
#define FIELD(ours, field, theirs, their_field)                                                    \
	SAME(offsetof(struct ours, field), offsetof(theirs, their_field));                         \
	SAME(sizeof(((struct ours *)0)->field), sizeof(((theirs *)0)->their_field))

/* Results, domains, kinds, attributes. */
SAME(CUPTI_OK, CUPTI_SUCCESS);
SAME(CUPTI_NOT_COMPATIBLE, CUPTI_ERROR_NOT_COMPATIBLE);
SAME(CUPTI_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED);
SAME(CUPTI_MAX_LIMIT, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME(CUPTI_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME(CUPTI_UNKNOWN, CUPTI_ERROR_UNKNOWN);
SAME(CUPTI_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME(CUPTI_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
SAME(CUPTI_KIND_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER);
SAME(CUPTI_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME(CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME(CUPTI_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD);
SAME(CUPTI_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMCPY2);
SAME(CUPTI_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
SAME(CUPTI_DOMAIN_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
SAME(CUPTI_DOMAIN_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API);
SAME(CUPTI_ATTRIBUTE_POOL_LIMIT, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT);
SAME(CUPTI_ATTRIBUTE_ZEROED, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
#if CUPTI_API_VERSION >= 21
SAME(CUPTI_ATTRIBUTE_PER_THREAD, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER);
#endif
SAME(CUPTI_THREAD_ID_SYSTEM, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
SAME(CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME(CUPTI_OBJECT_THREAD, CUPTI_ACTIVITY_OBJECT_THREAD);

/* Values that fbt_gpu.h takes over from CUPTI. */
SAME(FBT_GPU_COPY_UNKNOWN, CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN);
SAME(FBT_GPU_COPY_H2D, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
SAME(FBT_GPU_COPY_D2H, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
SAME(FBT_GPU_COPY_H2A, CUPTI_ACTIVITY_MEMCPY_KIND_HTOA);
SAME(FBT_GPU_COPY_A2H, CUPTI_ACTIVITY_MEMCPY_KIND_ATOH);
SAME(FBT_GPU_COPY_A2A, CUPTI_ACTIVITY_MEMCPY_KIND_ATOA);
SAME(FBT_GPU_COPY_A2D, CUPTI_ACTIVITY_MEMCPY_KIND_ATOD);
SAME(FBT_GPU_COPY_D2A, CUPTI_ACTIVITY_MEMCPY_KIND_DTOA);
SAME(FBT_GPU_COPY_D2D, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
SAME(FBT_GPU_COPY_H2H, CUPTI_ACTIVITY_MEMCPY_KIND_HTOH);
SAME(FBT_GPU_COPY_P2P, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
SAME(FBT_GPU_MEMORY_UNKNOWN, CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN);
SAME(FBT_GPU_MEMORY_PAGEABLE, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
SAME(FBT_GPU_MEMORY_PINNED, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
SAME(FBT_GPU_MEMORY_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
SAME(FBT_GPU_MEMORY_ARRAY, CUPTI_ACTIVITY_MEMORY_KIND_ARRAY);
SAME(FBT_GPU_MEMORY_MANAGED, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED);
SAME(FBT_GPU_MEMORY_DEVICE_STATIC, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC);
SAME(FBT_GPU_MEMORY_MANAGED_STATIC, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC);
SAME(FBT_GPU_SYNC_UNKNOWN, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN);
SAME(FBT_GPU_SYNC_EVENT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);
SAME(FBT_GPU_SYNC_STREAM_WAIT_EVENT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
SAME(FBT_GPU_SYNC_STREAM, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE);
SAME(FBT_GPU_SYNC_CONTEXT, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE);
/* In 11.8 the macro is -1; the field has 32 bits. */
SAME(FBT_GPU_NO_STREAM, (uint32_t)CUPTI_SYNCHRONIZATION_INVALID_VALUE);
SAME(FBT_GPU_OVERHEAD_BUFFER_FLUSH, CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH);
SAME(FBT_GPU_OVERHEAD_INSTRUMENTATION, CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION);
SAME(FBT_GPU_OVERHEAD_RESOURCE, CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE);
#if CUPTI_API_VERSION >= 26
SAME(FBT_GPU_OVERHEAD_LAZY_LOADING, CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING);
SAME(FBT_GPU_OVERHEAD_COMMAND_BUFFER_FULL, CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL);
#endif
#if CUPTI_API_VERSION >= 130000
SAME(FBT_GPU_OVERHEAD_BUFFER_REQUEST, CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST);
#endif

/* Kernel records of every version that the shim may meet. */
#define KERNEL(theirs)                                                                             \
	FIELD(cupti_kernel, kind, theirs, kind);                                                   \
	FIELD(cupti_kernel, registers, theirs, registersPerThread);                                \
	FIELD(cupti_kernel, start, theirs, start);                                                 \
	FIELD(cupti_kernel, end, theirs, end);                                                     \
	FIELD(cupti_kernel, completed, theirs, completed);                                         \
	FIELD(cupti_kernel, device, theirs, deviceId);                                             \
	FIELD(cupti_kernel, context, theirs, contextId);                                           \
	FIELD(cupti_kernel, stream, theirs, streamId);                                             \
	FIELD(cupti_kernel, grid[0], theirs, gridX);                                               \
	FIELD(cupti_kernel, grid[2], theirs, gridZ);                                               \
	FIELD(cupti_kernel, block[0], theirs, blockX);                                             \
	FIELD(cupti_kernel, block[2], theirs, blockZ);                                             \
	FIELD(cupti_kernel, static_shared, theirs, staticSharedMemory);                            \
	FIELD(cupti_kernel, dynamic_shared, theirs, dynamicSharedMemory);                          \
	FIELD(cupti_kernel, correlation, theirs, correlationId);                                   \
	FIELD(cupti_kernel, grid_id, theirs, gridId);                                              \
	FIELD(cupti_kernel, name, theirs, name);                                                   \
	FIELD(cupti_kernel, queued, theirs, queued);                                               \
	FIELD(cupti_kernel, submitted, theirs, submitted);                                         \
	FIELD(cupti_kernel, graph_node, theirs, graphNodeId);                                      \
	FIELD(cupti_kernel, graph, theirs, graphId)

KERNEL(CUpti_ActivityKernel5);
KERNEL(CUpti_ActivityKernel6);
KERNEL(CUpti_ActivityKernel7);
KERNEL(CUpti_ActivityKernel8);
#if CUPTI_API_VERSION >= 19
KERNEL(CUpti_ActivityKernel9);
#endif
#if CUPTI_API_VERSION >= 130000
KERNEL(CUpti_ActivityKernel10);
#endif

/* Fields that copies and fills share. */
#define WORK(ours, theirs)                                                                         \
	FIELD(ours, kind, theirs, kind);                                                           \
	FIELD(ours, bytes, theirs, bytes);                                                         \
	FIELD(ours, start, theirs, start);                                                         \
	FIELD(ours, end, theirs, end);                                                             \
	FIELD(ours, device, theirs, deviceId);                                                     \
	FIELD(ours, context, theirs, contextId);                                                   \
	FIELD(ours, stream, theirs, streamId);                                                     \
	FIELD(ours, correlation, theirs, correlationId);                                           \
	FIELD(ours, graph_node, theirs, graphNodeId);                                              \
	FIELD(ours, graph, theirs, graphId)

#define COPY(theirs)                                                                               \
	WORK(cupti_memcpy, theirs);                                                                \
	FIELD(cupti_memcpy, copy_kind, theirs, copyKind);                                          \
	FIELD(cupti_memcpy, source_memory, theirs, srcKind);                                       \
	FIELD(cupti_memcpy, target_memory, theirs, dstKind);                                       \
	FIELD(cupti_memcpy, flags, theirs, flags)

COPY(CUpti_ActivityMemcpy4);
COPY(CUpti_ActivityMemcpy5);
#if CUPTI_API_VERSION >= 26
COPY(CUpti_ActivityMemcpy6);
#endif

#define PEER(theirs)                                                                               \
	WORK(cupti_memcpy2, theirs);                                                               \
	FIELD(cupti_memcpy2, copy_kind, theirs, copyKind);                                         \
	FIELD(cupti_memcpy2, source_memory, theirs, srcKind);                                      \
	FIELD(cupti_memcpy2, target_memory, theirs, dstKind);                                      \
	FIELD(cupti_memcpy2, source_device, theirs, srcDeviceId);                                  \
	FIELD(cupti_memcpy2, target_device, theirs, dstDeviceId)

PEER(CUpti_ActivityMemcpyPtoP3);
PEER(CUpti_ActivityMemcpyPtoP4);

#define FILL(theirs)                                                                               \
	WORK(cupti_memset, theirs);                                                                \
	FIELD(cupti_memset, value, theirs, value);                                                 \
	FIELD(cupti_memset, memory, theirs, memoryKind)

FILL(CUpti_ActivityMemset3);
FILL(CUpti_ActivityMemset4);

FIELD(cupti_api, kind, CUpti_ActivityAPI, kind);
FIELD(cupti_api, cbid, CUpti_ActivityAPI, cbid);
FIELD(cupti_api, start, CUpti_ActivityAPI, start);
FIELD(cupti_api, end, CUpti_ActivityAPI, end);
FIELD(cupti_api, process, CUpti_ActivityAPI, processId);
FIELD(cupti_api, thread, CUpti_ActivityAPI, threadId);
FIELD(cupti_api, correlation, CUpti_ActivityAPI, correlationId);
FIELD(cupti_api, result, CUpti_ActivityAPI, returnValue);
SAME(sizeof(struct cupti_api), sizeof(CUpti_ActivityAPI));

FIELD(cupti_synchronization, kind, CUpti_ActivitySynchronization, kind);
FIELD(cupti_synchronization, type, CUpti_ActivitySynchronization, type);
FIELD(cupti_synchronization, start, CUpti_ActivitySynchronization, start);
FIELD(cupti_synchronization, end, CUpti_ActivitySynchronization, end);
FIELD(cupti_synchronization, correlation, CUpti_ActivitySynchronization, correlationId);
FIELD(cupti_synchronization, context, CUpti_ActivitySynchronization, contextId);
FIELD(cupti_synchronization, stream, CUpti_ActivitySynchronization, streamId);
FIELD(cupti_synchronization, event, CUpti_ActivitySynchronization, cudaEventId);

FIELD(cupti_overhead, kind, CUpti_ActivityOverhead, kind);
FIELD(cupti_overhead, overhead_kind, CUpti_ActivityOverhead, overheadKind);
FIELD(cupti_overhead, object_kind, CUpti_ActivityOverhead, objectKind);
FIELD(cupti_overhead, object, CUpti_ActivityOverhead, objectId);
FIELD(cupti_overhead, object[1], CUpti_ActivityOverhead, objectId.pt.threadId);
FIELD(cupti_overhead, start, CUpti_ActivityOverhead, start);
FIELD(cupti_overhead, end, CUpti_ActivityOverhead, end);
#if CUPTI_API_VERSION >= 22
FIELD(cupti_overhead, correlation, CUpti_ActivityOverhead2, correlationId);
#endif
#if CUPTI_API_VERSION >= 26
FIELD(cupti_overhead, correlation, CUpti_ActivityOverhead3, correlationId);
FIELD(cupti_overhead, data, CUpti_ActivityOverhead3, overheadData);
#endif

#if CUPTI_API_VERSION >= 130000
FIELD(cupti_subscriber_params, size, CUpti_SubscriberParams, structSize);
FIELD(cupti_subscriber_params, name, CUpti_SubscriberParams, subscriberName);
FIELD(cupti_subscriber_params, holder, CUpti_SubscriberParams, oldSubscriberName);
FIELD(cupti_subscriber_params, holder_size, CUpti_SubscriberParams, oldSubscriberSize);
SAME(sizeof(struct cupti_subscriber_params), CUpti_SubscriberParams_STRUCT_SIZE);
_Static_assert(CUPTI_HOLDER_BYTES >= CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN, "room for a name");
#endif

SAME(CUDA_ATTRIBUTE_MAX_THREADS_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(CUDA_ATTRIBUTE_SHARED_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
SAME(CUDA_ATTRIBUTE_WARP_SIZE, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
SAME(CUDA_ATTRIBUTE_REGISTERS_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
SAME(CUDA_ATTRIBUTE_SMS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(CUDA_ATTRIBUTE_MAX_THREADS_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
SAME(CUDA_ATTRIBUTE_COMPUTE_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(CUDA_ATTRIBUTE_COMPUTE_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(CUDA_ATTRIBUTE_SHARED_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SAME(CUDA_ATTRIBUTE_REGISTERS_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
SAME(CUDA_ATTRIBUTE_SHARED_PER_BLOCK_OPTIN, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(CUDA_ATTRIBUTE_MAX_BLOCKS_PER_SM, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
#if CUPTI_API_VERSION >= 26
SAME(CUDA_ATTRIBUTE_MPS_ENABLED, CU_DEVICE_ATTRIBUTE_MPS_ENABLED);
#endif

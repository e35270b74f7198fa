/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Shared by the doubles of libcuda and libcupti and the engine that uses them. A device is
 * computed: work begins when its call has ended and the work that it waits for is done, and takes
 * as long as the engine says. So begin and end are known to the nanosecond, while real time passes.
 * Times are those of the tracer's now(); without a tracer, those of the process's CLOCK_MONOTONIC.
 */
#ifndef FBT_TESTS_FAKE_CUDA_H
#define FBT_TESTS_FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_DEVICES 2
#define FAKE_STREAMS 64 /* of each device */
#define FAKE_NODES   64 /* maximum in a graph */

/* CUPTI's domains of callbacks. */
enum fake_domain { FAKE_DRIVER = 1, FAKE_RUNTIME = 2 };

/* Ids of callbacks, with CUPTI's numbers. */
enum {
	FAKE_CUDA_GET_DEVICE = 17,
	FAKE_CUDA_MEMCPY = 31,
	FAKE_CUDA_MEMCPY_ASYNC = 41,
	FAKE_CUDA_MEMSET_ASYNC = 51,
	FAKE_CUDA_STREAM_SYNC = 131,
	FAKE_CUDA_EVENT_SYNC = 137,
	FAKE_CUDA_STREAM_WAIT_EVENT = 147,
	FAKE_CUDA_MEMCPY_PEER_ASYNC = 161,
	FAKE_CUDA_DEVICE_SYNC = 165,
	FAKE_CUDA_LAUNCH = 211,
	FAKE_CUDA_GRAPH_LAUNCH = 311,
	FAKE_CUDA_LAUNCH_EX = 430,
	FAKE_CUDA_LAUNCH_13 = 505,
	FAKE_CU_DRIVER_GET_VERSION = 2,
	FAKE_CU_CTX_SYNC = 17,
	FAKE_CU_EVENT_SYNC = 121,
	FAKE_CU_STREAM_SYNC = 126,
	FAKE_CU_MEMSET_ASYNC = 216,
	FAKE_CU_MEMCPY_H2D = 276,
	FAKE_CU_MEMCPY_H2D_ASYNC = 277,
	FAKE_CU_MEMCPY_D2H_ASYNC = 279,
	FAKE_CU_MEMCPY_D2D_ASYNC = 281,
	FAKE_CU_STREAM_WAIT_EVENT = 295,
	FAKE_CU_CTX_GET_CURRENT = 304,
	FAKE_CU_LAUNCH = 307,
	FAKE_CU_MEMCPY_PEER_ASYNC = 319,
	FAKE_CU_GRAPH_LAUNCH = 514,
	FAKE_CU_LAUNCH_EX = 652,
};

enum fake_work_kind { FAKE_KERNEL = 0, FAKE_MEMCPY = 1, FAKE_MEMSET = 2 };

/* What the tracer did with a piece of work. */
enum fake_fate {
	FAKE_UNTRACED = 0, /* not traced */
	FAKE_TRACED = 1,
	FAKE_ZERO = 2,	  /* its record has no times */
	FAKE_DROPPED = 3, /* it has no record */
};

struct fake_work {
	uint32_t kind; /* enum fake_work_kind */
	uint32_t device;
	uint32_t stream;
	uint32_t copy_kind;	/* CUpti_ActivityMemcpyKind */
	uint32_t source_memory; /* CUpti_ActivityMemoryKind */
	uint32_t target_memory;
	uint32_t peer;	      /* the other device of a copy between two devices */
	uint32_t graph;	      /* 0: not part of a graph */
	uint64_t graph_node;  /* 0: not part of a graph */
	int64_t delay_ns;     /* from the end of the call; negative: before that */
	uint64_t duration_ns; /* time on the device */
	uint64_t bytes;
	const char *name; /* of a kernel; never freed */
	/* Output. */
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t correlation; /* 0: the tracer gave none */
	uint32_t fate;	      /* enum fake_fate */
};

/* A call of the API. A runtime call contains a driver call. */
struct fake_call {
	uint32_t domain;
	uint32_t cbid;
	uint32_t correlation;
	uint32_t recorded; /* it has a record */
	uint64_t start_ns; /* 0: there was no such call */
	uint64_t end_ns;
};

/* Work that one call launches. */
struct fake_launch {
	uint32_t domain; /* enum fake_domain of the engine's call */
	uint32_t runtime_cbid;
	uint32_t driver_cbid;
	uint32_t count;
	struct fake_work *works; /* in one stream, one after the other */
	uint64_t api_ns;	 /* minimum length of the call */
	uint64_t full_ns;	 /* before that, the launch queue was full for this time */
	bool blocking;		 /* the call returns when the work is done */
	/* Output. */
	struct fake_call calls[2]; /* the engine's call, and the one inside */
};

enum fake_scope { FAKE_STREAM = 0, FAKE_DEVICE = 1, FAKE_EVENT = 2 };

enum fake_how { FAKE_SPIN = 0, FAKE_FUTEX = 1, FAKE_POLL = 2 };

/* A wait for work. */
struct fake_wait {
	uint32_t domain;
	uint32_t scope; /* enum fake_scope */
	uint32_t device;
	uint32_t stream;
	uint32_t how;	  /* enum fake_how */
	uint64_t tail_ns; /* minimum time from the end of the work to that of the call */
	/* Output. */
	struct fake_call calls[2];
	uint64_t work_end_ns; /* end of the last work that it waited for */
};

/* libcupti's hooks into libcuda. */
struct fake_tracer {
	uint64_t (*now)(void);
	/* While held, the caller's records may be incomplete, so no flush takes them. */
	void (*hold)(bool held);
	/*
	 * A call begins. outer is the correlation id of the enclosing call, or 0. Fills the call
	 * in.
	 */
	void (*begin)(struct fake_call *call, uint32_t outer);
	/* The call has ended, and end_ns is set. */
	void (*end)(struct fake_call *call);
	/* Work was launched. All fields but fate are set. */
	void (*work)(struct fake_work *work);
	/* kind: CUpti_ActivitySynchronizationType. The call has the times. */
	void (*sync)(const struct fake_call *call, uint32_t kind, uint32_t stream);
	/* The launch queue was full. */
	void (*full)(const struct fake_call *call, uint64_t start_ns, uint64_t end_ns);
};

/* Sets the tracer for good. */
void fake_cuda_set_tracer(const struct fake_tracer *tracer);

uint64_t fake_cuda_now(void);
void fake_cuda_launch(struct fake_launch *launch);
void fake_cuda_wait(struct fake_wait *wait);
/* Work that comes into the stream later waits for the work that is in the other stream now. */
void fake_cuda_stream_wait(struct fake_call calls[2], uint32_t domain, uint32_t device,
			   uint32_t stream, uint32_t other);
/* A call that neither launches work nor waits for it. */
void fake_cuda_noise(uint32_t domain);

/* The driver calls that tools make. Results: 0, or CUDA's error number. */
int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGetName(char *name, int size, int device);
int cuDeviceGetUuid(void *uuid, int device);
int cuDeviceGetUuid_v2(void *uuid, int device);
int cuDeviceTotalMem_v2(size_t *bytes, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device);

#endif

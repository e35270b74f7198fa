/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * The records that the shim in the engine's process (cupti/) sends to the tool, and the shared
 * memory that carries them.
 *
 * Records have the form of fbt_event.h. The shim writes them into the ring as frames, with tgid 0,
 * thread ids of its own PID namespace and CUPTI's time stamps. user/shim/ring.c checks them.
 * user/shim/relay.c fills in tgid and tid of the initial PID namespace, converts the times to
 * CLOCK_MONOTONIC, and sends them on. Enumerators that are named after a CUPTI type have the values
 * of cupti_activity.h, which documents them as fixed.
 */
#ifndef FBT_GPU_H
#define FBT_GPU_H

#include "fbt_event.h"

/* Status of the shim of a process. */
enum fbt_gpu_status {
	FBT_GPU_ABSENT = 0,	   /* no shim in this process */
	FBT_GPU_ARMED = 1,	   /* records flow from time_ns on */
	FBT_GPU_ENDED = 2,	   /* records have ended, as requested */
	FBT_GPU_EXITED = 3,	   /* records have ended because the process ended */
	FBT_GPU_STALLED = 4,	   /* records have ended because the shim no longer answers */
	FBT_GPU_NO_CUPTI = 5,	   /* no libcupti was found */
	FBT_GPU_OLD_CUPTI = 6,	   /* libcupti is too old, perhaps only for a late attach */
	FBT_GPU_NO_DRIVER = 7,	   /* CUPTI says that there is no driver */
	FBT_GPU_BUSY = 8,	   /* another tool is CUPTI's only subscriber */
	FBT_GPU_FAILED = 9,	   /* another error of CUPTI */
	FBT_GPU_BAD_RING = 10,	   /* the shared memory is not that of a shim */
	FBT_GPU_OTHER_SHIM = 11,   /* a shim of another version */
	FBT_GPU_TAKEN = 12,	   /* another tracer reads the records */
	FBT_GPU_OFF = 13,	   /* --gpu off */
	FBT_GPU_NOT_CUDA = 14,	   /* no shim, but the process does not use CUDA */
	FBT_GPU_NOT_INJECTED = 15, /* --gpu inject: the shim could not be injected */
	FBT_GPU_STATUS_COUNT = 16,
};

enum fbt_gpu_clock_method {
	FBT_GPU_CLOCK_UNKNOWN = 0,
	FBT_GPU_CLOCK_CALLBACK = 1, /* CUPTI calls ours: CLOCK_MONOTONIC of the process */
	FBT_GPU_CLOCK_REALTIME = 2, /* CLOCK_REALTIME, converted by sampled offsets */
	FBT_GPU_CLOCK_CUPTI = 3,    /* cuptiGetTimestamp's clock, converted by sampled offsets */
	FBT_GPU_CLOCK_METHOD_COUNT = 4,
};

/*
 * Sent whenever the status changes. Strings: detail ("held by nsys"; may be ""), path of libcupti.
 */
struct fbt_gpu_state {
	struct fbt_header header;
	__u32 tgid;
	__u32 status; /* enum fbt_gpu_status */
	__u64 time_ns;
	__u32 cupti_version;  /* cuptiGetVersion: 26 is 12.8, 130001 is 13.0 U1; 0: not known */
	__u32 driver_version; /* cuDriverGetVersion: 13000 is 13.0; 0: not known */
	__u32 shim_version;   /* FBT_GPU_VERSION of the shim */
	__u32 clock_method;   /* enum fbt_gpu_clock_method */
	__u64 arm_ns;	      /* ARMED: from the tool's request until CUPTI collects */
};

/* Names of a process have ids 1 … FBT_GPU_NAMES_MAX. */
#define FBT_GPU_NAMES_MAX      8192
#define FBT_GPU_NAME_BYTES_MAX 2048 /* of one name, including NUL; longer names are cut */

enum fbt_gpu_name_kind {
	FBT_GPU_NAME_KERNEL = 0, /* the symbol: mangled */
	FBT_GPU_NAME_API = 1,	 /* cuptiGetCallbackName: "cudaLaunchKernel_v7000" */
	FBT_GPU_NAME_KIND_COUNT = 2,
};

/*
 * Sent before the first record that uses the id. A later record for the id replaces it. Strings:
 * name.
 */
struct fbt_gpu_name {
	struct fbt_header header;
	__u32 tgid;
	__u32 id;
	__u32 kind; /* enum fbt_gpu_name_kind */
	__u32 reserved;
};

/* A device, with the process's own number. Strings: name. 0: not known. */
struct fbt_gpu_device {
	struct fbt_header header;
	__u32 tgid;
	__u32 id;
	__u8 uuid[16];
	__u64 memory_bytes;
	__u32 compute_major;
	__u32 compute_minor;
	__u32 sms;
	__u32 warp_size;
	__u32 max_threads_per_block;
	__u32 max_threads_per_sm;
	__u32 registers_per_block;
	__u32 registers_per_sm;
	__u32 shared_per_block;
	__u32 shared_per_block_optin;
	__u32 shared_per_sm;
	__u32 max_blocks_per_sm;
};

enum fbt_gpu_work_kind {
	FBT_GPU_KERNEL = 0,
	FBT_GPU_MEMCPY = 1,
	FBT_GPU_MEMSET = 2,
	FBT_GPU_WORK_KIND_COUNT = 3,
};

/* CUpti_ActivityMemcpyKind */
enum fbt_gpu_copy_kind {
	FBT_GPU_COPY_UNKNOWN = 0,
	FBT_GPU_COPY_H2D = 1,
	FBT_GPU_COPY_D2H = 2,
	FBT_GPU_COPY_H2A = 3,
	FBT_GPU_COPY_A2H = 4,
	FBT_GPU_COPY_A2A = 5,
	FBT_GPU_COPY_A2D = 6,
	FBT_GPU_COPY_D2A = 7,
	FBT_GPU_COPY_D2D = 8,
	FBT_GPU_COPY_H2H = 9,
	FBT_GPU_COPY_P2P = 10,
	FBT_GPU_COPY_KIND_COUNT = 11,
};

/* CUpti_ActivityMemoryKind */
enum fbt_gpu_memory_kind {
	FBT_GPU_MEMORY_UNKNOWN = 0,
	FBT_GPU_MEMORY_PAGEABLE = 1,
	FBT_GPU_MEMORY_PINNED = 2,
	FBT_GPU_MEMORY_DEVICE = 3,
	FBT_GPU_MEMORY_ARRAY = 4,
	FBT_GPU_MEMORY_MANAGED = 5,
	FBT_GPU_MEMORY_DEVICE_STATIC = 6,
	FBT_GPU_MEMORY_MANAGED_STATIC = 7,
};

/* What a device did: a kernel, a copy, a memset. */
struct fbt_gpu_work {
	struct fbt_header header;
	__u32 tgid;
	__u32 kind;	/* enum fbt_gpu_work_kind */
	__u64 start_ns; /* both 0: CUPTI did not measure it */
	__u64 end_ns;
	__u32 device;
	__u32 context;
	__u32 stream;
	__u32 correlation; /* of the call that launched it; 0: none */
	__u64 graph_node;  /* 0: not of a CUDA graph */
	__u32 graph;
	__u32 name; /* kernels: fbt_gpu_name.id; 0: not known */
	union {
		struct {
			__u32 grid[3];
			__u32 block[3];
			__u32 static_shared; /* bytes */
			__u32 dynamic_shared;
			__u32 registers; /* per thread */
			__u32 reserved;
		} kernel;
		struct {
			__u64 bytes;
			__u32 kind;	     /* enum fbt_gpu_copy_kind; 0 for a memset */
			__u32 value;	     /* memset only */
			__u32 source_device; /* for P2P; else equal to device */
			__u32 target_device;
			__u8 source_memory; /* enum fbt_gpu_memory_kind */
			__u8 target_memory; /* enum fbt_gpu_memory_kind; also for a memset */
			__u8 reserved[14];
		} copy;
	};
};

/* The purpose of a CUDA API call. */
enum fbt_gpu_api_class {
	FBT_GPU_API_OTHER = 0,
	FBT_GPU_API_LAUNCH = 1, /* launches a kernel */
	FBT_GPU_API_GRAPH = 2,	/* launches a CUDA graph: all its work has the call's correlation */
	FBT_GPU_API_MEMCPY = 3,
	FBT_GPU_API_MEMSET = 4,
	FBT_GPU_API_SYNC = 5,	     /* waits for a stream, an event, a context or a device */
	FBT_GPU_API_CAPTURE = 6,     /* what the thread launches from now on makes a graph … */
	FBT_GPU_API_CAPTURE_END = 7, /* … up to this call; it is no work */
	FBT_GPU_API_CLASS_COUNT = 8,
};

/* fbt_gpu_api.header.flags */
#define FBT_GPU_API_DRIVER   1 /* of the driver API, else of the runtime */
#define FBT_GPU_API_NESTED   2 /* inside a runtime call of the same correlation; set by gpu/merge */
#define FBT_GPU_API_BLOCKING 4 /* a synchronous copy: the name does not end in Async */

/* A call of the CUDA runtime or driver API that launches work or waits for it. */
struct fbt_gpu_api {
	struct fbt_header header;
	__u32 tgid;
	__u32 tid;
	__u64 start_ns;
	__u64 end_ns;
	__u32 correlation;
	__u32 cbid;
	__u32 name;	 /* fbt_gpu_name.id */
	__u32 api_class; /* enum fbt_gpu_api_class */
	__u32 result;
	__u32 reserved;
};

/* CUpti_ActivitySynchronizationType */
enum fbt_gpu_sync_kind {
	FBT_GPU_SYNC_UNKNOWN = 0,
	FBT_GPU_SYNC_EVENT = 1,
	FBT_GPU_SYNC_STREAM_WAIT_EVENT = 2,
	FBT_GPU_SYNC_STREAM = 3,
	FBT_GPU_SYNC_CONTEXT = 4,
	FBT_GPU_SYNC_KIND_COUNT = 5,
};

#define FBT_GPU_NO_STREAM 0xffffffffu

/* What a synchronization waited for. Its API call has the same correlation. */
struct fbt_gpu_sync {
	struct fbt_header header;
	__u32 tgid;
	__u32 kind; /* enum fbt_gpu_sync_kind */
	__u64 start_ns;
	__u64 end_ns;
	__u32 correlation;
	__u32 context;
	__u32 stream; /* FBT_GPU_NO_STREAM: all streams of the context */
	__u32 event;
};

/* Values of CUpti_ActivityOverheadKind that the tool knows */
#define FBT_GPU_OVERHEAD_BUFFER_FLUSH	 (1u << 16)
#define FBT_GPU_OVERHEAD_INSTRUMENTATION (2u << 16)
#define FBT_GPU_OVERHEAD_RESOURCE	 (3u << 16)
#define FBT_GPU_OVERHEAD_LAZY_LOADING	 (5u << 16)
/* The launch queue is full: the GPU does not keep up. */
#define FBT_GPU_OVERHEAD_COMMAND_BUFFER_FULL (6u << 16)
#define FBT_GPU_OVERHEAD_BUFFER_REQUEST	     (7u << 16)

/* Time that CUPTI or the driver took from a thread, as CUPTI reports it. */
struct fbt_gpu_overhead {
	struct fbt_header header;
	__u32 tgid;
	__u32 tid; /* 0: not known */
	__u64 start_ns;
	__u64 end_ns;
	__u32 kind;
	__u32 correlation;
};

/*
 * All records of calls and work that ended by time_ns have been sent. CUPTI holds back a buffer,
 * with all its records, while any work in it runs. On a GPU that is always busy this is so at every
 * flush; time_ns is then the time at which the oldest outstanding buffer with records was handed
 * out, minus the time that a call may take to be recorded. Totals are since arming.
 */
struct fbt_gpu_flush {
	struct fbt_header header;
	__u32 tgid;
	__u32 last; /* 1: nothing follows */
	__u64 time_ns;
	__u64 sent_ns;	      /* when it was sent; later than time_ns while a buffer is held back */
	__u64 records;	      /* records written to the ring */
	__u64 cupti_dropped;  /* CUPTI dropped them: no buffer, or no room on the device */
	__u64 ring_lost;      /* records that found no room in the ring */
	__u64 no_buffer;      /* buffer requests of CUPTI that failed: their records are lost */
	__u64 unknown;	      /* records of kinds or sizes that the shim does not know */
	__u64 shim_ns;	      /* time spent in the shim's callbacks and flushes */
	__u64 clock_error_ns; /* bound of the conversion, without CUPTI's own interpolation */
	__u64 clock_steps;    /* jumps of the clock that CUPTI uses */
};

/* The same moment on two clocks. In the ring only; not ordered with the records around it. */
struct fbt_gpu_clock {
	struct fbt_header header;
	__u32 tgid;
	__u32 method; /* enum fbt_gpu_clock_method, of the records that follow */
	__u64 mono_ns;
	__u64 gpu_ns;	/* time on the clock of the records */
	__u64 error_ns; /* half the time between the readings of mono_ns before and after gpu_ns */
};

/*
 * The shared memory is a memfd of this name, sealed against shrinking and growing, which the tool
 * finds in /proc/PID/fd. It has struct fbt_gpu_ring at 0 and the bytes of the ring from
 * header_bytes on. Positions count all bytes ever written: a frame at position p begins at p %
 * ring_bytes, and may wrap around the end. Neither side trusts a word that the other side may
 * write.
 */
#define FBT_GPU_MEMFD	     "ferrum-cupti"
#define FBT_GPU_MAGIC	     0x55504754424d5246ull /* "FRMBTGPU" as bytes, little-endian */
#define FBT_GPU_VERSION	     1
#define FBT_GPU_HEADER_BYTES 4096
#define FBT_GPU_RING_BYTES   (8u << 20)
#define FBT_GPU_FRAME_MAX    4096 /* bytes of one frame */

/* The tool increments beat at least this often. */
#define FBT_GPU_BEAT_NS 500000000ull
/* A shim disarms itself if beat has not changed for this long. */
#define FBT_GPU_BEAT_STALE_NS 3000000000ull

enum fbt_gpu_phase {
	FBT_GPU_DORMANT = 0, /* CUPTI is not used; waits for armed to change */
	FBT_GPU_WORKING = 1, /* arming, armed, or disarming */
	FBT_GPU_DEAD = 2,    /* will never work again in this process */
};

struct fbt_gpu_ring {
	/* Constant. magic is written last. */
	__u64 magic;
	__u32 version;
	__u32 header_bytes;
	__u64 ring_bytes;
	__u32 reserved[10];

	/* Written by the shim. A cache line of its own. */
	__u64 head;   /* bytes written; all frames before it are complete */
	__u32 phase;  /* enum fbt_gpu_phase */
	__u32 served; /* the value of armed that was last handled */
	__u32 pulse;  /* incremented at each flush while armed */
	__u32 reserved_shim[11];

	/* Written by the tool. */
	__u64 tail;  /* bytes read */
	__u32 armed; /* a shared futex, only incremented; odd: collect, even: do not */
	__u32 beat;  /* see FBT_GPU_BEAT_NS */
	__u32 reserved_tool[12];
};

FBT_ASSERT_SIZE(fbt_gpu_state, 48);
FBT_ASSERT_SIZE(fbt_gpu_name, 24);
FBT_ASSERT_SIZE(fbt_gpu_device, 88);
FBT_ASSERT_SIZE(fbt_gpu_work, 104);
FBT_ASSERT_SIZE(fbt_gpu_api, 56);
FBT_ASSERT_SIZE(fbt_gpu_sync, 48);
FBT_ASSERT_SIZE(fbt_gpu_overhead, 40);
FBT_ASSERT_SIZE(fbt_gpu_flush, 96);
FBT_ASSERT_SIZE(fbt_gpu_clock, 40);
FBT_ASSERT_SIZE(fbt_gpu_ring, 192);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * What the shim in the engine's process (cupti/) tells the tool, and the shared memory in which it
 * does.
 *
 * The records are those of fbt_event.h in form: the shim writes them as frames into the ring, with
 * tgid 0, its own thread numbers and the time stamps that CUPTI gave; user/gpu_ring checks them,
 * fills in tgid and tid of the initial PID namespace, converts times to CLOCK_MONOTONIC and sends
 * them on as records of the stream. Enumerators that are "CUPTI's" have the values of
 * cupti_activity.h, which it documents as fixed.
 */
#ifndef FBT_GPU_H
#define FBT_GPU_H

#include "fbt_event.h"

/* --- records -------------------------------------------------------------------------------- */

/* How things stand with the shim of a process. */
enum fbt_gpu_status {
	FBT_GPU_ABSENT = 0,	   /* no shim in this process */
	FBT_GPU_ARMED = 1,	   /* records flow from time_ns on */
	FBT_GPU_ENDED = 2,	   /* they flowed, and ended as asked for */
	FBT_GPU_EXITED = 3,	   /* … because the process ended */
	FBT_GPU_STALLED = 4,	   /* … because the shim no longer answers */
	FBT_GPU_NO_CUPTI = 5,	   /* no libcupti was found */
	FBT_GPU_OLD_CUPTI = 6,	   /* it is too old, or too old for what would be done */
	FBT_GPU_NO_DRIVER = 7,	   /* CUPTI says that there is no driver */
	FBT_GPU_BUSY = 8,	   /* another tool holds CUPTI's one subscriber seat */
	FBT_GPU_FAILED = 9,	   /* CUPTI refused something else */
	FBT_GPU_BAD_RING = 10,	   /* what the process shares is not what a shim would */
	FBT_GPU_OTHER_SHIM = 11,   /* a shim of another version */
	FBT_GPU_TAKEN = 12,	   /* another tracer reads its records */
	FBT_GPU_OFF = 13,	   /* --gpu off */
	FBT_GPU_NOT_CUDA = 14,	   /* no shim, and no CUDA in the process either */
	FBT_GPU_NOT_INJECTED = 15, /* --gpu inject: the shim could not be put into it */
	FBT_GPU_STATUS_COUNT = 16,
};

enum fbt_gpu_clock_method {
	FBT_GPU_CLOCK_UNKNOWN = 0,
	FBT_GPU_CLOCK_CALLBACK = 1, /* CUPTI asked our callback: CLOCK_MONOTONIC of the process */
	FBT_GPU_CLOCK_REALTIME = 2, /* CLOCK_REALTIME, converted by sampled offsets */
	FBT_GPU_CLOCK_CUPTI = 3,    /* cuptiGetTimestamp's clock, converted by sampled offsets */
	FBT_GPU_CLOCK_METHOD_COUNT = 4,
};

/*
 * How things stand, sent whenever that changes. Strings: what to say of it beyond the status ("held
 * by nsys"; may be ""), path of libcupti.
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
	__u64 arm_ns;	      /* ARMED: from the tool's wish to CUPTI collecting */
};

/* Names of a process have ids 1 … FBT_GPU_NAMES_MAX. */
#define FBT_GPU_NAMES_MAX      8192
#define FBT_GPU_NAME_BYTES_MAX 2048 /* of one, NUL included; longer ones are cut */

enum fbt_gpu_name_kind {
	FBT_GPU_NAME_KERNEL = 0, /* as the linker knows it: mangled */
	FBT_GPU_NAME_API = 1,	 /* cuptiGetCallbackName: "cudaLaunchKernel_v7000" */
	FBT_GPU_NAME_KIND_COUNT = 2,
};

/* Sent before the first record that uses the id; the same id again replaces it. Strings: name. */
struct fbt_gpu_name {
	struct fbt_header header;
	__u32 tgid;
	__u32 id;
	__u32 kind; /* enum fbt_gpu_name_kind */
	__u32 reserved;
};

/* A device as the process numbers it. Strings: name. 0: not known. */
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
			__u32 kind;	     /* enum fbt_gpu_copy_kind; of a memset 0 */
			__u32 value;	     /* of a memset */
			__u32 source_device; /* P2P, else device */
			__u32 target_device;
			__u8 source_memory; /* enum fbt_gpu_memory_kind */
			__u8 target_memory; /* … also of a memset */
			__u8 reserved[14];
		} copy;
	};
};

/* What a call of the CUDA API is for. */
enum fbt_gpu_api_class {
	FBT_GPU_API_OTHER = 0,
	FBT_GPU_API_LAUNCH = 1, /* of a kernel */
	FBT_GPU_API_GRAPH = 2,	/* of a CUDA graph: many pieces of work with its correlation */
	FBT_GPU_API_MEMCPY = 3,
	FBT_GPU_API_MEMSET = 4,
	FBT_GPU_API_SYNC = 5, /* waits for a stream, an event, a context or a device */
	FBT_GPU_API_CLASS_COUNT = 6,
};

/* fbt_gpu_api.header.flags */
#define FBT_GPU_API_DRIVER   1 /* of the driver API, else of the runtime */
#define FBT_GPU_API_NESTED   2 /* inside of a runtime call of the same correlation; set by merge */
#define FBT_GPU_API_BLOCKING 4 /* a copy that returns when it is done, by its name: not …Async */

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

/* What a synchronization waited for; its call has the same correlation. */
struct fbt_gpu_sync {
	struct fbt_header header;
	__u32 tgid;
	__u32 kind; /* enum fbt_gpu_sync_kind */
	__u64 start_ns;
	__u64 end_ns;
	__u32 correlation;
	__u32 context;
	__u32 stream; /* FBT_GPU_NO_STREAM: all of the context */
	__u32 event;
};

/* CUpti_ActivityOverheadKind that mean something to us */
#define FBT_GPU_OVERHEAD_BUFFER_FLUSH	 (1u << 16)
#define FBT_GPU_OVERHEAD_INSTRUMENTATION (2u << 16)
#define FBT_GPU_OVERHEAD_RESOURCE	 (3u << 16)
#define FBT_GPU_OVERHEAD_LAZY_LOADING	 (5u << 16)
#define FBT_GPU_OVERHEAD_COMMAND_BUFFER_FULL                                                       \
	(6u << 16) /* the launch queue is: the GPU is behind                                       \
		    */
#define FBT_GPU_OVERHEAD_BUFFER_REQUEST (7u << 16)

/* What CUPTI says that it, or the driver, took from a thread. */
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
 * All records of what was done by time_ns have been sent: of calls, and of work but for that which
 * still runs. CUPTI keeps a buffer back, with all that is in it, as long as one piece of its work
 * runs, and where a GPU is always busy one does at every flush: time_ns is then earlier, by what a
 * call may take to be written down, than when the oldest buffer that is out, and has records, was
 * handed out. Totals are since arming.
 */
struct fbt_gpu_flush {
	struct fbt_header header;
	__u32 tgid;
	__u32 last; /* 1: nothing comes any more */
	__u64 time_ns;
	__u64 sent_ns; /* when this was said; later than time_ns while a buffer is kept back */
	__u64 records; /* written to the ring */
	__u64 cupti_dropped; /* CUPTI had no buffer, or no room on the device */
	__u64 ring_lost;     /* no room in the ring */
	__u64 no_buffer;     /* requests that got none, or one that is not read: records are lost */
	__u64 unknown;	     /* records of kinds or sizes that the shim does not read */
	__u64 shim_ns;	     /* time spent in the shim's callbacks and its flushes */
	__u64 clock_error_ns; /* bound of the conversion, CUPTI's own interpolation not included */
	__u64 clock_steps;    /* jumps of the clock that CUPTI uses */
};

/* Only in the ring: a pair of simultaneous times. In no order with the records around it. */
struct fbt_gpu_clock {
	struct fbt_header header;
	__u32 tgid;
	__u32 method; /* enum fbt_gpu_clock_method: of the records behind it */
	__u64 mono_ns;
	__u64 gpu_ns;	/* on the clock of the records */
	__u64 error_ns; /* half the width of the sandwich it was taken in */
};

/* --- the shared memory ---------------------------------------------------------------------- */

/*
 * A memfd of this name, sealed against shrinking and growing. The tool finds it in /proc/PID/fd.
 * struct fbt_gpu_ring at 0, the bytes of the ring from header_bytes on. Positions count the bytes
 * ever written: a frame at position p begins at p % ring_bytes, may wrap around the end, and is a
 * record as above. Neither side trusts a word that the other may write.
 */
#define FBT_GPU_MEMFD	     "ferrum-cupti"
#define FBT_GPU_MAGIC	     0x55504754424d5246ull /* "FRMBTGPU" as bytes, little-endian */
#define FBT_GPU_VERSION	     1
#define FBT_GPU_HEADER_BYTES 4096
#define FBT_GPU_RING_BYTES   (8u << 20)
#define FBT_GPU_FRAME_MAX    4096 /* bytes of one frame */

/* The tool counts beat up at least this often while it is there … */
#define FBT_GPU_BEAT_NS 500000000ull
/* … and a shim that has not seen it change for so long is on its own again, and disarms. */
#define FBT_GPU_BEAT_STALE_NS 3000000000ull

enum fbt_gpu_phase {
	FBT_GPU_DORMANT = 0, /* CUPTI is not in use; waits for armed to change */
	FBT_GPU_WORKING = 1, /* arming, armed, or disarming */
	FBT_GPU_DEAD = 2,    /* will not work again in this process */
};

struct fbt_gpu_ring {
	/* Fixed once magic is there, which is written last. */
	__u64 magic;
	__u32 version;
	__u32 header_bytes;
	__u64 ring_bytes;
	__u32 reserved[10];

	/* The shim's: a cache line of its own. */
	__u64 head;   /* bytes written: frames before it are whole */
	__u32 phase;  /* enum fbt_gpu_phase */
	__u32 served; /* the value of armed that was dealt with last */
	__u32 pulse;  /* counts up with each turn of the flusher while armed */
	__u32 reserved_shim[11];

	/* The tool's. */
	__u64 tail;  /* bytes read */
	__u32 armed; /* a futex (shared, not private): odd: collect; even: do not. Counts up. */
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

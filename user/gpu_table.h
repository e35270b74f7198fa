/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What is known of the GPU side of each process of a window besides its work. */
#ifndef FBT_GPU_TABLE_H
#define FBT_GPU_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include "fbt_gpu.h"
#include "vec.h"

/* Processes that are kept; of those that do not use CUDA fewer, without a word: each child says so.
 */
#define GPU_PROCESSES_MAX 4096
#define GPU_IDLE_MAX	  1024

/* Devices of a process that are kept, and bytes of names: what comes beyond has no name. */
#define GPU_DEVICES_MAX	   64
#define GPU_NAME_BYTES_MAX (4u << 20)

struct gpu_name {
	char *raw;  /* as it came; NULL: not known */
	char *text; /* as people write it: demangled with arguments; without "_v7000" */
	uint32_t kind;
	uint32_t id;
};

struct gpu_device {
	struct fbt_gpu_device record;
	char *name;
};

/* Counts of the whole window, whatever step they are of. */
struct gpu_counts {
	uint64_t kernels;
	uint64_t memcpys;
	uint64_t memsets;
	uint64_t apis;
	uint64_t syncs;
	uint64_t unmeasured; /* work whose times are zero */
	uint64_t joined;     /* work whose call is known */
	uint64_t unjoined;   /* … is not, though it names one */
	uint64_t violations; /* work that began before its call did: a doubtful clock */
	uint64_t outside;    /* work that was launched outside of any step */
	uint64_t steps;	     /* with GPU figures */
	uint64_t timeouts;   /* of them, sealed by anything but a watermark */
};

struct gpu_process {
	uint32_t tgid;
	struct fbt_gpu_state state; /* the latest */
	char *detail;		    /* of it; never NULL */
	char *library;
	bool armed;			/* it was, at some time in this window … */
	uint64_t arm_ns;		/* … and the latest time that took so long */
	struct fbt_gpu_flush flush;	/* the latest; all 0 before the first */
	struct gpu_counts counts;	/* kept by merge */
	VEC(struct gpu_device) devices; /* by id */
	VEC(struct gpu_name) names;	/* by id */
	size_t name_bytes;
};

struct gpu_table {
	VEC(struct gpu_process *) processes; /* by tgid */
};

/*
 * What assemble fills in. Strings are copied. 0, -ENOMEM (then what was known before stays), or
 * -ENOSPC: more than is kept.
 */
int gpu_table_set_state(struct gpu_table *table, const struct fbt_gpu_state *record,
			const char *detail, const char *library);
int gpu_table_add_name(struct gpu_table *table, const struct fbt_gpu_name *record,
		       const char *name);
int gpu_table_add_device(struct gpu_table *table, const struct fbt_gpu_device *record,
			 const char *name);
int gpu_table_set_flush(struct gpu_table *table, const struct fbt_gpu_flush *record);
void gpu_table_clear(struct gpu_table *table);

/* NULL if nothing was said of it. */
struct gpu_process *gpu_table_find(const struct gpu_table *table, uint32_t tgid);

/* Never NULL: "kernel" for a kernel without a name, "cuda call" for a call. */
const char *gpu_process_kernel_name(const struct gpu_process *process, uint32_t id);
const char *gpu_process_api_name(const struct gpu_process *process, uint32_t id);

/* NULL if not known. */
const struct gpu_device *gpu_process_device(const struct gpu_process *process, uint32_t id);

/* "absent", "armed", …: for JSON. */
const char *gpu_status_name(enum fbt_gpu_status status);

/* "callback", "realtime", "cupti", "unknown". */
const char *gpu_clock_name(enum fbt_gpu_clock_method method);

/* "12.8", "13.0 U1", "CUPTI 99" where this program does not know it; text of 32 bytes. */
const char *gpu_cupti_version_name(uint32_t version, char text[32]);

/* The data of the process is doubtful as a whole: more than 0.1 % of violations. */
bool gpu_process_is_clock_suspect(const struct gpu_process *process);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "cause_kind.h"

static const struct {
	const char *name;
	const char *advice;
} texts[CAUSE_COUNT] = {
	[CAUSE_LOCK_CONTENTION] = {"lock_contention",
				   "find who holds the lock meanwhile (--detail all shows the "
				   "other threads' calls) and hold it for less time"},
	[CAUSE_ALLOCATION_CHURN] = {"allocation_churn",
				    "keep buffers between steps, or let the allocator keep memory "
				    "(glibc: M_TRIM_THRESHOLD, M_MMAP_THRESHOLD)"},
	[CAUSE_DRIVER_CALLS] = {"driver_calls",
				"look at what asks the driver in the step: allocating, pinning or "
				"mapping device memory, or waiting for the device"},
	[CAUSE_FILE_IO] = {"file_io", "take the file out of the step: read it before, write it "
				      "later or from another thread"},
	[CAUSE_TINY_WRITES] = {"tiny_writes",
			       "buffer the output, and write it in pieces of some KiB"},
	[CAUSE_SOCKET_IO] = {"socket_io", "let another thread talk to the peer: the step waits "
					  "for it, or for room in its buffer"},
	[CAUSE_THREAD_CHURN] = {"thread_churn",
				"keep a pool of threads instead of making them in each step"},
	[CAUSE_SIGNAL_STORM] =
		{"signal_storm",
		 "find who sends the signals (a profiler's timer?), or block them on "
		 "this thread"},
	[CAUSE_SLEEP] = {"sleep", "see what it waits for: a poll or sleep inside of the step is "
				  "latency by design"},
	[CAUSE_OTHER_CALLS] = {"other_calls", "look up the named call: it is in none of the groups "
					      "this tool knows"},
	[CAUSE_RUN_QUEUE] = {"run_queue", "give it CPUs of its own: fewer threads or neighbours, "
					  "cpusets, a higher CPU limit"},
	[CAUSE_PAGE_FAULTS] = {"page_faults",
			       "touch memory before the step and keep it: pre-fault, lock it, or "
			       "use huge pages"},
	[CAUSE_GPU_TRANSFER] = {"gpu_transfer",
				"keep data on the GPU between steps, copy less of it at once and "
				"from pinned memory, or while kernels run"},
	[CAUSE_COMPUTE] = {"compute", "profile the code itself: the operating system does not "
				      "explain this time"},
};

const char *cause_name(enum cause_kind kind)
{
	return (unsigned int)kind < CAUSE_COUNT ? texts[kind].name : "unknown";
}

const char *cause_advice(enum cause_kind kind)
{
	return (unsigned int)kind < CAUSE_COUNT ? texts[kind].advice : "";
}

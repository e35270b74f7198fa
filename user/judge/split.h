/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* The time of a step by the causes that its parts belong to. Pure. */
#ifndef FBT_JUDGE_SPLIT_H
#define FBT_JUDGE_SPLIT_H

#include <stdbool.h>
#include <stdint.h>
#include "judge/calls.h"
#include "model/step.h"
#include "model/window.h"

/*
 * Time of a step by part; they sum up to its total (step_total_ns) exactly. TINY_WRITES is 0: those
 * calls are in FILE_IO or SOCKET_IO. So are CPU_LIMIT and MEMORY_LIMIT: that time is in RUN_QUEUE,
 * and in PAGE_FAULTS, OFF_CPU and COMPUTE. GPU_TRANSFER is 0: copies overlap the other parts.
 * UNKNOWN is 0: calls that were not traced are in COMPUTE.
 */
struct cause_times {
	uint64_t ns[CAUSE_COUNT];
	uint64_t covered_ns;	  /* of COMPUTE: calls that waited for the GPU while that worked */
	uint64_t steal_ns;	  /* of OFF_CPU: the host of this virtual machine took the CPU */
	uint64_t worker_ns;	  /* of COMPUTE: the same for a thread of the process */
	uint64_t worker_fault_ns; /* of PAGE_FAULTS: that such a thread waited for a disk */
	uint32_t worker_faults;	  /* of it: those that waited for a disk, … */
	uint32_t worker_minor_faults; /* … and all others of the thread meanwhile */
	/*
	 * How long another thread waited for a CPU, while no call of the step is known to have
	 * waited for that thread. spun_ns: the part of RUN_QUEUE that is due to it.
	 */
	uint64_t starved_ns;
	uint64_t spun_ns;
	/* How long another thread that usually computes was in calls; and of LATE_THREAD. */
	uint64_t late_ns;
	uint64_t late_spun_ns;
	/* The same of a thread that was stopped; and of STOPPED. */
	uint64_t held_ns;
	uint64_t held_spun_ns;
	uint64_t blamable_ns;  /* the most that cause_blame may take from COMPUTE */
	uint32_t threads_made; /* clone, fork … that succeeded */
	uint32_t signals;      /* handlers that returned */
	bool blamed;	       /* cause_blame moved something to SIGNAL_STORM or PAGE_FAULTS */
};

/*
 * Splits a step; see step_split. Up to a microsecond between two calls of a step belongs to the
 * second call: it went into leaving the first and entering the second. So does the code between the
 * calls of a wait that spins.
 *
 * PAGE_FAULTS gets the waits of page faults for a disk, and the time of the faults if that was
 * measured. Otherwise their time is estimated by their number, as far as time is left: each takes
 * the mean of those that were timed lately on the thread, or window->record.fault_ps.
 *
 * Where calls are not known (--detail steps, lost or cut off ones) the categories stand for them:
 * mmap is allocation, futex is locks, ioctl is the driver, read and write are files.
 */
void cause_split(const struct window *window, const struct step *step, struct cause_times *times);

/*
 * What remains of a step without its syscalls (those that are not covered), run queue and page
 * faults. Calls that were not traced remain in it.
 */
uint64_t cause_work_ns(const struct cause_times *times);

/*
 * Of a step that has more work than usual_work_ns, what is left of the excess goes, in this order,
 * to what disturbed it and is measured only in part. All of it is an estimate:
 * - SIGNAL_STORM, up to 20 us for each handler: the interrupt, and the way into it and out of it;
 * - PAGE_FAULTS, up to 100 us for each, in a step that waited for a disk in one, if they were not
 *   timed: the file system's work, such as reading ahead. So are those of a thread that waited for
 *   a disk while the step waited for that thread;
 * - STOPPED, while another thread of the process was stopped: the step is taken to have spun;
 * - LATE_THREAD, while another thread of the process that usually computes was in calls: likewise;
 * - RUN_QUEUE, while another thread of the process was ready to run but had no CPU: the step is
 *   taken to have spun until that thread came to a barrier.
 */
void cause_blame(const struct step *step, uint64_t usual_work_ns, struct cause_times *times);

/* Whether it is known how long the step's signal handlers took. */
bool are_handlers_timed(const struct fbt_step *record);

#endif

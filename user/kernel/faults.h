/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Times page faults on threads whose steps have many of them. Each timed fault costs the thread
 * some 0.5 us more (fbt_cost.fault_ps), so a thread is armed only when its faults take a
 * noticeable part of a step, as far as is known before they are timed; it is disarmed when none of
 * its steps had such a part for ten seconds. Timing may take the same share of a thread's time as
 * its probes (--rate-guard), plus a burst: above it there are pauses, in which the steps' faults
 * are not timed.
 */
#ifndef FBT_KERNEL_FAULTS_H
#define FBT_KERNEL_FAULTS_H

#include "kernel/loader.h"

/* Threads that are armed at once. Each needs FAULT_EVENTS descriptors. */
#define FAULT_THREADS_MAX 16
#define FAULT_EVENTS	  3

struct fault_options {
	uint64_t fault_ps;  /* what a fault costs if none was timed yet, as fbt_window.fault_ps */
	uint64_t timing_ps; /* what timing one costs, as fbt_cost.fault_ps */
	double share;	    /* of a thread's time that timing may take; 0: no limit */
};

/*
 * Opens the events of a thread, switched off: three descriptors. 0; -ESRCH: it has ended; -ENOSYS:
 * their programs are not loaded; -EPERM and others: this cannot be done here.
 */
int fault_events_open(const struct loader *loader, uint32_t tid, int fds[FAULT_EVENTS]);
int fault_events_switch(const int fds[FAULT_EVENTS], bool on);
void fault_events_close(int fds[FAULT_EVENTS]);

/* Says that page faults are not timed, if fault_events_open() or a switch was refused with err. */
void fault_events_tell(int err);

/*
 * Whether the page faults of a step are worth timing. They are if, as far as is known, they take 2
 * % of the step; or if the step took twice as long as usual (usual_ns) and its faults may have been
 * half of it.
 */
bool fault_step_matters(const struct fbt_step *step, uint64_t usual_ns, uint64_t fault_ps);

struct faults;

/* loader is borrowed. NULL: no memory. */
struct faults *faults__new(struct loader *loader);
void faults__free(struct faults *faults);

/* Nothing is armed before this. */
void faults__begin(struct faults *faults, const struct fault_options *options);

/* A step has ended: its thread is armed if its faults matter. */
void faults__note(struct faults *faults, const struct fbt_step *step);

/* To be called every few ms: accounts for what timing costs. */
void faults__turn(struct faults *faults, uint64_t now_ns);

#endif

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "kernel/faults.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/log.h"

#define MATTERS_PART 50 /* 2 % */
/* What a page fault may take at most while nothing is known of it: that of a huge page. */
#define FAULT_MOST_NS 200000
#define IDLE_NS	      (10 * NS_PER_S)
/* What timing may cost at once. */
#define BURST_NS (50.0 * NS_PER_MS)

/* A thread whose faults are timed. */
struct armed {
	uint32_t tid; /* 0: none */
	uint32_t slot;
	int fds[FAULT_EVENTS];
	bool on;
	uint64_t matters_ns; /* when a step's faults mattered last */
	uint64_t looked_ns;
	uint64_t timed; /* the thread's counter then */
	double credit_ns;
};

struct faults {
	struct loader *loader;
	const struct shared *shared;
	struct fault_options options;
	bool begun;
	bool refused;
	struct armed threads[FAULT_THREADS_MAX];
};

static int open_event(uint32_t tid, uint64_t config)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = config,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_ADDR,
		.disabled = 1,
		.exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int fault_events_open(const struct loader *loader, uint32_t tid, int fds[FAULT_EVENTS])
{
	static const uint64_t events[FAULT_EVENTS] = {PERF_COUNT_SW_PAGE_FAULTS,
						      PERF_COUNT_SW_PAGE_FAULTS_MIN,
						      PERF_COUNT_SW_PAGE_FAULTS_MAJ};
	struct fault_programs programs;
	int err = loader__fault_programs(loader, &programs) ? 0 : -ENOSYS;

	for (int i = 0; i < FAULT_EVENTS; i++)
		fds[i] = -1;
	for (int i = 0; i < FAULT_EVENTS && !err; i++) {
		fds[i] = open_event(tid, events[i]);
		if (fds[i] < 0)
			err = fds[i];
		else if (ioctl(fds[i], PERF_EVENT_IOC_SET_BPF, i ? programs.end : programs.begin))
			err = -errno;
	}
	if (err)
		fault_events_close(fds);
	return err;
}

int fault_events_switch(const int fds[FAULT_EVENTS], bool on)
{
	int err = 0;

	for (int i = 0; i < FAULT_EVENTS && !err; i++)
		err = ioctl(fds[i], on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) ? -errno
											    : 0;
	return err;
}

void fault_events_close(int fds[FAULT_EVENTS])
{
	for (int i = 0; i < FAULT_EVENTS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

void fault_events_tell(int err)
{
	const char *advice = "";

	/* The thread has ended, or the programs are not there. */
	if (!err || err == -ESRCH || err == -ENOSYS)
		return;
	if (err == -EACCES || err == -EPERM)
		advice = ": ferrum-bpftrace doctor says what is missing";
	log_warn("page faults are not timed: perf_event_open(2): %s%s", strerror(-err), advice);
}

struct faults *faults__new(struct loader *loader)
{
	struct faults *faults = calloc(1, sizeof(*faults));

	if (!faults)
		return NULL;
	faults->loader = loader;
	faults->shared = loader__shared(loader);
	return faults;
}

static void disarm(struct armed *thread)
{
	fault_events_close(thread->fds);
	*thread = (struct armed){.tid = 0};
}

void faults__free(struct faults *faults)
{
	if (!faults)
		return;
	for (int i = 0; i < FAULT_THREADS_MAX; i++) {
		if (faults->threads[i].tid)
			disarm(&faults->threads[i]);
	}
	free(faults);
}

void faults__begin(struct faults *faults, const struct fault_options *options)
{
	faults->options = *options;
	faults->begun = true;
}

static unsigned __int128 known_ns(const struct fbt_step *step, uint64_t fault_ps)
{
	uint64_t each_ps = step->faults.mean_ps ? step->faults.mean_ps : fault_ps;

	if (step->header.flags & FBT_STEP_FAULTS_TIMED)
		return (unsigned __int128)step->faults.cpu_ns + step->faults.asleep_ns +
		       step->fault_wait_ns;
	return (unsigned __int128)step->minor_faults * each_ps / 1000 + step->fault_wait_ns;
}

bool fault_step_matters(const struct fbt_step *step, uint64_t usual_ns, uint64_t fault_ps)
{
	uint64_t faults = (uint64_t)step->minor_faults + step->major_faults;
	uint64_t total_ns = sub_saturating(step->end_ns, step->start_ns);
	bool is_timed = step->header.flags & FBT_STEP_FAULTS_TIMED;

	if (!faults || !(step->header.flags & FBT_STEP_CPU_KNOWN))
		return false;
	if (known_ns(step, fault_ps) * MATTERS_PART >= total_ns)
		return true;
	return !is_timed && total_ns / 2 > usual_ns && faults * FAULT_MOST_NS >= total_ns / 2;
}

static uint32_t slot_of(const struct faults *faults, uint32_t tid)
{
	uint32_t chunk = tid / FBT_IDS, slot;

	if (chunk >= faults->shared->id_chunks)
		return 0;
	slot = __atomic_load_n(&faults->shared->ids[chunk].slot[tid % FBT_IDS], __ATOMIC_ACQUIRE);
	return slot < faults->shared->slot_count ? slot : 0;
}

static struct armed *find_thread(struct faults *faults, uint32_t tid)
{
	for (int i = 0; i < FAULT_THREADS_MAX; i++) {
		if (faults->threads[i].tid == tid)
			return &faults->threads[i];
	}
	return NULL;
}

static void arm(struct faults *faults, uint32_t tid, uint32_t slot, uint64_t now_ns)
{
	struct armed *thread = find_thread(faults, 0);
	int err;

	if (!thread || faults->refused)
		return;
	err = fault_events_open(faults->loader, tid, thread->fds);
	if (!err)
		err = fault_events_switch(thread->fds, true);
	if (err) {
		fault_events_close(thread->fds);
		faults->refused = err != -ESRCH;
		fault_events_tell(err);
		return;
	}
	log_debug("thread %u: page faults are timed", tid);
	thread->tid = tid;
	thread->slot = slot;
	thread->on = true;
	thread->matters_ns = thread->looked_ns = now_ns;
	thread->timed = faults->shared->slots[slot].faults_timed;
	thread->credit_ns = BURST_NS;
}

void faults__note(struct faults *faults, const struct fbt_step *step)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	struct armed *thread;
	uint32_t slot;

	if (!faults->begun || !(step->minor_faults | step->major_faults))
		return;
	slot = slot_of(faults, step->tid);
	if (!slot || !fault_step_matters(step, faults->shared->slots[slot].step_usual_ns,
					 faults->options.fault_ps))
		return;
	thread = find_thread(faults, step->tid);
	if (thread)
		thread->matters_ns = now_ns;
	else
		arm(faults, step->tid, slot, now_ns);
}

/*
 * Pauses timing when the burst is spent, and resumes it when half of the burst is available again.
 */
static void account(struct faults *faults, struct armed *thread, uint64_t now_ns)
{
	uint64_t timed = faults->shared->slots[thread->slot].faults_timed;
	double spent_ns =
		(double)(timed - thread->timed) * (double)faults->options.timing_ps / 1000;
	double paid_ns = (double)(now_ns - thread->looked_ns) * faults->options.share;
	bool on = thread->on;

	thread->timed = timed;
	thread->looked_ns = now_ns;
	thread->credit_ns += paid_ns - spent_ns;
	if (thread->credit_ns > BURST_NS)
		thread->credit_ns = BURST_NS;
	if (thread->credit_ns < 0)
		on = false;
	else if (thread->credit_ns >= BURST_NS / 2)
		on = true;
	if (faults->options.share == 0.0 || on == thread->on)
		return;
	if (!fault_events_switch(thread->fds, on))
		thread->on = on;
}

void faults__turn(struct faults *faults, uint64_t now_ns)
{
	for (int i = 0; i < FAULT_THREADS_MAX; i++) {
		struct armed *thread = &faults->threads[i];

		if (!thread->tid)
			continue;
		if (slot_of(faults, thread->tid) != thread->slot ||
		    now_ns - thread->matters_ns > IDLE_NS)
			disarm(thread);
		else
			account(faults, thread, now_ns);
	}
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "own_thread.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define SLACK_NS 50000 /* the default timer slack */

static bool is_real_time(int policy)
{
	return policy != SCHED_OTHER && policy != SCHED_BATCH && policy != SCHED_IDLE;
}

static void adopt_policy(pid_t first)
{
	static const struct sched_param none;
	int theirs = sched_getscheduler(first), ours = sched_getscheduler(0);

	if (theirs >= 0 && !is_real_time(theirs) && theirs != ours)
		sched_setscheduler(0, theirs, &none);
}

void own_thread_adopt_main(void)
{
	pid_t first = getpid();
	cpu_set_t cpus;
	int nice;

	if (!sched_getaffinity(first, sizeof(cpus), &cpus))
		sched_setaffinity(0, sizeof(cpus), &cpus);
	adopt_policy(first);
	errno = 0;
	nice = getpriority(PRIO_PROCESS, (id_t)first);
	if (!errno)
		setpriority(PRIO_PROCESS, 0, nice);
	prctl(PR_SET_TIMERSLACK, SLACK_NS);
}

void own_thread_begin(const char *name)
{
	int nice;

	prctl(PR_SET_NAME, name);
	/* Of a thread, in spite of the name. */
	errno = 0;
	nice = getpriority(PRIO_PROCESS, 0);
	if (!errno)
		setpriority(PRIO_PROCESS, 0, nice + 1);
}

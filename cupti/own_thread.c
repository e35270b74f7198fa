/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "own_thread.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>

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

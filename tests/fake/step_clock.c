/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A library for LD_PRELOAD that moves the program's wall clock an hour forward and back again,
 * every 20 ms, like a broken time server. With FBT_CLOCK_SET_NS it does so once, at that time of
 * CLOCK_MONOTONIC. The monotonic clock is unchanged.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HOUR_S	  3600
#define PERIOD_NS 40000000

static int is_forward(void)
{
	const char *set = getenv("FBT_CLOCK_SET_NS");
	struct timespec now = {0};

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	if (set)
		return now.tv_sec * 1000000000ull + now.tv_nsec >= strtoull(set, NULL, 10);
	return now.tv_nsec % PERIOD_NS < PERIOD_NS / 2;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int result = (int)syscall(SYS_clock_gettime, clock, now);

	if (!result && clock == CLOCK_REALTIME && is_forward())
		now->tv_sec += HOUR_S;
	return result;
}

time_t time(time_t *now)
{
	struct timespec wall = {0};

	clock_gettime(CLOCK_REALTIME, &wall);
	if (now)
		*now = wall.tv_sec;
	return wall.tv_sec;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * deeper TRUTH: 10 steps (my_step), one that longjmp leaves, then 100 from frames that lie more
 * than 1 KiB deeper and have overwritten the stack of the step that was left.
 */
#include <setjmp.h>
#include <string.h>
#include <time.h>
#include "program.h"

#define BEFORE 10
#define AFTER  100
#define LEVELS 5

static jmp_buf out;

void my_step(int leave);

STEP void my_step(int leave)
{
	syscall(SYS_getppid);
	if (leave)
		longjmp(out, 1);
	STAY();
}

static void make_steps(int count)
{
	const struct timespec pause = {.tv_nsec = 500000};

	for (int i = 0; i < count; i++) {
		my_step(0);
		nanosleep(&pause, NULL);
	}
}

int go_down(int levels);

STEP int go_down(int levels)
{
	volatile char frame[256];

	memset((void *)frame, levels, sizeof(frame));
	if (levels > 1)
		return go_down(levels - 1) + frame[3];
	make_steps(AFTER);
	return frame[0];
}

int main(int argc, char **argv)
{
	FILE *truth;

	wait_for_go();
	make_steps(BEFORE);
	if (!setjmp(out))
		my_step(1);
	go_down(LEVELS);
	truth = open_truth(argv);
	fprintf(truth, "{\"steps\": %d, \"unwound\": 1}\n", BEFORE + 1 + AFTER);
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * tail_call TRUTH: 100 calls of my_decode, which ends with a jump to my_process, and 50 direct
 * calls of my_process in between. Every other my_decode also calls my_process once in the middle.
 */
#include <time.h>
#include "program.h"

#define DECODES	  100
#define PROCESSES 50

int my_process(int number);
int my_decode(int number);

STEP int my_process(int number)
{
	syscall(SYS_getuid);
	syscall(SYS_getuid);
	STAY();
	return number + 1;
}

STEP int my_decode(int number)
{
	syscall(SYS_getppid);
	if (number & 1)
		number += my_process(number);
	syscall(SYS_getppid);
	return my_process(number);
}

int main(int argc, char **argv)
{
	const struct timespec pause = {.tv_nsec = 200000};
	FILE *truth;

	wait_for_go();
	for (int i = 0; i < DECODES; i++) {
		my_decode(i);
		nanosleep(&pause, NULL);
		if (i < PROCESSES)
			my_process(i);
	}
	truth = open_truth(argv);
	fprintf(truth, "{\"my_decode\": %d, \"my_process\": %d, \"calls\": {", DECODES, PROCESSES);
	fprintf(truth, "\"my_decode\": [4, 6], \"my_process\": [2]}}\n");
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * tail_call TRUTH [deeper]: 1,000 calls of my_decode, which ends with a jump to my_process, and 50
 * direct calls of my_process in between. Every other my_decode also calls my_process once in the
 * middle. "deeper": one call of my_decode, and 1,000 from further down the stack.
 */
#include <stdbool.h>
#include <time.h>
#include "program.h"

#define DECODES	  1000
#define PROCESSES 50

int my_process(int number);
int my_decode(int number);
void call_deeper(int number);

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

STEP void call_deeper(int number)
{
	volatile char room[4096];

	room[0] = (char)number;
	my_decode(number + room[0]);
	STAY();
}

int main(int argc, char **argv)
{
	const struct timespec pause = {.tv_nsec = 200000};
	bool deeper = argc > 2;
	FILE *truth;

	wait_for_go();
	if (deeper)
		my_decode(0);
	for (int i = 0; i < DECODES; i++) {
		if (deeper) {
			call_deeper(0);
			nanosleep(&pause, NULL);
			continue;
		}
		my_decode(i);
		nanosleep(&pause, NULL);
		if (i < PROCESSES)
			my_process(i);
	}
	truth = open_truth(argv);
	fprintf(truth, "{\"my_decode\": %d, \"my_process\": %d, \"calls\": {", DECODES + deeper,
		deeper ? 0 : PROCESSES);
	fprintf(truth, "\"my_decode\": [%s]%s}}\n", deeper ? "4" : "4, 6",
		deeper ? "" : ", \"my_process\": [2]");
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}

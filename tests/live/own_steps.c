/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * own_steps TRUTH STEPS CALLS: STEPS steps (my_step) of CALLS getppid calls each; then the program
 * waits.
 */
#include <time.h>
#include "program.h"

void my_step(long calls);

STEP void my_step(long calls)
{
	while (calls-- > 0)
		syscall(SYS_getppid);
	STAY();
}

int main(int argc, char **argv)
{
	const struct timespec between = {.tv_nsec = 500000};
	long steps = number_at(argv, 2, 1), calls = number_at(argv, 3, 1);
	FILE *truth;

	wait_for_go();
	for (long i = 0; i < steps; i++) {
		my_step(calls);
		nanosleep(&between, NULL);
	}
	truth = open_truth(argv);
	fprintf(truth, "{\"pid\": %d, \"steps\": %ld, \"calls\": %ld}\n", getpid(), steps, calls);
	if (fclose(truth))
		return EXIT_FAILURE;
	pause();
	return EXIT_SUCCESS;
}

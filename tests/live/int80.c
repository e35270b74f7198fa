/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * int80 TRUTH: 20 steps (my_step) of 2 getppid calls and 5 calls through int 0x80, the gate of
 * 32-bit programs. Its numbers mean other calls: 20 is getpid there and writev here.
 */
#include <signal.h>
#include "program.h"

#define STEPS 20

void my_step(void);

STEP void my_step(void)
{
	syscall(SYS_getppid);
#ifdef __x86_64__
	for (int i = 0; i < 5; i++) {
		long result = 20;

		__asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
	}
#endif
	syscall(SYS_getppid);
	STAY();
}

int main(int argc, char **argv)
{
	FILE *truth;

	wait_for_go();
	for (int i = 0; i < STEPS; i++)
		my_step();
	truth = open_truth(argv);
	fprintf(truth, "{\"steps\": %d, \"foreign\": %d, \"getppid\": %d}\n", STEPS, STEPS * 5,
		STEPS * 2);
	return fclose(truth) ? EXIT_FAILURE : EXIT_SUCCESS;
}

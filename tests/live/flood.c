/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* flood: getppid calls without a pause, in steps of 1000: flood_a, flood_b and so on in turn. */
#include "program.h"

/* The first declaration satisfies -Wmissing-prototypes, the last one takes the semicolon. */
#define FLOOD(name)                                                                                \
	void flood_##name(void);                                                                   \
	STEP void flood_##name(void)                                                               \
	{                                                                                          \
		for (int i = 0; i < 1000; i++)                                                     \
			syscall(SYS_getppid);                                                      \
		STAY();                                                                            \
	}                                                                                          \
	void flood_##name(void)

FLOOD(a);
FLOOD(b);
FLOOD(c);
FLOOD(d);

int main(void)
{
	wait_for_go();
	for (;;) {
		flood_a();
		flood_b();
		flood_c();
		flood_d();
	}
}

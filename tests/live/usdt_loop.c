/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * usdt_loop STEPS: waits for a line on stdin, then makes STEPS steps of 5 getppid and 3 getuid
 * calls between two USDT probes, fake:step_begin and fake:step_end, and one getgid call after each.
 * The getuid calls are also between fake:part_begin and fake:part_end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Like <sys/sdt.h>: a nop, and a note with its address. */
#define USDT(provider, name)                                                                       \
	asm volatile("990: nop\n"                                                                  \
		     ".pushsection .note.stapsdt,\"\",\"note\"\n"                                  \
		     ".balign 4\n"                                                                 \
		     ".4byte 992f-991f, 994f-993f, 3\n"                                            \
		     "991: .asciz \"stapsdt\"\n"                                                   \
		     "992: .balign 4\n"                                                            \
		     "993: .8byte 990b, _.stapsdt.base, 0\n"                                       \
		     ".asciz \"" provider "\"\n"                                                   \
		     ".asciz \"" name "\"\n"                                                       \
		     ".asciz \"\"\n"                                                               \
		     "994: .balign 4\n"                                                            \
		     ".popsection\n"                                                               \
		     ".ifndef _.stapsdt.base\n"                                                    \
		     ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"       \
		     ".weak _.stapsdt.base\n"                                                      \
		     ".hidden _.stapsdt.base\n"                                                    \
		     "_.stapsdt.base: .space 1\n"                                                  \
		     ".size _.stapsdt.base, 1\n"                                                   \
		     ".popsection\n"                                                               \
		     ".endif\n" ::                                                                 \
			     : "memory")

static __attribute__((noinline)) void make_step(void)
{
	USDT("fake", "step_begin");
	for (int i = 0; i < 5; i++)
		syscall(SYS_getppid);
	USDT("fake", "part_begin");
	for (int i = 0; i < 3; i++)
		syscall(SYS_getuid);
	USDT("fake", "part_end");
	USDT("fake", "step_end");
	syscall(SYS_getgid);
	/* Else that call would become a jump out of the function. */
	asm volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	long steps = argc > 1 ? strtol(argv[1], NULL, 10) : 0;

	getchar();
	while (steps-- > 0)
		make_step();
	return EXIT_SUCCESS;
}

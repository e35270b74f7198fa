/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* libgpu_step.so: a step function with a name for an engine that is a script (decode.py). */

void gpu_step(void (*work)(void));

__attribute__((noinline, used)) void gpu_step(void (*work)(void))
{
	work();
	/* Prevents a tail jump: the step ends here. */
	__asm__ volatile("" ::: "memory");
}

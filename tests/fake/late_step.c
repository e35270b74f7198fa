/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* A step function in a library that the embedded engine loads while it runs (--late). */

void late_step(void (*body)(void *arg), void *arg);

__attribute__((noinline)) void late_step(void (*body)(void *arg), void *arg)
{
	body(arg);
	__asm__ volatile("" ::: "memory"); /* else the call above becomes a jump out of the step */
}

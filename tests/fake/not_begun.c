/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A program that exports all that libferrum_python.so needs of CPython 3.11, and whose interpreter
 * has not begun: functions that return 0, and objects without content. Prints ready, and ends with
 * its input.
 */
#include <stdio.h>

#include "api.h"

#define FUNCTION(type, name, parameters) STUB(name)
#define STUB(name)                                                                                 \
	__asm__(".globl " #name "\n\t.type " #name ", @function\n" #name                           \
		":\n\txor %eax, %eax\n\tret\n");
/* As a type that has its functions' pointer at a place that could be right. */
#define OBJECT(name)                                                                               \
	extern const long name[64];                                                                \
	const long name[64] = {[0 ... 63] = 120};

PYTHON_FUNCTIONS(FUNCTION)
STUB(Py_IsFinalizing)
PYTHON_OBJECTS(OBJECT)

extern const unsigned long Py_Version;
const unsigned long Py_Version = 0x030b02f0;

int main(void)
{
	puts("ready");
	fflush(stdout);
	return getchar() == EOF;
}

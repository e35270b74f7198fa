/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A program that exports all that libferrum_python.so needs of CPython 3.11, and whose interpreter
 * has not begun: functions that return 0, and objects without content. Prints ready, and ends with
 * its input. not_begun LIBRARY loads a library on a thread that has one CPU, and that only where
 * nobody else wants it.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>

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

static void *load(void *library)
{
	static const struct sched_param none;
	cpu_set_t cpus;
	int first = 0;

	if (sched_getaffinity(0, sizeof(cpus), &cpus))
		return NULL;
	while (!CPU_ISSET(first, &cpus))
		first++;
	CPU_ZERO(&cpus);
	CPU_SET(first, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) || setpriority(PRIO_PROCESS, 0, 19) ||
	    sched_setscheduler(0, SCHED_IDLE, &none) || prctl(PR_SET_TIMERSLACK, 1000000000))
		return NULL;
	return dlopen(library, RTLD_NOW);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	void *library;

	if (argc == 2 && (pthread_create(&thread, NULL, load, argv[1]) ||
			  pthread_join(thread, &library) || !library))
		return 1;
	puts("ready");
	fflush(stdout);
	return getchar() == EOF;
}

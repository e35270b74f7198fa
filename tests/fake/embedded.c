/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * A program that loads the interpreter's library, which it gets as its argument, for itself alone
 * (RTLD_LOCAL) and lets go of its lock. Prints ready, and ends with its input.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	void (*begin)(int) = NULL;
	void *(*let_go)(void) = NULL;
	struct pollfd input = {.events = POLLIN};

	if (!library)
		return 1;
	*(void **)&begin = dlsym(library, "Py_InitializeEx");
	*(void **)&let_go = dlsym(library, "PyEval_SaveThread");
	if (!begin || !let_go)
		return 1;
	begin(0);
	let_go();
	puts("ready");
	fflush(stdout);
	/* One that reads would not be taken for an injection. */
	return poll(&input, 1, -1) != 1;
}

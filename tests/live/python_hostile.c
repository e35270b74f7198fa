/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * python_hostile LIBRARY attack: makes a page like libferrum_python.so's, and answers that the
 * function of its first slot is found, with a marker in the middle of an instruction of LIBRARY.
 * python_hostile LIBRARY: another program that uses LIBRARY, until its input ends. Its exit status
 * is 1 if an instruction there has changed.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../include/fbt_python.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
/* The constant of constant() begins so far behind its entry. It has the bytes of a nop. */
#define CONSTANT    0x3322110000441f0ful
#define CONSTANT_AT 2

static bool has_ended(int ms)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&input, 1, ms) != 0;
}

static struct fbt_python_page *make_page(void)
{
	int fd = memfd_create(FBT_PYTHON_MEMFD, MFD_ALLOW_SEALING);
	struct fbt_python_page *page;

	if (fd < 0 || ftruncate(fd, FBT_PYTHON_PAGE_BYTES))
		exit(2);
	page = mmap(NULL, FBT_PYTHON_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED || fcntl(fd, F_ADD_SEALS, SEALS))
		exit(2);
	page->version = FBT_PYTHON_VERSION;
	page->phase = FBT_PYTHON_READY;
	page->pid = (uint32_t)getpid();
	page->magic = FBT_PYTHON_MAGIC;
	return page;
}

static void answer(struct fbt_python_page *page)
{
	uint32_t order = __atomic_load_n(&page->order, __ATOMIC_ACQUIRE);

	if ((order & 3) != FBT_PYTHON_ASKED)
		return;
	page->slots[0].found =
		page->command == FBT_PYTHON_RESOLVE ? FBT_PYTHON_FOUND : FBT_PYTHON_ARMED;
	__atomic_compare_exchange_n(&page->order, &order, order & ~3u, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_ACQUIRE);
}

static int attack(uintptr_t place)
{
	struct fbt_python_page *page = make_page();

	page->slots[0].begin = page->slots[0].end = page->slots[0].raised = place;
	puts("ready");
	fflush(stdout);
	while (!has_ended(1))
		answer(page);
	return 0;
}

static int use(unsigned long (*constant)(void))
{
	puts("ready");
	fflush(stdout);
	while (!has_ended(1)) {
		if (constant() != CONSTANT)
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	void *constant = library ? dlsym(library, "constant") : NULL;
	unsigned long (*function)(void);

	if (!constant) {
		fputs("usage: python_hostile LIBRARY [attack]\n", stderr);
		return 2;
	}
	memcpy(&function, &constant, sizeof(function));
	return argc > 2 ? attack((uintptr_t)constant + CONSTANT_AT) : use(function);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * odd_stacks TRUTH WAY: steps of which every twentieth makes a slow call, in a way that is hard to
 * unwind:
 *	jit	from code that was generated at run time, with a frame pointer and no table
 *	vdso	from the kernel's own code in the process: clock_gettime into memory that a thread
 *		provides late (userfaultfd)
 *	signal	from a signal handler
 *	altstack	the same, on a stack of its own
 *	alloca	from a function with a frame of a size that is known at run time only
 */
#include <errno.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include "program.h"

#define STEPS	200
#define EVERY	20
#define SLOW_US 30000
#define PAGE	4096

typedef void (*call_fn)(void);

static void *page; /* of which the memory is provided late */
static int faults; /* the userfaultfd */
static call_fn generated;

STEP void nap_for(long us);
STEP void pause_here(void);
STEP void read_clock(void);
STEP void on_signal(int signo);
STEP void raise_signal(void);
STEP void take_room(size_t bytes);
STEP void call_generated(void);
STEP void engine_step(const char *way);

STEP void nap_for(long us)
{
	struct timespec left = {us / 1000000, us % 1000000 * 1000};

	while (nanosleep(&left, &left))
		;
}

STEP void pause_here(void)
{
	nap_for(SLOW_US);
	STAY();
}

/* The caller of a function: x86-64's and arm64's, each with a frame pointer. */
static void make_generated(void)
{
#ifdef __x86_64__
	static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
#else
	static const uint32_t code[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0};
#endif
	void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(memory, code, sizeof(code));
	mprotect(memory, PAGE, PROT_READ | PROT_EXEC);
	__builtin___clear_cache((char *)memory, (char *)memory + sizeof(code));
	memcpy(&generated, &memory, sizeof(generated));
}

STEP void call_generated(void)
{
	((void (*)(call_fn))(void *)generated)(pause_here);
	STAY();
}

static void *provide(void *nothing)
{
	struct uffdio_zeropage zero = {.range = {(uintptr_t)page, PAGE}};
	struct uffd_msg message;

	while (read(faults, &message, sizeof(message)) == sizeof(message)) {
		nap_for(SLOW_US);
		ioctl(faults, UFFDIO_ZEROPAGE, &zero);
	}
	return nothing;
}

/* False: there is no userfaultfd here. */
static int begin_faults(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	pthread_t thread;

	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range = (struct uffdio_range){(uintptr_t)page, PAGE};
	return faults >= 0 && !ioctl(faults, UFFDIO_API, &api) &&
	       !ioctl(faults, UFFDIO_REGISTER, &range) &&
	       !pthread_create(&thread, NULL, provide, NULL);
}

/* The clock of a process is read by a system call, which the vDSO makes. */
STEP void read_clock(void)
{
	madvise(page, PAGE, MADV_DONTNEED);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, page);
	STAY();
}

STEP void on_signal(int signo)
{
	pause_here();
	STAY();
}

STEP void raise_signal(void)
{
	raise(SIGUSR2);
	STAY();
}

STEP void take_room(size_t bytes)
{
	volatile char *room = __builtin_alloca(bytes);

	room[0] = 1;
	pause_here();
	room[bytes - 1] = 2;
	STAY();
}

STEP void engine_step(const char *way)
{
	if (!strcmp(way, "jit"))
		call_generated();
	else if (!strcmp(way, "vdso"))
		read_clock();
	else if (!strcmp(way, "signal") || !strcmp(way, "altstack"))
		raise_signal();
	else if (!strcmp(way, "alloca"))
		take_room(5000 + (size_t)(getpid() % 1000));
	STAY();
}

static void catch_signals(const char *way)
{
	static char room[1 << 16];
	stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)};
	struct sigaction action = {.sa_handler = on_signal};

	if (!strcmp(way, "altstack")) {
		action.sa_flags = SA_ONSTACK;
		sigaltstack(&stack, NULL);
	}
	sigaction(SIGUSR2, &action, NULL);
}

int main(int argc, char **argv)
{
	const char *way = argc > 2 ? argv[2] : "";
	FILE *file;
	long slow = 0;

	make_generated();
	catch_signals(way);
	if (!strcmp(way, "vdso") && !begin_faults())
		way = "none";
	wait_for_go();
	for (long i = 1; i <= STEPS; i++) {
		engine_step(i % EVERY ? "" : way);
		slow += !(i % EVERY) && strcmp(way, "none") != 0;
		nap_for(300);
	}
	file = open_truth(argv);
	fprintf(file, "{\"slow\": %ld}\n", slow);
	return fclose(file) ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_calls.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/memfd.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#define MFD_EXEC	0x10u
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* Some address; filters cannot look at what is there. */
#define AT    0x7f5a00001000ull
#define FD    100ull
#define NO_FD ((uint64_t)-1)
#define PAGE  4096ull
#define MASK  8ull /* bytes of a signal set */
#define RSEQ  0x53053053ull

/* What NVIDIA's driver is asked by: _IOWR('F', 0x2a, 32 bytes). */
#define RM_CONTROL 0xc020462aull

#define RW	(PROT_READ | PROT_WRITE)
#define RX	(PROT_READ | PROT_EXEC)
#define FILE_AT (MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE)
#define MEMORY	(MAP_PRIVATE | MAP_ANONYMOUS)

#define THREAD                                                                                     \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |        \
	 CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

#define CALL(name, need) #name, SYS_##name, INJECT_##need

static const struct inject_call calls[] = {
	/* The thread itself, in the stub. */
	{CALL(rt_sigprocmask, NEEDED), {SIG_SETMASK, AT, AT, MASK}},
	{CALL(mmap, NEEDED), {0, 65536, RW, MEMORY, NO_FD, 0}},
	{CALL(munmap, NEEDED), {AT, 65536}},
	/* Without these two a wake-up by a signal may be lost. */
	{CALL(rt_sigpending, NEEDED), {AT, MASK}},
	{CALL(rt_sigaction, NEEDED), {SIGUSR1, 0, AT, MASK}},
	/*
	 * By the kernel, of whoever waits in poll, a sleep or a futex with a time-out when the
	 * process is stopped; as the shim's thread does all the time.
	 */
	{CALL(restart_syscall, NEEDED), {0}},

	/* pthread_create */
	/* Of SIGSETXID, without which setuid() would not be one for all threads. */
	{CALL(rt_sigaction, NEEDED), {33, AT, 0, MASK}},
	{CALL(mmap, NEEDED), {0, 528384, PROT_NONE, MEMORY | MAP_STACK, NO_FD, 0}},
	{CALL(mprotect, NEEDED), {AT, 524288, RW}},
	{CALL(rt_sigprocmask, NEEDED), {SIG_BLOCK, AT, AT, MASK}},
	/* Docker answers the first one so; a filter cannot see its flags. */
	{CALL(clone3, OR_NEXT_IF_ENOSYS), {AT, 88}},
	{CALL(clone, NEEDED), {THREAD, AT, AT, AT, AT}},
	/* The new thread: for mutexes that it leaves locked, and for what it need not have. */
	{CALL(set_robust_list, IGNORED), {AT, 24}},
	{CALL(rseq, IGNORED), {AT, 32, 0, RSEQ}},
	{CALL(rt_sigprocmask, NEEDED), {SIG_UNBLOCK, AT, 0, MASK}},

	/* The helper. */
	{CALL(memfd_create, OR_NEXT), {AT, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC}},
	{CALL(memfd_create, OR_NEXT), {AT, MFD_CLOEXEC | MFD_ALLOW_SEALING}},
	{CALL(memfd_create, NEEDED), {AT, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL}},
	{CALL(fstat, NEEDED), {FD, AT}},
	{CALL(pwrite64, NEEDED), {FD, AT, 1, PAGE - 1}},
	{CALL(fcntl, NEEDED), {FD, F_ADD_SEALS, F_SEAL_SHRINK}},
	{CALL(mmap, NEEDED), {0, PAGE, RW, MAP_SHARED, FD, 0}},
	{CALL(clock_gettime, NEEDED), {CLOCK_MONOTONIC, AT}},
	{CALL(futex, NEEDED), {AT, FUTEX_WAKE, 0x7fffffff}},
	{CALL(futex, NEEDED), {AT, FUTEX_WAIT_BITSET, 1, AT, 0, 0xffffffff}},
	{CALL(munmap, NEEDED), {AT, PAGE}},
	{CALL(close, NEEDED), {FD}},

	/* dlopen, dlsym, malloc */
	{CALL(openat, NEEDED), {(uint32_t)AT_FDCWD, AT, O_RDONLY | O_CLOEXEC}},
	{CALL(read, NEEDED), {FD, AT, 832}},
	{CALL(pread64, NEEDED), {FD, AT, 784, 64}},
	{CALL(newfstatat, NEEDED), {FD, AT, AT, 0x1000}}, /* AT_EMPTY_PATH */
	{CALL(mmap, NEEDED), {0, 172168, PROT_READ, MAP_PRIVATE | MAP_DENYWRITE, FD, 0}},
	{CALL(mmap, NEEDED), {AT, 20480, RX, FILE_AT, FD, PAGE}},
	{CALL(mmap, NEEDED), {AT, 8192, PROT_READ, FILE_AT, FD, PAGE}},
	{CALL(mmap, NEEDED), {AT, 8192, RW, FILE_AT, FD, PAGE}},
	{CALL(mmap, NEEDED), {AT, 127112, RW, MEMORY | MAP_FIXED, NO_FD, 0}},
	{CALL(mprotect, NEEDED), {AT, PAGE, PROT_READ}},
	{CALL(mmap, NEEDED), {0, 1 << 27, PROT_NONE, MEMORY | MAP_NORESERVE, NO_FD, 0}},
	/* malloc, of a process that has not called it yet: the clock will do. */
	{CALL(getrandom, IGNORED), {AT, 8, 1 /* GRND_NONBLOCK */}},
	/* malloc takes mmap then. */
	{CALL(brk, IGNORED), {AT}},
	{CALL(futex, NEEDED), {AT, FUTEX_WAIT_PRIVATE, 2}},
	{CALL(futex, NEEDED), {AT, FUTEX_WAKE_PRIVATE, 1}},

	/* The shim. */
	{CALL(memfd_create, OR_NEXT_IF_EINVAL),
	 {AT, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL}},
	{CALL(memfd_create, NEEDED), {AT, MFD_CLOEXEC | MFD_ALLOW_SEALING}},
	/* It keeps the number it has. */
	{CALL(fcntl, IGNORED), {FD, F_DUPFD_CLOEXEC, 64}},
	{CALL(prlimit64, NEEDED), {0, RLIMIT_FSIZE, 0, AT}},
	{CALL(ftruncate, NEEDED), {FD, 8392704}},
	{CALL(fcntl, NEEDED), {FD, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL}},
	{CALL(fallocate, IGNORED), {FD, 0, 0, 20480}},
	{CALL(mmap, NEEDED), {0, 8392704, RW, MAP_SHARED, FD, 0}},
	/* Or a child that is forked writes into what its parent says. */
	{CALL(madvise, NEEDED), {AT, 8392704, MADV_DONTFORK}},
	{CALL(madvise, NEEDED), {AT, PAGE, MADV_WIPEONFORK}},
	{CALL(prctl, IGNORED), {PR_SET_NAME, AT}},
	{CALL(prctl, IGNORED), {PR_SET_TIMERSLACK, 50000}},
	{CALL(sched_setaffinity, IGNORED), {0, 128, AT}},
	{CALL(getpriority, IGNORED), {PRIO_PROCESS, 1}},
	{CALL(setpriority, IGNORED), {PRIO_PROCESS, 0, 0}},
	{CALL(futex, NEEDED), {AT, FUTEX_WAIT, 0, AT}},
	{CALL(clock_nanosleep, NEEDED), {CLOCK_REALTIME, 0, AT, AT}},
	/*
	 * CUPTI, beside what dlopen needs. It tells us by an error of its own what it cannot do;
	 * what the process would be killed for it must not do at all.
	 */
	{CALL(ioctl, IGNORED), {FD, RM_CONTROL, AT}},
	{CALL(getpid, IGNORED), {0}},
	{CALL(gettid, IGNORED), {0}},
	{CALL(sched_getaffinity, IGNORED), {0, 128, AT}},
	{CALL(sched_yield, IGNORED), {0}},
	{CALL(lseek, IGNORED), {FD, 0, SEEK_SET}},

	/* The end of a thread. */
	{CALL(madvise, IGNORED), {AT, 507904, MADV_DONTNEED}},
	/* glibc calls it again for as long as it returns. */
	{CALL(exit, NEEDED), {0}},
};

const struct inject_call *inject_calls(size_t *count)
{
	*count = sizeof(calls) / sizeof(*calls);
	return calls;
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_stop.h"

#if defined(__x86_64__)

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "inject_place.h"
#include "inject_regs.h"

/* The instruction `syscall`. */
#define SYSCALL_BYTES 2
#define SYSCALL_CODE  0x050f

#define NS_PER_S 1000000000ull
/* A thread of a frozen group does not stop before it thaws. */
#define STOP_WAIT_NS (2 * NS_PER_S)

/* In memory of its own that is there: nothing is to be waited for while the thread stands. */
struct inject_stop {
	int status_fd; /* /proc/TID/status */
	bool held;     /* it is stopped, and ours */
	bool diverted;
	const struct inject_hook *hook;
	struct inject_thread thread;
	uint64_t begin_ns;
	uint64_t ns;
	struct user_regs_struct seen;
	struct user_regs_struct written;
	uint8_t memory[INJECT_STUB_MAX];
	char status[8192];
};

/* NULL and err, -ESRCH if there is no such thread. */
static struct inject_stop *stop_new(const struct inject_thread *thread,
				    const struct inject_hook *hook, int *err)
{
	struct inject_stop *stop = mmap(NULL, sizeof(*stop), PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	char path[64];

	*err = -ENOMEM;
	if (stop == MAP_FAILED)
		return NULL;
	/* Where it may not be locked it is there all the same, but for a machine short of memory.
	 */
	mlock(stop, sizeof(*stop));
	stop->hook = hook;
	stop->thread = *thread;
	snprintf(path, sizeof(path), "/proc/%u/status", thread->tid);
	stop->status_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (stop->status_fd < 0) {
		*err = errno == ENOENT ? -ESRCH : -errno;
		inject_stop__free(stop);
		return NULL;
	}
	*err = 0;
	return stop;
}

void inject_stop__free(struct inject_stop *stop)
{
	if (!stop)
		return;
	if (stop->status_fd >= 0)
		close(stop->status_fd);
	munmap(stop, sizeof(*stop));
}

/*
 * The next thing that the thread has to tell, without a wait that only it can end: 0 and status,
 * -ETIMEDOUT, -ESRCH. SIGCHLD is blocked, it is what ends the wait.
 */
static int await_news(uint32_t tid, uint64_t until_ns, int *status)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	for (;;) {
		pid_t got = waitpid((pid_t)tid, status, __WALL | WNOHANG);
		uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
		struct timespec left;

		if (got == (pid_t)tid)
			return 0;
		if (got < 0)
			return -ESRCH;
		if (now_ns >= until_ns)
			return -ETIMEDOUT;
		left.tv_sec = (time_t)((until_ns - now_ns) / NS_PER_S);
		left.tv_nsec = (long)((until_ns - now_ns) % NS_PER_S);
		sigtimedwait(&child, NULL, &left);
	}
}

/*
 * A thread that has died is kept by whoever traces it: an execve of another one would wait for us.
 */
static void bury(uint32_t tid, uint64_t until_ns)
{
	int status;

	while (!await_news(tid, until_ns, &status) && WIFSTOPPED(status))
		ptrace(PTRACE_DETACH, tid, 0, 0);
}

/*
 * Until it stands because we asked for it. A signal that comes first is handed on. -EAGAIN: others
 * have stopped it (SIGSTOP); it goes on being stopped.
 */
static int await_stop(struct inject_stop *stop)
{
	uint64_t until_ns = stop->begin_ns + STOP_WAIT_NS;
	int status, err;

	for (;;) {
		err = await_news(stop->thread.tid, until_ns, &status);
		if (err)
			return err;
		if (!WIFSTOPPED(status))
			return -ESRCH;
		if (status >> 16 == PTRACE_EVENT_STOP)
			break;
		ptrace(PTRACE_CONT, stop->thread.tid, 0, (long)WSTOPSIG(status));
	}
	if (WSTOPSIG(status) == SIGTRAP)
		return 0;
	ptrace(PTRACE_DETACH, stop->thread.tid, 0, 0);
	return -EAGAIN;
}

static int read_registers(struct inject_stop *stop)
{
	struct iovec vec = {&stop->seen, sizeof(stop->seen)};

	if (ptrace(PTRACE_GETREGSET, stop->thread.tid, (void *)NT_PRSTATUS, &vec))
		return -errno;
	return vec.iov_len == sizeof(stop->seen) ? 0 : -EAGAIN;
}

/* All of them at once, from memory that is there: there is no state between the two. */
static int write_registers(struct inject_stop *stop)
{
	struct iovec vec = {&stop->written, sizeof(stop->written)};

	return ptrace(PTRACE_SETREGSET, stop->thread.tid, (void *)NT_PRSTATUS, &vec) ? -errno : 0;
}

/* Whether it waits in a system call, as it was looked at. */
static int check(const struct inject_stop *stop)
{
	long code;

	if (!inject_regs_are_same(&stop->seen, &stop->thread))
		return -EAGAIN;
	errno = 0;
	code = ptrace(PTRACE_PEEKTEXT, stop->thread.tid, stop->seen.rip - SYSCALL_BYTES, 0);
	return errno || (code & 0xffff) != SYSCALL_CODE ? -EAGAIN : 0;
}

int inject_stop__take(struct inject_stop **result, const struct inject_thread *thread,
		      const struct inject_hook *hook)
{
	sigset_t child, before;
	int err;
	struct inject_stop *stop = stop_new(thread, hook, &err);

	*result = NULL;
	if (!stop)
		return err;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before);
	if (ptrace(PTRACE_SEIZE, stop->thread.tid, 0, 0)) {
		err = errno == ESRCH ? -ESRCH : -EPERM;
		goto out;
	}
	inject_reach(hook, INJECT_AT_SEIZED);
	stop->begin_ns = clock_ns(CLOCK_MONOTONIC);
	ptrace(PTRACE_INTERRUPT, stop->thread.tid, 0, 0);
	inject_reach(hook, INJECT_AT_INTERRUPTED);
	err = await_stop(stop);
	if (err)
		goto out;
	stop->held = true;
	inject_reach(hook, INJECT_AT_STOPPED);
	err = read_registers(stop);
	if (err)
		memset(&stop->seen, 0, sizeof(stop->seen));
	inject_reach(hook, INJECT_AT_REGISTERS_READ);
	if (!err)
		err = check(stop);
	if (err)
		inject_stop__let_go(stop);
out:
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (err)
		inject_stop__free(stop);
	else
		*result = stop;
	return err;
}

/*
 * Whether a signal would be delivered before anything else. By the mask of /proc: of a ppoll, what
 * PTRACE_GETSIGMASK says is the mask that it will have again.
 */
static bool has_signal(struct inject_stop *stop)
{
	ssize_t got = pread(stop->status_fd, stop->status, sizeof(stop->status) - 1, 0);
	unsigned long long own, shared, blocked;
	const char *at;

	if (got <= 0)
		return true;
	stop->status[got] = '\0';
	at = strstr(stop->status, "\nSigPnd:");
	if (!at ||
	    sscanf(at, "\nSigPnd: %llx ShdPnd: %llx SigBlk: %llx", &own, &shared, &blocked) != 3)
		return true;
	return (own | shared) & ~blocked;
}

/* The process may have become another program since the stub was written. */
static bool is_stub_there(struct inject_stop *stop, uint64_t at, const uint8_t *bytes)
{
	struct fbt_inject_stub head;
	struct iovec here = {stop->memory, 0}, there = {(void *)at, 0};

	memcpy(&head, bytes, sizeof(head));
	if (head.size < sizeof(head) || head.size > sizeof(stop->memory))
		return false;
	here.iov_len = there.iov_len = head.size;
	return process_vm_readv((pid_t)stop->thread.tid, &here, 1, &there, 1, 0) ==
		       (ssize_t)head.size &&
	       !memcmp(stop->memory, bytes, head.size);
}

int inject_stop__divert(struct inject_stop *stop, uint64_t stub, const uint8_t *bytes,
			uint32_t nonce)
{
	if (!stop->held || !is_stub_there(stop, stub, bytes))
		return -EAGAIN;
	inject_reach(stop->hook, INJECT_AT_STUB_COMPARED);
	stop->written = stop->seen;
	if (has_signal(stop) || inject_regs_divert(&stop->written, stub, nonce) ||
	    write_registers(stop))
		return -EAGAIN;
	stop->diverted = true;
	inject_reach(stop->hook, INJECT_AT_DIVERTED);
	if (has_signal(stop)) {
		stop->written = stop->seen;
		stop->diverted = write_registers(stop) != 0;
	}
	inject_reach(stop->hook, INJECT_AT_PENDING_CHECKED);
	return stop->diverted ? 0 : -EAGAIN;
}

void inject_stop__let_go(struct inject_stop *stop)
{
	bool gone;

	if (!stop->held)
		return;
	stop->written = stop->seen;
	if (!stop->diverted && inject_regs_hide(&stop->written, stop->thread.nr))
		write_registers(stop);
	gone = ptrace(PTRACE_DETACH, stop->thread.tid, 0, 0) && errno == ESRCH;
	stop->ns = clock_ns(CLOCK_MONOTONIC) - stop->begin_ns;
	stop->held = false;
	if (gone)
		bury(stop->thread.tid, stop->begin_ns + STOP_WAIT_NS);
	if (stop->diverted)
		inject_reach(stop->hook, INJECT_AT_DETACHED);
}

uint64_t inject_stop__ns(const struct inject_stop *stop)
{
	return stop->ns;
}

#else

#include <errno.h>

int inject_stop__take(struct inject_stop **stop, const struct inject_thread *thread,
		      const struct inject_hook *hook)
{
	(void)thread;
	(void)hook;
	*stop = NULL;
	return -ENOSYS;
}

int inject_stop__divert(struct inject_stop *stop, uint64_t stub, const uint8_t *bytes,
			uint32_t nonce)
{
	(void)stop;
	(void)stub;
	(void)bytes;
	(void)nonce;
	return -ENOSYS;
}

void inject_stop__let_go(struct inject_stop *stop)
{
	(void)stop;
}

uint64_t inject_stop__ns(const struct inject_stop *stop)
{
	(void)stop;
	return 0;
}

void inject_stop__free(struct inject_stop *stop)
{
	(void)stop;
}

#endif

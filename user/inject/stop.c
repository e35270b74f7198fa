/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject/stop.h"

#if defined(__x86_64__)

#include <asm/unistd.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "fbt_inject.h"
#include "inject/place.h"
#include "proc/open.h"

/* Kernel-internal results of a call that is to be restarted (linux/errno.h, not exported). */
#define ERESTARTSYS	      512
#define ERESTARTNOINTR	      513
#define ERESTARTNOHAND	      514
#define ERESTART_RESTARTBLOCK 516

/* Code segment of 64-bit programs, without and with Xen. */
#define CS_64	  0x33
#define CS_64_XEN 0xe033

int inject_regs_class(const struct user_regs_struct *regs)
{
	switch ((int64_t)regs->rax) {
	case -ERESTARTSYS:
		return FBT_INJECT_SA;
	case -ERESTARTNOINTR:
		return FBT_INJECT_ALWAYS;
	case -ERESTARTNOHAND:
		return FBT_INJECT_NO_HAND;
	case -ERESTART_RESTARTBLOCK:
		return FBT_INJECT_BLOCK;
	case -EINTR:
		/*
		 * restart_syscall returns EINTR after a handler has run. The program must see it.
		 */
		return regs->orig_rax == __NR_restart_syscall ? -EAGAIN : FBT_INJECT_NO_HAND;
	}
	return -EAGAIN;
}

bool inject_regs_are_same(const struct user_regs_struct *regs, const struct inject_thread *thread)
{
	struct inject_thread now = *thread;

	if (regs->orig_rax != now.nr || regs->rsp != now.sp || regs->rip != now.pc ||
	    regs->rdi != now.args[0] || (regs->cs != CS_64 && regs->cs != CS_64_XEN) ||
	    inject_regs_class(regs) < 0)
		return false;
	now.args[1] = regs->rsi;
	now.args[2] = regs->rdx;
	now.args[3] = regs->r10;
	now.args[4] = regs->r8;
	now.args[5] = regs->r9;
	return inject_thread_rank(&now) != INJECT_RANK_NONE;
}

int inject_regs_divert(struct user_regs_struct *regs, uint64_t stub, uint32_t nonce)
{
	int class = inject_regs_class(regs);

	if (class < 0)
		return class;
	regs->rcx = regs->rip;
	regs->r11 = FBT_INJECT_TOKEN(nonce, class);
	regs->rip = stub + FBT_INJECT_ENTRY_INTERRUPTED;
	if ((int64_t)regs->rax == -EINTR)
		regs->rax = (uint64_t)-ERESTARTNOHAND;
	return 0;
}

/* Calls that have done nothing yet when they return EINTR, and that the kernel does not restart. */
static bool may_begin_anew(uint64_t nr)
{
	switch (nr) {
	case __NR_read:
	case __NR_recvfrom:
	case __NR_recvmsg:
	case __NR_accept:
	case __NR_accept4:
	case __NR_epoll_wait:
	case __NR_epoll_pwait:
	case __NR_epoll_pwait2:
	case __NR_semop:
	case __NR_semtimedop:
	case __NR_rt_sigtimedwait:
	case __NR_io_getevents:
		return true;
	}
	return false;
}

bool inject_regs_hide(struct user_regs_struct *regs, uint64_t nr)
{
	if ((int64_t)regs->rax != -EINTR || regs->orig_rax == __NR_restart_syscall ||
	    (regs->orig_rax != nr && !may_begin_anew(regs->orig_rax)))
		return false;
	regs->rax = (uint64_t)-ERESTARTNOHAND;
	return true;
}

/* The instruction `syscall`. */
#define SYSCALL_BYTES 2
#define SYSCALL_CODE  0x050f

/* A thread of a frozen cgroup does not stop before it is thawed. */
#define STOP_WAIT_NS (2 * NS_PER_S)

/* More than what precedes the signals in /proc/TID/status may grow or shrink during a stop. */
#define STATUS_SLACK 4096

/* The structure is in locked memory, so that no page fault prolongs the stop. */
struct inject_stop {
	int status_fd;	  /* /proc/TID/status */
	off_t signals_at; /* in it; at most STATUS_SLACK before the lines about signals */
	int schedstat_fd; /* /proc/TID/schedstat; -1: the kernel has none */
	bool held;	  /* the thread is stopped by us */
	bool diverted;
	bool urgent; /* we have a real-time policy, instead of policy and priority */
	int policy;
	struct sched_param priority;
	const struct inject_hook *hook;
	struct inject_thread thread;
	uint64_t begin_ns;
	uint64_t ns;
	uint64_t waited_ns; /* until let_go: all waits of the thread before the stop */
	struct user_regs_struct seen;
	struct user_regs_struct written;
	uint8_t memory[INJECT_STUB_MAX];
	char status[2 * STATUS_SLACK];
};

#define SIGNALS "\nSigPnd:"

/*
 * Finds where to read the signals: the groups of the process, which come before them, may be longer
 * than what is read during the stop. 0, -ESRCH if the thread has ended, or another -errno.
 */
static int find_signals(struct inject_stop *stop)
{
	const size_t kept = sizeof(SIGNALS) - 1;
	const char *found = NULL;
	size_t size = 0;
	off_t at = 0; /* of status[0] */

	for (;;) {
		ssize_t got = pread(stop->status_fd, stop->status + size,
				    sizeof(stop->status) - 1 - size, at + (off_t)size);

		if (got <= 0)
			return got ? -errno : -ENODATA;
		size += (size_t)got;
		stop->status[size] = '\0';
		found = strstr(stop->status, SIGNALS);
		if (found)
			break;
		if (size <= kept)
			continue;
		/* The beginning of the text may be the end of this piece. */
		memmove(stop->status, stop->status + size - kept, kept);
		at += (off_t)(size - kept);
		size = kept;
	}
	at += found - stop->status;
	stop->signals_at = at > STATUS_SLACK ? at - STATUS_SLACK : 0;
	return 0;
}

/* NULL on failure: *err is -ESRCH if there is no such thread. */
static struct inject_stop *stop_new(const struct inject_thread *thread,
				    const struct inject_hook *hook, int *err)
{
	struct inject_stop *stop = mmap(NULL, sizeof(*stop), PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	*err = -ENOMEM;
	if (stop == MAP_FAILED)
		return NULL;
	mlock(stop, sizeof(*stop)); /* may fail; MAP_POPULATE has filled the pages */
	stop->hook = hook;
	stop->thread = *thread;
	stop->schedstat_fd =
		proc_open((struct proc_ref){.tgid = thread->tid}, "schedstat", O_RDONLY);
	stop->status_fd = proc_open((struct proc_ref){.tgid = thread->tid}, "status", O_RDONLY);
	*err = stop->status_fd < 0 ? stop->status_fd : find_signals(stop);
	if (!*err)
		return stop;
	inject_stop__free(stop);
	return NULL;
}

void inject_stop__free(struct inject_stop *stop)
{
	if (!stop)
		return;
	if (stop->status_fd >= 0)
		close(stop->status_fd);
	if (stop->schedstat_fd >= 0)
		close(stop->schedstat_fd);
	munmap(stop, sizeof(*stop));
}

/*
 * While a thread is stopped, we get a CPU at once however many threads are ready to run: all that
 * we do meanwhile is short, or sleeps. A niceness is not enough, because the kernel lets what runs
 * finish its slice, some milliseconds. Where it is not allowed, the stop only may take longer.
 */
static void begin_urgent(struct inject_stop *stop)
{
	struct sched_param first = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};

	stop->policy = sched_getscheduler(0);
	if (stop->policy < 0 || sched_getparam(0, &stop->priority))
		return;
	stop->urgent = !sched_setscheduler(0, SCHED_FIFO, &first);
}

static void end_urgent(struct inject_stop *stop)
{
	if (stop->urgent)
		sched_setscheduler(0, stop->policy, &stop->priority);
	stop->urgent = false;
}

/* How long the thread has waited for a CPU since it began. 0: not known. */
static uint64_t read_waited(struct inject_stop *stop)
{
	unsigned long long waited_ns;
	ssize_t got;

	if (stop->schedstat_fd < 0)
		return 0;
	got = pread(stop->schedstat_fd, stop->status, sizeof(stop->status) - 1, 0);
	if (got <= 0)
		return 0;
	stop->status[got] = '\0';
	return sscanf(stop->status, "%*u %llu", &waited_ns) == 1 ? waited_ns : 0;
}

/*
 * waitpid with a deadline. 0, and *status is set; -ETIMEDOUT; -ESRCH. The caller has blocked
 * SIGCHLD, so that sigtimedwait returns when it arrives.
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
		left = clock_timespec(until_ns - now_ns);
		sigtimedwait(&child, NULL, &left);
	}
}

/*
 * Reaps a thread that died while it was traced. Until it is reaped, an execve in its process waits
 * for us.
 */
static void bury(uint32_t tid, uint64_t until_ns)
{
	int status;

	while (!await_news(tid, until_ns, &status) && WIFSTOPPED(status))
		ptrace(PTRACE_DETACH, tid, 0, 0);
}

/*
 * Waits for the stop that we asked for. A signal that comes first is delivered. -EAGAIN: something
 * else has stopped the thread (SIGSTOP), and it stays stopped.
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

/*
 * All registers are written at once, from resident memory, so the thread never has some old and
 * some new ones.
 */
static int write_registers(struct inject_stop *stop)
{
	struct iovec vec = {&stop->written, sizeof(stop->written)};

	return ptrace(PTRACE_SETREGSET, stop->thread.tid, (void *)NT_PRSTATUS, &vec) ? -errno : 0;
}

/* 0: the thread waits in the system call that it was chosen for. -EAGAIN: it does not. */
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
	stop->waited_ns = read_waited(stop);
	begin_urgent(stop);
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
		end_urgent(stop);
	if (err)
		inject_stop__free(stop);
	else
		*result = stop;
	return err;
}

/*
 * Whether a signal would be delivered before the thread continues. Uses the mask in /proc: during a
 * ppoll, PTRACE_GETSIGMASK returns the mask that is restored after the call, not the one in force.
 */
static bool has_signal(struct inject_stop *stop)
{
	ssize_t got =
		pread(stop->status_fd, stop->status, sizeof(stop->status) - 1, stop->signals_at);
	unsigned long long own, shared, blocked;
	const char *at;

	if (got <= 0)
		return true;
	stop->status[got] = '\0';
	at = strstr(stop->status, SIGNALS);
	if (!at ||
	    sscanf(at, SIGNALS " %llx ShdPnd: %llx SigBlk: %llx", &own, &shared, &blocked) != 3)
		return true;
	return (own | shared) & ~blocked;
}

/* Compares the stub again: the process may have called execve since the stub was written. */
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

/*
 * Until the thread has a CPU, it is not stopped but ready to run, as after any other wake-up: that
 * it was asked to stop does not make it wait longer for what it waits for.
 */
static void take_times(struct inject_stop *stop, uint64_t end_ns, uint64_t waited_ns)
{
	stop->ns = end_ns - stop->begin_ns;
	stop->waited_ns = waited_ns > stop->waited_ns ? waited_ns - stop->waited_ns : 0;
	if (stop->waited_ns > stop->ns)
		stop->waited_ns = stop->ns;
	stop->ns -= stop->waited_ns;
}

void inject_stop__let_go(struct inject_stop *stop)
{
	uint64_t waited_ns;
	bool gone;

	if (!stop->held)
		return;
	stop->written = stop->seen;
	if (!stop->diverted && inject_regs_hide(&stop->written, stop->thread.nr))
		write_registers(stop);
	waited_ns = read_waited(stop);
	gone = ptrace(PTRACE_DETACH, stop->thread.tid, 0, 0) && errno == ESRCH;
	take_times(stop, clock_ns(CLOCK_MONOTONIC), waited_ns);
	end_urgent(stop);
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

uint64_t inject_stop__waited_ns(const struct inject_stop *stop)
{
	return stop->waited_ns;
}

#else

#include <errno.h>

int inject_stop__take(struct inject_stop **stop, const struct inject_thread *thread,
		      const struct inject_hook *hook)
{
	*stop = NULL;
	return -ENOSYS;
}

int inject_stop__divert(struct inject_stop *stop, uint64_t stub, const uint8_t *bytes,
			uint32_t nonce)
{
	return -ENOSYS;
}

void inject_stop__let_go(struct inject_stop *stop)
{
}

uint64_t inject_stop__ns(const struct inject_stop *stop)
{
	return 0;
}

uint64_t inject_stop__waited_ns(const struct inject_stop *stop)
{
	return 0;
}

void inject_stop__free(struct inject_stop *stop)
{
}

#endif

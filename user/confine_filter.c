/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "confine_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#include "confine_seccomp.h"
#include "log.h"

#define TRAP SCMP_ACT_TRAP
/* <linux/prctl.h> of Linux 5.17: names of mappings, for malloc of glibc 2.38 and newer. */
#define SET_VMA 0x53564d41
/* SYS_SECCOMP of <asm-generic/siginfo.h>, which cannot be included beside <signal.h>. */
#define REFUSED_CODE 1
/* Calls of Linux 5.15 have numbers below this; what comes later is counted as the last. */
#define NUMBERS 512
#define SAID	0x8000u

/* By name: what an architecture or libseccomp does not know is not called there. */
#define MEMORY "brk munmap mremap madvise mlock munlock msync membarrier "
#define TIME                                                                                       \
	"clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time timerfd_create "   \
	"timerfd_settime timerfd_gettime "
#define FILES                                                                                      \
	"read pread64 readv preadv write pwrite64 writev lseek close close_range fstat "           \
	"newfstatat "                                                                              \
	"stat lstat statx fstatfs statfs access faccessat faccessat2 readlink readlinkat "         \
	"getdents "                                                                                \
	"getdents64 getcwd flock ftruncate fsync fdatasync fadvise64 dup dup2 dup3 pipe2 "         \
	"memfd_create rename renameat renameat2 unlink unlinkat sendfile copy_file_range "
#define EVENTS                                                                                     \
	"poll ppoll select pselect6 epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 "  \
	"eventfd2 signalfd4 inotify_init1 inotify_add_watch inotify_rm_watch "
#define SIGNALS                                                                                    \
	"rt_sigaction rt_sigprocmask rt_sigreturn rt_sigtimedwait rt_sigpending sigaltstack "      \
	"pause "
#define PROCESS                                                                                    \
	"exit exit_group wait4 waitid getpid gettid getppid getpgrp getuid geteuid getgid "        \
	"getegid "                                                                                 \
	"getresuid getresgid getgroups capget getrusage times sysinfo uname getrandom getcpu "     \
	"getpriority sched_yield sched_getaffinity sched_getparam sched_getscheduler rseq "        \
	"set_robust_list get_robust_list set_tid_address futex futex_waitv restart_syscall umask "
/* To the broker: its socket is there. */
#define BROKER "sendmsg recvmsg "

static const char always[] = MEMORY TIME FILES EVENTS SIGNALS PROCESS BROKER "perf_event_open ";

static const char of_windows[] = "mkdir mkdirat fchown fchmod ";

static const char of_network[] =
	"connect bind sendto sendmmsg recvfrom recvmmsg getsockname getpeername "
	"getsockopt setsockopt shutdown socketpair pipe mmap mprotect sched_setaffinity ";

/* What bpf(2) is for in a window that is open, and what makes another one. */
static const int bpf_commands[] = {
	BPF_MAP_LOOKUP_ELEM,	BPF_MAP_UPDATE_ELEM, BPF_MAP_DELETE_ELEM, BPF_MAP_GET_NEXT_KEY,
	BPF_OBJ_GET_INFO_BY_FD, BPF_LINK_CREATE,     BPF_LINK_DETACH,
};
static const int bpf_window_commands[] = {
	BPF_MAP_CREATE,	      BPF_RAW_TRACEPOINT_OPEN, BPF_MAP_FREEZE,
	BPF_MAP_LOOKUP_BATCH, BPF_MAP_UPDATE_BATCH,    BPF_BTF_LOAD,
	BPF_BTF_GET_FD_BY_ID, BPF_BTF_GET_NEXT_ID,     BPF_ENABLE_STATS,
	BPF_PROG_BIND_MAP,
};

/* Of a terminal: how it is, not what is typed on it. */
static const unsigned int ioctls[] = {
	PERF_EVENT_IOC_SET_BPF,
	PERF_EVENT_IOC_ENABLE,
	PERF_EVENT_IOC_DISABLE,
	TCGETS,
	TIOCGWINSZ,
	FIONBIO,
	FIONREAD,
};

/* Of fcntl(2): not those that have a signal sent (F_SETOWN, F_SETSIG, F_SETLEASE, F_NOTIFY). */
static const unsigned int fcntls[] = {
	F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD,     F_SETFD,	    F_GETFL,	 F_SETFL,
	F_GETLK, F_SETLK,	  F_OFD_GETLK, F_OFD_SETLK, F_GET_SEALS,
};

/* A signal's handler has nothing else to write to; of one process and its one filter. */
static volatile uint16_t refused[NUMBERS];

static int allow_names(scmp_filter_ctx filter, const char *names)
{
	char *copy = strdup(names), *rest = NULL;
	int err = copy ? 0 : -ENOMEM;

	for (char *name = copy ? strtok_r(copy, " ", &rest) : NULL; name && !err;
	     name = strtok_r(NULL, " ", &rest)) {
		int nr = seccomp_syscall_resolve_name(name);

		if (nr >= 0)
			err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, nr, 0);
	}
	free(copy);
	return err;
}

/* If one argument is as compare says; the upper half of an int in a register is anything. */
static int allow_if(scmp_filter_ctx filter, const char *name, struct scmp_arg_cmp compare)
{
	int nr = seccomp_syscall_resolve_name(name);

	return nr < 0 ? 0 : seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, nr, 1, &compare);
}

static int allow_masked(scmp_filter_ctx filter, const char *name, unsigned int argument,
			uint32_t mask, uint32_t value)
{
	return allow_if(filter, name, SCMP_CMP64(argument, SCMP_CMP_MASKED_EQ, mask, value));
}

static int allow_value(scmp_filter_ctx filter, const char *name, unsigned int argument,
		       uint32_t value)
{
	return allow_masked(filter, name, argument, UINT32_MAX, value);
}

/*
 * Nothing that is there is opened for writing: no file, and no memory in /proc. New files are made
 * for a window by flag; what it appends to, the broker opens.
 */
static int allow_open(scmp_filter_ctx filter, const struct confine_calls *calls)
{
	const uint32_t writing = O_ACCMODE | O_CREAT | O_TRUNC;
	int err = allow_masked(filter, "openat", 2, writing, O_RDONLY);

	if (!err)
		err = allow_masked(filter, "open", 1, writing, O_RDONLY);
	if (!err && calls->windows)
		err = allow_masked(filter, "openat", 2, O_CREAT | O_EXCL, O_CREAT | O_EXCL);
	return err;
}

/* No code comes in but that of the program and the libraries it had. */
static int allow_data(scmp_filter_ctx filter)
{
	int err = allow_masked(filter, "mmap", 2, PROT_EXEC, 0);

	return err ? err : allow_masked(filter, "mprotect", 2, PROT_EXEC, 0);
}

static int allow_bpf(scmp_filter_ctx filter, const int *commands, size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		err = allow_value(filter, "bpf", 0, (uint32_t)commands[i]);
	return err;
}

/* A limit is read, not set; a signal of ours is for us, 0 asks whether a process is there. */
static int allow_own(scmp_filter_ctx filter, bool command)
{
	int err = 0;

	for (size_t i = 0; i < sizeof(ioctls) / sizeof(ioctls[0]) && !err; i++)
		err = allow_value(filter, "ioctl", 1, ioctls[i]);
	for (size_t i = 0; i < sizeof(fcntls) / sizeof(fcntls[0]) && !err; i++)
		err = allow_value(filter, "fcntl", 1, fcntls[i]);
	if (!err)
		err = allow_if(filter, "prlimit64", SCMP_CMP64(2, SCMP_CMP_EQ, 0, 0));
	if (!err)
		err = allow_value(filter, "prctl", 0, PR_SET_NAME);
	if (!err)
		err = allow_value(filter, "prctl", 0, SET_VMA);
	if (!err)
		err = allow_value(filter, "tgkill", 0, (uint32_t)getpid());
	if (!err)
		err = allow_value(filter, "kill", 1, 0);
	if (!err && command)
		err = allow_value(filter, "kill", 1, SIGCONT);
	return err;
}

/* Threads, no processes. Where clone3 is unknown, libc takes clone, whose flags can be seen. */
static int allow_network(scmp_filter_ctx filter)
{
	static const uint32_t families[] = {1 /* AF_UNIX */, 2 /* AF_INET */, 10 /* AF_INET6 */,
					    16 /* AF_NETLINK, for what addresses there are */};
	int err = allow_names(filter, of_network), nr = seccomp_syscall_resolve_name("clone3");

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]) && !err; i++)
		err = allow_value(filter, "socket", 0, families[i]);
	if (!err)
		err = allow_masked(filter, "clone", 0, CLONE_THREAD, CLONE_THREAD);
	if (!err && nr >= 0)
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), nr, 0);
	return err;
}

static int add_rules(scmp_filter_ctx filter, const struct confine_calls *calls)
{
	int err = allow_names(filter, always);

	if (!err)
		err = allow_open(filter, calls);
	if (!err)
		err = allow_bpf(filter, bpf_commands, sizeof(bpf_commands) / sizeof(int));
	if (!err && (calls->windows || calls->loads))
		err = allow_bpf(filter, (const int[]){BPF_PROG_LOAD}, 1);
	if (!err && calls->windows)
		err = allow_bpf(filter, bpf_window_commands,
				sizeof(bpf_window_commands) / sizeof(int));
	if (!err && calls->windows)
		err = allow_names(filter, of_windows);
	if (!err)
		err = allow_own(filter, calls->command);
	if (!err)
		err = calls->network ? allow_network(filter) : allow_data(filter);
	return err;
}

/* By now the call's registers are as they were before it. */
static void fail_call(ucontext_t *context)
{
#ifdef __x86_64__
	context->uc_mcontext.gregs[REG_RAX] = -EPERM;
#else
	context->uc_mcontext.regs[0] = (unsigned long long)-EPERM;
#endif
}

static void on_refused(int signo, siginfo_t *info, void *context)
{
	unsigned int nr = (unsigned int)info->si_syscall;

	if (info->si_code != REFUSED_CODE) {
		/* Somebody sent it: what it does by default it does when we are back. */
		signal(signo, SIG_DFL);
		raise(signo);
		return;
	}
	nr = nr < NUMBERS ? nr : NUMBERS - 1;
	if ((refused[nr] & ~SAID) < SAID - 1)
		refused[nr]++;
	fail_call(context);
}

/* Threads that are there have it too. A refused call is told of by a signal. */
static int fill(scmp_filter_ctx filter, const void *calls)
{
	struct sigaction action = {.sa_sigaction = on_refused, .sa_flags = SA_SIGINFO};
	int err = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);

	if (!err)
		err = add_rules(filter, calls);
	return !err && sigaction(SIGSYS, &action, NULL) ? -errno : err;
}

int confine_filter_apply(const struct confine_calls *calls)
{
	return confine_seccomp_load(TRAP, fill, calls);
}

void confine_filter_report(void)
{
	for (int nr = 0; nr < NUMBERS; nr++) {
		char *name;

		if (!refused[nr] || (refused[nr] & SAID))
			continue;
		name = seccomp_syscall_resolve_num_arch(seccomp_arch_native(), nr);
		log_warn("our own call of %s was refused %u times by our filter, and the window "
			 "goes on: please report that, with the kernel and libc you have",
			 name ? name : "an unknown number", (unsigned int)refused[nr]);
		free(name);
		refused[nr] |= SAID;
	}
}

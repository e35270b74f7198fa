/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "sandbox/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/log.h"

#define TRAP SCMP_ACT_TRAP
/*
 * PR_SET_VMA of <linux/prctl.h>, Linux 5.17. malloc of glibc 2.38 and newer uses it to name its
 * mappings.
 */
#define SET_VMA 0x53564d41
/* SYS_SECCOMP of <asm-generic/siginfo.h>, which cannot be included together with <signal.h>. */
#define REFUSED_CODE 1
/* Calls of Linux 5.15 have numbers below this. Later ones are counted under the last number. */
#define NUMBERS 512
#define SAID	0x8000u

/* Less than the size from which malloc maps each piece separately. */
#define RESERVE_PIECE_BYTES (64u << 10)
#define RESERVE_PIECES	    16

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/*
 * Calls are named. A call that the architecture or libseccomp does not know cannot be made, and is
 * left out.
 */
#define MEMORY "brk munmap mremap madvise mlock munlock msync membarrier "
#define TIME                                                                                       \
	"clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time timerfd_create "   \
	"timerfd_settime timerfd_gettime timer_create timer_settime timer_delete "
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
/* Messages to the broker; its socket exists already. */
#define BROKER "sendmsg recvmsg "

static const char always[] = MEMORY TIME FILES EVENTS SIGNALS PROCESS BROKER "perf_event_open ";

static const char of_new_files[] = "mkdir mkdirat fchown fchmod ";

static const char of_network[] =
	"connect bind sendto sendmmsg recvfrom recvmmsg getsockname getpeername "
	"getsockopt setsockopt shutdown socketpair ";

/* Commands of bpf(2) that an open window needs, and those that open another one. */
static const int bpf_commands[] = {
	BPF_MAP_LOOKUP_ELEM,	BPF_MAP_UPDATE_ELEM, BPF_MAP_DELETE_ELEM, BPF_MAP_GET_NEXT_KEY,
	BPF_OBJ_GET_INFO_BY_FD, BPF_LINK_CREATE,     BPF_LINK_DETACH,	  BPF_ITER_CREATE,
};
static const int bpf_window_commands[] = {
	BPF_MAP_CREATE,	      BPF_RAW_TRACEPOINT_OPEN, BPF_MAP_FREEZE,
	BPF_MAP_LOOKUP_BATCH, BPF_MAP_UPDATE_BATCH,    BPF_BTF_LOAD,
	BPF_BTF_GET_FD_BY_ID, BPF_BTF_GET_NEXT_ID,     BPF_PROG_BIND_MAP,
};

/* A terminal's state may be read, but no input injected (TIOCSTI). */
static const unsigned int ioctls[] = {
	PERF_EVENT_IOC_SET_BPF,
	PERF_EVENT_IOC_ENABLE,
	PERF_EVENT_IOC_DISABLE,
	TCGETS,
	TIOCGWINSZ,
	FIONBIO,
	FIONREAD,
};

/*
 * No fcntl(2) command that makes the kernel send signals (F_SETOWN, F_SETSIG, F_SETLEASE,
 * F_NOTIFY).
 */
static const unsigned int fcntls[] = {
	F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD,     F_SETFD,	    F_GETFL,	 F_SETFL,
	F_GETLK, F_SETLK,	  F_OFD_GETLK, F_OFD_SETLK, F_GET_SEALS,
};

/*
 * Number of refused calls, by system call; SAID: reported. Global, because a signal handler writes
 * it. A process has one filter.
 */
static volatile uint16_t refused[NUMBERS];

/*
 * Makes sure that malloc has the memory that libseccomp needs (some 100 KiB): out of memory,
 * libseccomp crashes, loops for ever, or makes a filter that kills. Free the result after use.
 * Until then it pins the end of the heap, so that malloc does not return the rest to the kernel.
 */
static void *reserve_memory(void)
{
	void *pieces[RESERVE_PIECES], *end = NULL;
	size_t count = 0;

	while (count < RESERVE_PIECES && (pieces[count] = malloc(RESERVE_PIECE_BYTES)))
		count++;
	if (count == RESERVE_PIECES)
		end = malloc(RESERVE_PIECE_BYTES);
	while (count)
		free(pieces[--count]);
	return end;
}

static bool is_possible(void)
{
	return !SANITIZED && (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0 || errno != EINVAL);
}

/*
 * Loads a filter for this process and all that it forks or runs, for good. fill adds the rules, and
 * returns 0 or -errno; otherwise is the action for calls without a rule. A call of another
 * architecture (int 0x80) kills the process: this program makes none.
 */
static int load_filter(uint32_t otherwise, int (*fill)(scmp_filter_ctx filter, const void *ctx),
		       const void *ctx)
{
	scmp_filter_ctx filter;
	void *reserve;
	int err;

	if (!is_possible())
		return -ENOSYS;
	reserve = reserve_memory();
	filter = reserve ? seccomp_init(otherwise) : NULL;
	if (!filter) {
		free(reserve);
		return -ENOMEM;
	}
	err = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (!err)
		err = fill(filter, ctx);
	if (!err)
		err = seccomp_load(filter);
	seccomp_release(filter);
	free(reserve);
	return err;
}

static int add_names(scmp_filter_ctx filter, uint32_t action, const char *names)
{
	char *copy = strdup(names), *rest = NULL;
	int err = copy ? 0 : -ENOMEM;

	for (char *name = copy ? strtok_r(copy, " ", &rest) : NULL; name && !err;
	     name = strtok_r(NULL, " ", &rest)) {
		int nr = seccomp_syscall_resolve_name(name);

		if (nr >= 0)
			err = seccomp_rule_add(filter, action, nr, 0);
	}
	free(copy);
	return err;
}

/*
 * Adds a rule for calls whose argument compares true; none for an unknown call. Compare with a
 * mask, since the upper half of a register that holds an int is undefined.
 */
static int add_if(scmp_filter_ctx filter, uint32_t action, const char *name,
		  struct scmp_arg_cmp compare)
{
	int nr = seccomp_syscall_resolve_name(name);

	return nr < 0 ? 0 : seccomp_rule_add_array(filter, action, nr, 1, &compare);
}

static int allow_masked(scmp_filter_ctx filter, const char *name, unsigned int argument,
			uint32_t mask, uint32_t value)
{
	return add_if(filter, SCMP_ACT_ALLOW, name,
		      SCMP_CMP64(argument, SCMP_CMP_MASKED_EQ, mask, value));
}

static int allow_value(scmp_filter_ctx filter, const char *name, unsigned int argument,
		       uint32_t value)
{
	return allow_masked(filter, name, argument, UINT32_MAX, value);
}

/*
 * Nothing that exists may be opened for writing, neither a file nor memory in /proc. A window by
 * flag creates new files. Files to append to are opened by the broker.
 */
static int allow_open(scmp_filter_ctx filter, const struct sandbox_calls *calls)
{
	const uint32_t writing = O_ACCMODE | O_CREAT | O_TRUNC;
	int err = allow_masked(filter, "openat", 2, writing, O_RDONLY);

	if (!err)
		err = allow_masked(filter, "open", 1, writing, O_RDONLY);
	if (!err && (calls->windows || calls->creates))
		err = allow_masked(filter, "openat", 2, O_CREAT | O_EXCL, O_CREAT | O_EXCL);
	return err;
}

/* No new code may be mapped. */
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

/*
 * Limits may be read, not set. Signals may be sent to ourselves only; signal 0 checks whether a
 * process exists.
 */
static int allow_own(scmp_filter_ctx filter, bool command)
{
	int err = 0;

	for (size_t i = 0; i < sizeof(ioctls) / sizeof(ioctls[0]) && !err; i++)
		err = allow_value(filter, "ioctl", 1, ioctls[i]);
	for (size_t i = 0; i < sizeof(fcntls) / sizeof(fcntls[0]) && !err; i++)
		err = allow_value(filter, "fcntl", 1, fcntls[i]);
	if (!err)
		err = add_if(filter, SCMP_ACT_ALLOW, "prlimit64", SCMP_CMP64(2, SCMP_CMP_EQ, 0, 0));
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

/*
 * Threads may be created, but no processes. If clone3 fails with ENOSYS, libc uses clone, whose
 * flags a filter can see.
 */
static int allow_threads(scmp_filter_ctx filter)
{
	int err = allow_masked(filter, "clone", 0, CLONE_THREAD, CLONE_THREAD);
	int nr = seccomp_syscall_resolve_name("clone3");

	return err || nr < 0 ? err : seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), nr, 0);
}

/* Modes only: TIOCSTI would type into the shell. */
static int allow_terminal(scmp_filter_ctx filter)
{
	static const unsigned int modes[] = {TCSETS, TCSETSW, TCSETSF};
	int err = 0;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]) && !err; i++)
		err = allow_value(filter, "ioctl", 1, modes[i]);
	return err;
}

static int allow_network(scmp_filter_ctx filter)
{
	static const uint32_t families[] = {1 /* AF_UNIX */, 2 /* AF_INET */, 10 /* AF_INET6 */,
					    16 /* AF_NETLINK: lists addresses */};
	int err = add_names(filter, SCMP_ACT_ALLOW, of_network);

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]) && !err; i++)
		err = allow_value(filter, "socket", 0, families[i]);
	return err;
}

static int add_rules(scmp_filter_ctx filter, const struct sandbox_calls *calls)
{
	int err = add_names(filter, SCMP_ACT_ALLOW, always);

	if (!err)
		err = allow_open(filter, calls);
	if (!err)
		err = allow_bpf(filter, bpf_commands, sizeof(bpf_commands) / sizeof(int));
	if (!err && (calls->windows || calls->loads))
		err = allow_bpf(filter, (const int[]){BPF_PROG_LOAD}, 1);
	/* How tracepoints are attached before Linux 5.19. */
	if (!err && calls->explains && !calls->windows)
		err = allow_bpf(filter, (const int[]){BPF_RAW_TRACEPOINT_OPEN}, 1);
	if (!err && calls->windows)
		err = allow_bpf(filter, bpf_window_commands,
				sizeof(bpf_window_commands) / sizeof(int));
	if (!err && (calls->windows || calls->creates))
		err = add_names(filter, SCMP_ACT_ALLOW, of_new_files);
	if (!err && calls->terminal)
		err = allow_terminal(filter);
	if (!err)
		err = allow_own(filter, calls->command);
	if (!err)
		err = allow_threads(filter);
	if (!err)
		err = allow_data(filter);
	if (!err && calls->network)
		err = allow_network(filter);
	return err;
}

/* Makes the call return -EPERM. The handler's registers are those before the call. */
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
		/*
		 * Someone sent this SIGSYS: restore the default action, which takes effect when we
		 * return.
		 */
		signal(signo, SIG_DFL);
		raise(signo);
		return;
	}
	nr = nr < NUMBERS ? nr : NUMBERS - 1;
	if ((refused[nr] & ~SAID) < SAID - 1)
		refused[nr]++;
	fail_call(context);
}

/* Also covers threads that exist already. A refused call raises SIGSYS. */
static int add_all(scmp_filter_ctx filter, const void *calls)
{
	struct sigaction action = {.sa_sigaction = on_refused, .sa_flags = SA_SIGINFO};
	int err = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);

	if (!err)
		err = add_rules(filter, calls);
	return !err && sigaction(SIGSYS, &action, NULL) ? -errno : err;
}

int sandbox_filter_apply(const struct sandbox_calls *calls)
{
	return load_filter(TRAP, add_all, calls);
}

void sandbox_filter_report(void)
{
	for (int nr = 0; nr < NUMBERS; nr++) {
		char *name;

		if (!refused[nr] || (refused[nr] & SAID))
			continue;
		name = seccomp_syscall_resolve_num_arch(seccomp_arch_native(), nr);
		log_warn("system call %s was refused %u times by our filter; the window continues: "
			 "please report this, with the versions of kernel and libc",
			 name ? name : "an unknown number", (unsigned int)refused[nr]);
		free(name);
		refused[nr] |= SAID;
	}
}

/*
 * Calls that the broker never makes. A name that the architecture or libseccomp does not know is
 * left out.
 */
#define OTHERS                                                                                     \
	"ptrace process_vm_writev process_madvise pidfd_getfd kcmp tkill rt_sigqueueinfo "         \
	"rt_tgsigqueueinfo migrate_pages move_pages "
#define MOUNTS                                                                                     \
	"mount umount umount2 pivot_root chroot move_mount open_tree fsopen fsconfig fsmount "     \
	"fspick mount_setattr setns unshare open_by_handle_at fanotify_init swapon swapoff "       \
	"quotactl quotactl_fd "
#define MACHINE                                                                                    \
	"init_module finit_module delete_module kexec_load kexec_file_load reboot acct syslog "    \
	"settimeofday clock_settime adjtimex clock_adjtime sethostname setdomainname iopl ioperm " \
	"add_key request_key keyctl vhangup "
#define NETWORK "socket connect bind listen accept accept4 "
#define HIDDEN	"io_uring_setup io_uring_enter io_uring_register userfaultfd execveat "
#define USERS	"setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups "
#define CHANGES                                                                                    \
	"creat link linkat symlink symlinkat mknod mknodat unlink unlinkat rename renameat "       \
	"renameat2 rmdir truncate chmod fchmod fchmodat fchmodat2 chown lchown fchownat "          \
	"setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr "

static const char never[] = OTHERS MOUNTS MACHINE NETWORK HIDDEN USERS CHANGES;

/*
 * Also refused where nothing may be written. A filter cannot see the flags of openat2. The broker
 * itself creates missing folders.
 */
static const char never_to_read[] = "openat2 mkdir mkdirat fchown ";

static int refuse_open(scmp_filter_ctx filter, const char *name, unsigned int flags, bool reads)
{
	/* O_TMPFILE without the bit of O_DIRECTORY. */
	static const uint32_t makes[] = {O_CREAT, O_TRUNC, O_TMPFILE & ~O_DIRECTORY};
	/* 3 (O_ACCMODE) is an access mode as well: for ioctl only. */
	static const uint32_t writes[] = {O_WRONLY, O_RDWR, O_ACCMODE};
	int err = 0;

	for (size_t i = 0; i < sizeof(makes) / sizeof(makes[0]) && !err; i++)
		err = add_if(filter, SCMP_ACT_ERRNO(EPERM), name,
			     SCMP_CMP64(flags, SCMP_CMP_MASKED_EQ, makes[i], makes[i]));
	for (size_t i = 0; reads && i < sizeof(writes) / sizeof(writes[0]) && !err; i++)
		err = add_if(filter, SCMP_ACT_ERRNO(EPERM), name,
			     SCMP_CMP64(flags, SCMP_CMP_MASKED_EQ, O_ACCMODE, writes[i]));
	return err;
}

static int add_refusals(scmp_filter_ctx filter, const void *ctx)
{
	const bool reads = *(const bool *)ctx;
	int err = add_names(filter, SCMP_ACT_ERRNO(EPERM), never);

	if (!err && reads)
		err = add_names(filter, SCMP_ACT_ERRNO(EPERM), never_to_read);
	if (!err)
		err = refuse_open(filter, "openat", 2, reads);
	if (!err)
		err = refuse_open(filter, "open", 1, reads);
	/* Signal 0 only asks whether a process exists. */
	if (!err)
		err = add_if(filter, SCMP_ACT_ERRNO(EPERM), "kill",
			     SCMP_CMP64(1, SCMP_CMP_NE, 0, 0));
	return err;
}

int sandbox_broker_filter_apply(bool reads)
{
	return load_filter(SCMP_ACT_ALLOW, add_refusals, &reads);
}

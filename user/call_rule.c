/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "call_rule.h"

#include <stdbool.h>
#include <string.h>

#include "syscalls.h"

/* By name, as numbers differ between architectures. What is not named here is another call. */
static const struct {
	enum cause_kind cause;
	uint16_t traits;
	const char *names; /* between spaces */
} groups[] = {
	{CAUSE_LOCK_CONTENTION, CALL_FUTEX, " futex futex_wait "},
	{CAUSE_LOCK_CONTENTION, 0, " futex_waitv futex_wake futex_requeue "},
	{CAUSE_ALLOCATION_CHURN, CALL_SPANS | CALL_STACK_NEW, " mmap "},
	{CAUSE_ALLOCATION_CHURN, CALL_STACK_NEW, " mprotect "},
	{CAUSE_ALLOCATION_CHURN, CALL_SPANS | CALL_STACK_GONE, " munmap madvise "},
	{CAUSE_ALLOCATION_CHURN, CALL_SPANS, " mremap mlock mlock2 munlock "},
	{CAUSE_ALLOCATION_CHURN, CALL_BREAK, " brk "},
	{CAUSE_ALLOCATION_CHURN, 0,
	 " pkey_mprotect mlockall munlockall mincore mbind set_mempolicy get_mempolicy"
	 " set_mempolicy_home_node move_pages migrate_pages remap_file_pages process_madvise mseal"
	 " memfd_create memfd_secret shmget shmat shmdt shmctl "},
	{CAUSE_DRIVER_CALLS, CALL_COMMAND, " ioctl "},
	{CAUSE_FILE_IO, CALL_BY_FILE | CALL_MOVES,
	 " read pread64 readv preadv preadv2 sendfile splice tee copy_file_range "},
	{CAUSE_FILE_IO, CALL_BY_FILE | CALL_MOVES | CALL_WRITES,
	 " write pwrite64 writev pwritev pwritev2 vmsplice "},
	{CAUSE_FILE_IO, CALL_BY_FILE, " close fstat fcntl "},
	{CAUSE_FILE_IO, 0,
	 " open openat openat2 creat close_range stat lstat newfstatat statx access faccessat"
	 " faccessat2 lseek fsync fdatasync sync syncfs sync_file_range msync fallocate truncate"
	 " ftruncate fadvise64 readahead cachestat flock getdents getdents64 statfs fstatfs"
	 " readlink readlinkat rename renameat renameat2 link linkat symlink symlinkat unlink"
	 " unlinkat mkdir mkdirat rmdir mknod mknodat chmod fchmod fchmodat fchmodat2 chown fchown"
	 " lchown fchownat utime utimes futimesat utimensat getcwd chdir fchdir getxattr lgetxattr"
	 " fgetxattr setxattr lsetxattr fsetxattr listxattr llistxattr flistxattr removexattr"
	 " lremovexattr fremovexattr io_submit io_getevents io_pgetevents "},
	{CAUSE_SOCKET_IO, CALL_MOVES, " recvfrom recvmsg "},
	{CAUSE_SOCKET_IO, CALL_MOVES | CALL_WRITES, " sendto sendmsg "},
	{CAUSE_SOCKET_IO, 0,
	 " recvmmsg sendmmsg socket socketpair bind listen accept accept4 connect shutdown"
	 " getsockname getpeername getsockopt setsockopt "},
	{CAUSE_THREAD_CHURN, CALL_MAKES_THREAD, " clone clone3 fork vfork "},
	{CAUSE_THREAD_CHURN, 0, " exit exit_group wait4 waitid "},
	{CAUSE_SIGNAL_STORM, CALL_SIGNAL, " rt_sigreturn "},
	{CAUSE_SIGNAL_STORM, 0,
	 " kill tkill tgkill rt_sigaction rt_sigprocmask rt_sigpending rt_sigqueueinfo"
	 " rt_tgsigqueueinfo sigaltstack pidfd_send_signal "},
	{CAUSE_SLEEP, 0,
	 " poll ppoll select pselect6 epoll_wait epoll_wait_old epoll_pwait epoll_pwait2 nanosleep"
	 " clock_nanosleep pause sched_yield rt_sigsuspend rt_sigtimedwait restart_syscall "},
};

static bool holds(const char *names, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = strstr(names, name); at; at = strstr(at + 1, name)) {
		if (at > names && at[-1] == ' ' && at[length] == ' ')
			return true;
	}
	return false;
}

static struct call_rule find_rule(enum fbt_arch arch, uint32_t nr)
{
	const char *name = syscall_name(arch, nr);
	struct call_rule rule = {.cause = CAUSE_OTHER_CALLS,
				 .category = (uint8_t)syscall_category(arch, nr)};

	for (size_t i = 0; name && i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (!holds(groups[i].names, name))
			continue;
		rule.cause = (uint8_t)groups[i].cause;
		rule.traits = groups[i].traits;
		break;
	}
	return rule;
}

const struct call_rule *call_rules(enum fbt_arch arch)
{
	/* Constants, but too many names to look one up at each call. */
	static struct call_rule tables[FBT_ARCH_ARM64 + 1][FBT_NR_COUNT];
	static bool made[FBT_ARCH_ARM64 + 1];
	/* Of an architecture that is not known no call has a name: the first table. */
	int which = arch == FBT_ARCH_X86_64 || arch == FBT_ARCH_ARM64 ? (int)arch : 0;

	for (uint32_t nr = 0; !made[which] && nr < FBT_NR_COUNT; nr++)
		tables[which][nr] = find_rule(arch, nr);
	made[which] = true;
	return tables[which];
}

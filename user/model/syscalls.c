/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "model/syscalls.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "model/syscall_tables.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

_Static_assert(ARRAY_SIZE(x86_64_names) <= COMMON_NR, "no number has two names");
_Static_assert(ARRAY_SIZE(arm64_names) <= COMMON_NR, "no number has two names");
_Static_assert(COMMON_NR + ARRAY_SIZE(common_names) < FBT_NR_COUNT,
	       "known calls have rows of their own");

enum fbt_arch syscalls_arch(void)
{
#if defined(__x86_64__)
	return FBT_ARCH_X86_64;
#elif defined(__aarch64__)
	return FBT_ARCH_ARM64;
#else
#error "no syscall table for this architecture"
#endif
}

const char *syscall_name(enum fbt_arch arch, uint32_t nr)
{
	if (arch != FBT_ARCH_X86_64 && arch != FBT_ARCH_ARM64)
		return NULL;
	if (nr >= COMMON_NR)
		return nr - COMMON_NR < ARRAY_SIZE(common_names) ? common_names[nr - COMMON_NR]
								 : NULL;
	if (arch == FBT_ARCH_X86_64)
		return nr < ARRAY_SIZE(x86_64_names) ? x86_64_names[nr] : NULL;
	return nr < ARRAY_SIZE(arm64_names) ? arm64_names[nr] : NULL;
}

const char *syscall_label(enum fbt_arch arch, uint32_t nr, char buffer[24])
{
	const char *name = syscall_name(arch, nr);

	if (name)
		return name;
	snprintf(buffer, 24, "syscall_%u", nr);
	return buffer;
}

enum fbt_category syscall_category(enum fbt_arch arch, uint32_t nr)
{
	static const struct {
		const char *name;
		enum fbt_category category;
	} rules[] = {
		{"mmap", FBT_MMAP},   {"munmap", FBT_MMAP},    {"mprotect", FBT_MMAP},
		{"brk", FBT_MMAP},    {"futex", FBT_FUTEX},    {"ioctl", FBT_IOCTL},
		{"read", FBT_READ},   {"pread64", FBT_READ},   {"readv", FBT_READ},
		{"write", FBT_WRITE}, {"pwrite64", FBT_WRITE}, {"writev", FBT_WRITE},
	};
	const char *name = syscall_name(arch, nr);

	if (!name)
		return FBT_OTHER;
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		if (!strcmp(name, rules[i].name))
			return rules[i].category;
	}
	return FBT_OTHER;
}

/*
 * Calls with a directory's descriptor and a path (openat) are not here,
 * because they use the file at the path.
 */
static const char *const takes_descriptor =
	" accept accept4 bind cachestat connect copy_file_range dup dup2 dup3 epoll_ctl epoll_pwait"
	" epoll_pwait2 epoll_wait fadvise64 fallocate fanotify_mark fchdir fchmod fchown fcntl"
	" fdatasync fgetxattr flistxattr flock fremovexattr fsetxattr fstat fstatfs fsync ftruncate"
	" getdents getdents64 getpeername getsockname getsockopt inotify_add_watch inotify_rm_watch"
	" ioctl listen lseek mq_getsetattr mq_notify mq_timedreceive mq_timedsend pidfd_getfd"
	" pidfd_send_signal pread64 preadv preadv2 process_madvise process_mrelease pwrite64"
	" pwritev pwritev2 read readahead readv recvfrom recvmmsg recvmsg sendfile sendmmsg "
	"sendmsg sendto"
	" setns setsockopt shutdown splice sync_file_range syncfs tee timerfd_gettime"
	" timerfd_settime vmsplice write writev ";

static const char *const returns_descriptor =
	" accept accept4 creat dup dup2 dup3 epoll_create epoll_create1 eventfd eventfd2"
	" fanotify_init fsopen inotify_init inotify_init1 io_uring_setup landlock_create_ruleset"
	" memfd_create memfd_secret mq_open open open_by_handle_at open_tree openat openat2"
	" perf_event_open pidfd_getfd pidfd_open signalfd signalfd4 socket timerfd_create"
	" userfaultfd ";

uint32_t syscall_descriptors(enum fbt_arch arch, uint32_t nr)
{
	const char *name = syscall_name(arch, nr);
	uint32_t found = 0;

	if (!name)
		return 0;
	if (!strcmp(name, "close"))
		return FBT_FD_FIRST | FBT_FD_CLOSED;
	if (!strcmp(name, "io_uring_enter"))
		return FBT_FD_FIRST | FBT_FD_RING;
	if (text_list_has(takes_descriptor, ' ', name))
		found |= FBT_FD_FIRST;
	if (!strcmp(name, "ioctl"))
		found |= FBT_FD_DRIVER;
	if (text_list_has(returns_descriptor, ' ', name))
		found |= FBT_FD_MADE;
	if (text_list_has(" write writev sendto sendmsg sendmmsg ", ' ', name))
		found |= FBT_FD_WRITES;
	if (text_list_has(" read readv recvfrom recvmsg recvmmsg ", ' ', name))
		found |= FBT_FD_READS;
	if (text_list_has(" poll ppoll ", ' ', name))
		found |= FBT_FD_POLLS;
	if (text_list_has(" epoll_wait epoll_pwait epoll_pwait2 ", ' ', name))
		found |= FBT_FD_EPOLLS;
	return found;
}

uint16_t syscall_traits(enum fbt_arch arch, uint32_t nr)
{
	uint32_t traits = (uint32_t)syscall_category(arch, nr) << FBT_CATEGORY_SHIFT;
	const char *name = syscall_name(arch, nr);

	traits |= syscall_descriptors(arch, nr);
	if (name && !strcmp(name, "futex"))
		traits |= FBT_TRAIT_FUTEX;
	if (name && !strcmp(name, "rt_sigreturn"))
		traits |= FBT_TRAIT_SIGRETURN;
	if (name && !strcmp(name, "sched_yield"))
		traits |= FBT_TRAIT_YIELD;
	return (uint16_t)traits;
}

const char *category_name(enum fbt_category category)
{
	static const char *const names[FBT_CATEGORY_COUNT] = {
		[FBT_MMAP] = "mmap", [FBT_FUTEX] = "futex", [FBT_IOCTL] = "ioctl",
		[FBT_READ] = "read", [FBT_WRITE] = "write", [FBT_OTHER] = "other",
	};

	return (unsigned int)category < FBT_CATEGORY_COUNT ? names[category] : "other";
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/*
 * Common seccomp filters: a container's (Docker's default list for x86-64, without capabilities),
 * and filters that refuse a single call or flag.
 */
#ifndef FBT_TESTS_SECCOMP_FILTERS_H
#define FBT_TESTS_SECCOMP_FILTERS_H

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILTER_MAX 512

/* Flags of clone: CLONE_NEW*, except CLONE_NEWTIME. */
#define NAMESPACES 0x7e020000u
#define X32	   0x40000000u
#define LAST_CALL  450

struct filter {
	unsigned short count;
	struct sock_filter code[FILTER_MAX];
};

static inline void filter_add(struct filter *filter, uint16_t code, uint32_t k, uint8_t jt,
			      uint8_t jf)
{
	filter->code[filter->count++] = (struct sock_filter){code, jt, jf, k};
}

static inline void filter_load(struct filter *filter, size_t offset)
{
	filter_add(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static inline void filter_return(struct filter *filter, uint32_t action)
{
	filter_add(filter, BPF_RET | BPF_K, action, 0, 0);
}

/* If A equals value, returns the action. */
static inline void filter_if(struct filter *filter, uint32_t value, uint32_t action)
{
	filter_add(filter, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
	filter_return(filter, action);
}

static inline size_t filter_low_word(int arg)
{
	return offsetof(struct seccomp_data, args) + 8 * (size_t)arg;
}

/* Checks the arch of 64-bit programs. Afterwards A is the number of the call. */
static inline void filter_begin(struct filter *filter, uint32_t other_arch)
{
	filter->count = 0;
	filter_load(filter, offsetof(struct seccomp_data, arch));
	filter_add(filter, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	filter_return(filter, other_arch);
	filter_load(filter, offsetof(struct seccomp_data, nr));
}

/* Answers one call with this action, and allows all others. */
static inline void filter_but_one(struct filter *filter, long nr, uint32_t action)
{
	filter_begin(filter, SECCOMP_RET_KILL_PROCESS);
	filter_if(filter, (uint32_t)nr, action);
	filter_return(filter, SECCOMP_RET_ALLOW);
}

/* Answers one call with this action if a bit of the low word of an argument is set. */
static inline void filter_but_flag(struct filter *filter, long nr, int arg, uint32_t flag,
				   uint32_t action)
{
	filter_begin(filter, SECCOMP_RET_KILL_PROCESS);
	filter_add(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 3);
	filter_load(filter, filter_low_word(arg));
	filter_add(filter, BPF_JMP | BPF_JSET | BPF_K, flag, 0, 1);
	filter_return(filter, action);
	filter_return(filter, SECCOMP_RET_ALLOW);
}

#if defined(__x86_64__)

/* The calls that Docker denies, each whatever its arguments. */
static const uint16_t docker_denied[] = {
	SYS_acct,
	SYS_add_key,
	SYS_bpf,
	SYS_clock_settime,
	SYS_create_module,
	SYS_delete_module,
	SYS_finit_module,
	SYS_get_kernel_syms,
	SYS_get_mempolicy,
	SYS_init_module,
	SYS_ioperm,
	SYS_iopl,
	SYS_kexec_file_load,
	SYS_kexec_load,
	SYS_keyctl,
	SYS_lookup_dcookie,
	SYS_mbind,
	SYS_mount,
	SYS_move_pages,
	SYS_nfsservctl,
	SYS_open_by_handle_at,
	SYS_perf_event_open,
	SYS_pivot_root,
	SYS_query_module,
	SYS_quotactl,
	SYS_reboot,
	SYS_request_key,
	SYS_set_mempolicy,
	SYS_setns,
	SYS_settimeofday,
	SYS_swapon,
	SYS_swapoff,
	SYS_sysfs,
	SYS__sysctl,
	SYS_umount2,
	SYS_unshare,
	SYS_uselib,
	SYS_userfaultfd,
	SYS_ustat,
	SYS_vhangup,
	SYS_io_uring_setup,
	SYS_io_uring_enter,
	SYS_io_uring_register,
	SYS_fsopen,
	SYS_fsconfig,
	SYS_fsmount,
	SYS_fspick,
	SYS_move_mount,
	SYS_open_tree,
	SYS_migrate_pages,
	SYS_vserver,
	SYS_clone,
};

static inline bool docker_denies(long nr)
{
	for (size_t i = 0; i < sizeof(docker_denied) / sizeof(*docker_denied); i++) {
		if (docker_denied[i] == nr)
			return true;
	}
	return false;
}

/* Allows the numbers between calls that are not allowed. A is the number. */
static inline void filter_allow_ranges(struct filter *filter)
{
	long from = 0;

	for (long nr = 0; nr <= LAST_CALL; nr++) {
		if (nr < LAST_CALL && !docker_denies(nr))
			continue;
		if (nr > from) {
			filter_add(filter, BPF_JMP | BPF_JGE | BPF_K, (uint32_t)from, 0, 2);
			filter_add(filter, BPF_JMP | BPF_JGE | BPF_K, (uint32_t)nr, 1, 0);
			filter_return(filter, SECCOMP_RET_ALLOW);
		}
		from = nr + 1;
	}
}

static inline void filter_docker(struct filter *filter)
{
	const uint32_t denied = SECCOMP_RET_ERRNO | EPERM;

	filter_begin(filter, SECCOMP_RET_KILL_PROCESS);
	filter_add(filter, BPF_JMP | BPF_JGE | BPF_K, X32, 0, 1);
	filter_return(filter, denied);
	filter_if(filter, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
	/* Threads may be created, namespaces may not: both halves of the flags are tested. */
	filter_add(filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 5);
	filter_load(filter, filter_low_word(0));
	filter_add(filter, BPF_ALU | BPF_AND | BPF_K, NAMESPACES, 0, 0);
	filter_add(filter, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
	filter_return(filter, SECCOMP_RET_ALLOW);
	filter_return(filter, denied);
	/* No sockets between a virtual machine and its host. */
	filter_add(filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 4);
	filter_load(filter, filter_low_word(0));
	filter_add(filter, BPF_JMP | BPF_JEQ | BPF_K, 40, 0, 1);
	filter_return(filter, denied);
	filter_return(filter, SECCOMP_RET_ALLOW);
	filter_allow_ranges(filter);
	filter_return(filter, denied);
}

#endif

/* Installs the filter in the calling thread, for good. Returns 0, or -1 and errno. */
static inline int filter_install(const struct filter *filter)
{
	struct sock_fprog program = {.len = filter->count,
				     .filter = (struct sock_filter *)filter->code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

#endif

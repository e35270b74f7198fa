/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "confine_broker_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "confine_seccomp.h"

/* By name: what an architecture or libseccomp does not know is not refused there. */
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
#define FILES                                                                                      \
	"creat link linkat symlink symlinkat mknod mknodat unlink unlinkat rename renameat "       \
	"renameat2 rmdir truncate chmod fchmod fchmodat fchmodat2 chown lchown fchownat "          \
	"setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr "

static const char never[] = OTHERS MOUNTS MACHINE NETWORK HIDDEN USERS FILES;

/* How openat2 opens is not for a filter to see; the broker makes folders that are gone. */
static const char never_to_read[] = "openat2 mkdir mkdirat fchown ";

static int refuse_names(scmp_filter_ctx filter, const char *names)
{
	char *copy = strdup(names), *rest = NULL;
	int err = copy ? 0 : -ENOMEM;

	for (char *name = copy ? strtok_r(copy, " ", &rest) : NULL; name && !err;
	     name = strtok_r(NULL, " ", &rest)) {
		int nr = seccomp_syscall_resolve_name(name);

		if (nr >= 0)
			err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), nr, 0);
	}
	free(copy);
	return err;
}

/* If these bits of an argument, an int, are so. */
static int refuse_masked(scmp_filter_ctx filter, const char *name, unsigned int argument,
			 uint32_t mask, uint32_t value)
{
	struct scmp_arg_cmp compare = SCMP_CMP64(argument, SCMP_CMP_MASKED_EQ, mask, value);
	int nr = seccomp_syscall_resolve_name(name);

	return nr < 0 ? 0 : seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), nr, 1, &compare);
}

static int refuse_open(scmp_filter_ctx filter, const char *name, unsigned int flags, bool reads)
{
	/* Of O_TMPFILE the bit that O_DIRECTORY is not. */
	static const uint32_t makes[] = {O_CREAT, O_TRUNC, O_TMPFILE & ~O_DIRECTORY};
	/* 3 is an access mode too: that of ioctl alone. */
	static const uint32_t writes[] = {O_WRONLY, O_RDWR, O_ACCMODE};
	int err = 0;

	for (size_t i = 0; i < sizeof(makes) / sizeof(makes[0]) && !err; i++)
		err = refuse_masked(filter, name, flags, makes[i], makes[i]);
	for (size_t i = 0; reads && i < sizeof(writes) / sizeof(writes[0]) && !err; i++)
		err = refuse_masked(filter, name, flags, O_ACCMODE, writes[i]);
	return err;
}

static int fill(scmp_filter_ctx filter, const void *ctx)
{
	const bool reads = *(const bool *)ctx;
	int err = refuse_names(filter, never), nr = seccomp_syscall_resolve_name("kill");

	if (!err && reads)
		err = refuse_names(filter, never_to_read);
	if (!err)
		err = refuse_open(filter, "openat", 2, reads);
	if (!err)
		err = refuse_open(filter, "open", 1, reads);
	/* Signal 0 asks whether a process is there. */
	if (!err && nr >= 0)
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), nr, 1,
				       SCMP_CMP64(1, SCMP_CMP_NE, 0, 0));
	return err;
}

int confine_broker_filter_apply(bool reads)
{
	return confine_seccomp_load(SCMP_ACT_ALLOW, fill, &reads);
}

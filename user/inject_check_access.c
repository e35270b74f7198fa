/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_check_access.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inject_root.h"

/* Values of kernel.yama.ptrace_scope, as its documentation names them. */
#define SCOPE_CLASSIC 0
#define SCOPE_NOBODY  3

static bool has_ptrace_capability(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};

	return !syscall(SYS_capget, &header, data) &&
	       data[CAP_SYS_PTRACE / 32].effective & (1u << (CAP_SYS_PTRACE % 32));
}

/* Whether the files of /proc let us, were we allowed to trace it: its memory is its user's. */
static bool may_write(const char *path)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};
	struct stat file;

	if (stat(path, &file) || file.st_uid == geteuid())
		return true;
	return !syscall(SYS_capget, &header, data) && data[0].effective & (1u << CAP_DAC_OVERRIDE);
}

static int read_scope(void)
{
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope;

	if (!file)
		return -1;
	if (fscanf(file, "%d", &scope) != 1)
		scope = -1;
	fclose(file);
	return scope;
}

const char *inject_access_advice(int scope, bool capable)
{
	if (scope >= SCOPE_NOBODY)
		return "kernel.yama.ptrace_scope is 3: no process may be traced until the next "
		       "boot: " INJECT_INSTEAD;
	if (!capable && scope > SCOPE_CLASSIC)
		return "needs CAP_SYS_PTRACE, and kernel.yama.ptrace_scope is not 0: run as root";
	if (!capable)
		return "needs CAP_SYS_PTRACE, or to be of the same user and dumpable: run as root";
	return "a security module (SELinux, AppArmor) or a user namespace around us does not let "
	       "us: see the kernel's log";
}

int inject_check_access(struct inject_verdict *verdict, uint32_t tgid, uint32_t thread)
{
	char path[64];
	int fd, err;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/mem", tgid, thread);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	err = -errno;
	if (err == -ENOENT || err == -ESRCH) {
		inject_verdict_add(verdict, INJECT_REFUSAL, "process", "has ended");
		return -ESRCH;
	}
	if (err == -EACCES && has_ptrace_capability() && !may_write(path))
		inject_verdict_add(verdict, INJECT_REFUSAL, "access",
				   "needs CAP_DAC_OVERRIDE to write to the memory of another "
				   "user's process: grant it, or run as root");
	else if (err == -EACCES || err == -EPERM)
		inject_verdict_add(verdict, INJECT_REFUSAL, "access", "%s",
				   inject_access_advice(read_scope(), has_ptrace_capability()));
	else
		inject_verdict_add(verdict, INJECT_REFUSAL, "access", "its memory: %s",
				   strerror(-err));
	return -EPERM;
}

static bool has_own(uint32_t tgid, uint32_t thread, const char *name)
{
	struct stat ours, theirs;
	char path[80];

	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	if (stat(path, &ours))
		return false;
	snprintf(path, sizeof(path), "/proc/%u/task/%u/ns/%s", tgid, thread, name);
	return !stat(path, &theirs) && theirs.st_ino != ours.st_ino;
}

void inject_check_namespaces(struct inject_verdict *verdict, uint32_t tgid, uint32_t thread)
{
	static const char *const names[] = {"user", "pid", "mnt", "time"};
	char own[64] = "";
	size_t length = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!has_own(tgid, thread, names[i]))
			continue;
		length += (size_t)snprintf(own + length, sizeof(own) - length, "%s%s",
					   length ? ", " : "", names[i]);
	}
	if (*own)
		inject_verdict_add(verdict, INJECT_FINE, "namespaces", "its own: %s; no obstacle",
				   own);
	if (!inject_root_has_proc(tgid, thread))
		inject_verdict_add(verdict, INJECT_REFUSAL, "/proc",
				   "is not mounted where it runs (a chroot?): mount it there, "
				   "or " INJECT_INSTEAD);
}

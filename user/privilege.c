/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "log.h"
#include "privilege.h"

/* Linux 5.8; older <linux/capability.h> lack them. */
#define CAPABILITY_PERFMON 38
#define CAPABILITY_BPF	   39

/* PROC_PID_INIT_INO of the kernel: the initial PID namespace. */
#define INITIAL_PID_NAMESPACE 0xeffffffcu

static bool has_capability(const struct __user_cap_data_struct *data, unsigned int capability)
{
	return data[capability / 32].effective & (1u << (capability % 32));
}

static int check_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};
	bool bpf, perfmon;

	if (syscall(SYS_capget, &header, data)) {
		int err = -errno;

		log_err("capabilities: %s", strerror(-err));
		return err;
	}
	if (has_capability(data, CAP_SYS_ADMIN))
		return 0;
	bpf = has_capability(data, CAPABILITY_BPF);
	perfmon = has_capability(data, CAPABILITY_PERFMON);
	if (bpf && perfmon)
		return 0;
	log_err("no permission: %s%s%s missing: run with sudo, or grant CAP_BPF, CAP_PERFMON and "
		"CAP_SYS_PTRACE",
		bpf ? "" : "CAP_BPF", bpf || perfmon ? "" : " and ", perfmon ? "" : "CAP_PERFMON");
	return -EPERM;
}

static int check_kernel(void)
{
	struct utsname name;
	unsigned int major = 0, minor = 0;

	if (uname(&name) || sscanf(name.release, "%u.%u", &major, &minor) != 2)
		return 0;
	if (major < 5 || (major == 5 && minor < 15)) {
		log_err("kernel %s: needs Linux 5.15 or newer (BPF cookies of uprobes)",
			name.release);
		return -EOPNOTSUPP;
	}
	if (access("/sys/kernel/btf/vmlinux", R_OK)) {
		log_err("kernel %s: has no readable BTF (/sys/kernel/btf/vmlinux): needs a kernel "
			"built "
			"with CONFIG_DEBUG_INFO_BTF=y, and /sys mounted",
			name.release);
		return -EOPNOTSUPP;
	}
	return 0;
}

static int check_namespace(void)
{
	struct stat namespace;

	if (stat("/proc/self/ns/pid", &namespace) || namespace.st_ino == INITIAL_PID_NAMESPACE)
		return 0;
	log_err("PID namespace: not the host's, so process ids would mean other processes: run on "
		"the "
		"host, or with --pid=host (docker), hostPID: true (Kubernetes)");
	return -EPERM;
}

int privilege_check(void)
{
	int err = check_kernel();

	if (!err)
		err = check_capabilities();
	if (!err)
		err = check_namespace();
	return err;
}

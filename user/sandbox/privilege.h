/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* What this process may do and what this kernel supports, before anything is loaded. */
#ifndef FBT_SANDBOX_PRIVILEGE_H
#define FBT_SANDBOX_PRIVILEGE_H

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>

/* Linux 5.8 and 5.9; older <linux/capability.h> lack them. */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF	    39
#endif
#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif

/* The oldest kernel with BPF cookies of uprobes. */
#define PRIVILEGE_KERNEL_MAJOR 5
#define PRIVILEGE_KERNEL_MINOR 15

/* The kernel's lockdown mode, from less to more restrictive. */
enum privilege_lockdown {
	PRIVILEGE_LOCKDOWN_UNKNOWN, /* securityfs is not mounted, or there is no lockdown */
	PRIVILEGE_LOCKDOWN_NONE,
	PRIVILEGE_LOCKDOWN_INTEGRITY,
	PRIVILEGE_LOCKDOWN_CONFIDENTIALITY, /* BPF may not read kernel memory: nothing works */
};

struct privilege_state {
	uint64_t effective; /* bit n: capability n; of this thread */
	uint64_t permitted;
	uint64_t bounding;
	bool no_new_privs;

	char release[65];   /* of uname; "" if that failed */
	unsigned int major; /* of release; 0: it could not be parsed */
	unsigned int minor;
	int btf_err;		/* 0: /sys/kernel/btf/vmlinux is readable; else -errno */
	bool is_host_namespace; /* our PID namespace is the initial one, or /proc does not tell */

	int unprivileged_bpf_disabled; /* a sysctl, as are the next two: 0 to 2; -1: not readable */
	int perf_event_paranoid;       /* -1 to 4; PRIVILEGE_UNKNOWN: not readable */
	int ptrace_scope;	       /* of Yama, 0 to 3; -1: there is no Yama */
	enum privilege_lockdown lockdown;
	/* Soft limit; UINT64_MAX: none; BPF maps count against it before Linux 5.11. */
	uint64_t memlock_bytes;
};

#define PRIVILEGE_UNKNOWN 99

/* Reads what can be read. 0; or -errno, logged, if the capabilities cannot be read. */
int privilege_read(struct privilege_state *state);

/*
 * Whether a capability is effective. As in the kernel, CAP_SYS_ADMIN implies CAP_BPF, CAP_PERFMON
 * and CAP_CHECKPOINT_RESTORE.
 */
bool privilege_has(const struct privilege_state *state, unsigned int capability);

/*
 * Opens and closes a software event of this thread, as perf_event_open(2) allows them for page
 * faults and samples. 0 or -errno: -EACCES if a capability is missing, see
 * kernel.perf_event_paranoid.
 */
int privilege_try_event(void);

/* "CAP_SYS_PTRACE"; NULL: not a capability that this program uses. */
const char *privilege_name(unsigned int capability);

/* Whether this program supports the kernel release; true if the release is not known. */
bool privilege_kernel_is_new_enough(const struct privilege_state *state);

/*
 * 0 if BPF tracing can work here. Else -EPERM or -EOPNOTSUPP, with one line logged that names the
 * missing capability, BTF, kernel version or PID namespace, and what to do.
 */
int privilege_check(void);

#endif

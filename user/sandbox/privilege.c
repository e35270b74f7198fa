/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "sandbox/privilege.h"

#include <cap-ng.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/log.h"

/* The kernel's PROC_PID_INIT_INO: inode of the initial PID namespace. */
#define INITIAL_PID_NAMESPACE 0xeffffffcu

static bool is_in(uint64_t set, unsigned int capability)
{
	return set & (1ull << capability);
}

bool privilege_has(const struct privilege_state *state, unsigned int capability)
{
	if (is_in(state->effective, capability))
		return true;
	return (capability == CAP_BPF || capability == CAP_PERFMON ||
		capability == CAP_CHECKPOINT_RESTORE) &&
	       is_in(state->effective, CAP_SYS_ADMIN);
}

int privilege_try_event(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
		.exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

#define NAME(capability) [capability] = #capability

const char *privilege_name(unsigned int capability)
{
	static const char *const names[] = {NAME(CAP_CHOWN),
					    NAME(CAP_DAC_OVERRIDE),
					    NAME(CAP_DAC_READ_SEARCH),
					    NAME(CAP_FOWNER),
					    NAME(CAP_KILL),
					    NAME(CAP_SYS_PTRACE),
					    NAME(CAP_SYS_ADMIN),
					    NAME(CAP_SYS_RESOURCE),
					    NAME(CAP_PERFMON),
					    NAME(CAP_BPF),
					    NAME(CAP_CHECKPOINT_RESTORE)};

	return capability < sizeof(names) / sizeof(names[0]) ? names[capability] : NULL;
}

static int read_capabilities(struct privilege_state *state)
{
	/* After a bare clone(2), libcap-ng still has the parent's PID. */
	capng_setpid(getpid());
	capng_clear(CAPNG_SELECT_BOTH);
	if (capng_get_caps_process()) {
		log_err("capabilities: cannot be read");
		return -EPERM;
	}
	for (unsigned int i = 0; i <= CAP_LAST_CAP; i++) {
		uint64_t bit = 1ull << i;

		state->effective |= capng_have_capability(CAPNG_EFFECTIVE, i) ? bit : 0;
		state->permitted |= capng_have_capability(CAPNG_PERMITTED, i) ? bit : 0;
		state->bounding |= capng_have_capability(CAPNG_BOUNDING_SET, i) ? bit : 0;
	}
	state->no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
	return 0;
}

static int read_number(const char *path, int otherwise)
{
	FILE *file = fopen(path, "re");
	int number = otherwise;

	if (!file)
		return otherwise;
	if (fscanf(file, "%d", &number) != 1)
		number = otherwise;
	fclose(file);
	return number;
}

/*
 * The file lists all modes, with the current one in brackets: "none [integrity] confidentiality".
 */
static enum privilege_lockdown read_lockdown(void)
{
	FILE *file = fopen("/sys/kernel/security/lockdown", "re");
	enum privilege_lockdown lockdown = PRIVILEGE_LOCKDOWN_UNKNOWN;
	char text[64] = "";

	if (!file)
		return lockdown;
	if (!fgets(text, sizeof(text), file))
		lockdown = PRIVILEGE_LOCKDOWN_UNKNOWN;
	else if (strstr(text, "[none]"))
		lockdown = PRIVILEGE_LOCKDOWN_NONE;
	else if (strstr(text, "[integrity]"))
		lockdown = PRIVILEGE_LOCKDOWN_INTEGRITY;
	else if (strstr(text, "[confidentiality]"))
		lockdown = PRIVILEGE_LOCKDOWN_CONFIDENTIALITY;
	fclose(file);
	return lockdown;
}

static void read_kernel(struct privilege_state *state)
{
	struct stat namespace;
	struct rlimit limit;
	struct utsname name;

	if (!uname(&name)) {
		snprintf(state->release, sizeof(state->release), "%s", name.release);
		if (sscanf(name.release, "%u.%u", &state->major, &state->minor) != 2)
			state->major = state->minor = 0;
	}
	state->btf_err = access("/sys/kernel/btf/vmlinux", R_OK) ? -errno : 0;
	state->is_host_namespace =
		stat("/proc/self/ns/pid", &namespace) || namespace.st_ino == INITIAL_PID_NAMESPACE;
	state->unprivileged_bpf_disabled =
		read_number("/proc/sys/kernel/unprivileged_bpf_disabled", -1);
	state->perf_event_paranoid =
		read_number("/proc/sys/kernel/perf_event_paranoid", PRIVILEGE_UNKNOWN);
	state->ptrace_scope = read_number("/proc/sys/kernel/yama/ptrace_scope", -1);
	state->lockdown = read_lockdown();
	state->memlock_bytes = UINT64_MAX;
	if (!getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY)
		state->memlock_bytes = limit.rlim_cur;
}

int privilege_read(struct privilege_state *state)
{
	*state = (struct privilege_state){0};
	read_kernel(state);
	return read_capabilities(state);
}

bool privilege_kernel_is_new_enough(const struct privilege_state *state)
{
	if (!state->major)
		return true; /* not known */
	return state->major > PRIVILEGE_KERNEL_MAJOR ||
	       (state->major == PRIVILEGE_KERNEL_MAJOR && state->minor >= PRIVILEGE_KERNEL_MINOR);
}

static int check_kernel(const struct privilege_state *state)
{
	if (!privilege_kernel_is_new_enough(state)) {
		log_err("kernel %s: needs Linux 5.15 or newer (BPF cookies of uprobes)",
			state->release);
		return -EOPNOTSUPP;
	}
	if (state->btf_err) {
		log_err("kernel %s: has no readable BTF (/sys/kernel/btf/vmlinux): needs a kernel "
			"built with CONFIG_DEBUG_INFO_BTF=y, and /sys mounted",
			state->release);
		return -EOPNOTSUPP;
	}
	return 0;
}

static int check_capabilities(const struct privilege_state *state)
{
	bool bpf = privilege_has(state, CAP_BPF), perfmon = privilege_has(state, CAP_PERFMON);

	if (bpf && perfmon)
		return 0;
	log_err("no permission: %s%s%s missing: run with sudo, or grant CAP_BPF, CAP_PERFMON and "
		"CAP_SYS_PTRACE",
		bpf ? "" : "CAP_BPF", bpf || perfmon ? "" : " and ", perfmon ? "" : "CAP_PERFMON");
	return -EPERM;
}

static int check_namespace(const struct privilege_state *state)
{
	if (state->is_host_namespace)
		return 0;
	log_err("PID namespace: not the host's, so process ids would mean other processes: run on "
		"the host, or with --pid=host (docker), hostPID: true (Kubernetes)");
	return -EPERM;
}

int privilege_check(void)
{
	struct privilege_state state;
	int err = privilege_read(&state);

	if (!err)
		err = check_kernel(&state);
	if (!err)
		err = check_capabilities(&state);
	if (!err)
		err = check_namespace(&state);
	return err;
}

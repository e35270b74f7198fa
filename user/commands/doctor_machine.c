/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "commands/doctor_machine.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/format.h"
#include "kernel/uprobes.h"
#include "proc/status.h"

/* PROC_USER_INIT_INO of the kernel. */
#define INITIAL_USER_NAMESPACE 0xeffffffdu
#define BTF_PATH	       "/sys/kernel/btf/vmlinux"

/* Since Linux 5.11, BPF memory counts against the cgroup, before against RLIMIT_MEMLOCK. */
#define CGROUP_MAJOR 5
#define CGROUP_MINOR 11
#define MEMLOCK_MIN  (64ull << 20)

int doctor_machine_hide_pid(const char *line)
{
	const char *option = strstr(line, "hidepid=");
	char point[64];

	if (sscanf(line, "%*s %*s %*s %*s %63s", point) != 1 || strcmp(point, "/proc") != 0)
		return -1;
	if (!option)
		return 0;
	option += strlen("hidepid=");
	if (!strncmp(option, "noaccess", strlen("noaccess")))
		return 1;
	if (!strncmp(option, "invisible", strlen("invisible")))
		return 2;
	if (!strncmp(option, "ptraceable", strlen("ptraceable")))
		return 4;
	return atoi(option);
}

/* If several file systems are mounted on /proc, the last one is seen. */
static void read_proc(struct doctor_machine *machine)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t size = 0;

	machine->has_proc = file != NULL;
	while (file && getline(&line, &size, file) > 0) {
		int hide_pid = doctor_machine_hide_pid(line);

		if (hide_pid >= 0)
			machine->hide_pid = hide_pid;
	}
	free(line);
	if (file)
		fclose(file);
}

static int try_bpf(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, 4, 4, 1, NULL);

	if (fd < 0)
		return fd == -1 ? -errno : fd;
	close(fd);
	return 0;
}

void doctor_machine_read(struct doctor_machine *machine)
{
	struct thread_status status;
	struct stat file;
	struct utsname name;

	*machine = (struct doctor_machine){.is_host_users = true};
	privilege_read(&machine->privilege);
	if (!uname(&name))
		snprintf(machine->machine, sizeof(machine->machine), "%s", name.machine);
	if (!stat(BTF_PATH, &file))
		machine->btf_bytes = (uint64_t)file.st_size;
	if (!stat("/proc/self/ns/user", &file))
		machine->is_host_users = file.st_ino == INITIAL_USER_NAMESPACE;
	if (!thread_status_read(&status, (struct proc_ref){.tgid = (uint32_t)getpid()}))
		machine->seccomp = (int)status.seccomp;
	machine->bpf_err = try_bpf();
	machine->perf_err = privilege_try_event();
	if (!machine->bpf_err)
		machine->has_multi = uprobes_have_multi();
	machine->can_filter = uprobes_multi_can_filter();
	read_proc(machine);
}

static void judge_kernel(const struct doctor_machine *machine, struct findings *checks)
{
	const struct privilege_state *privilege = &machine->privilege;

	if (privilege_kernel_is_new_enough(privilege)) {
		findings_add(checks, FINDING_OK, "kernel", "Linux %s, %s", privilege->release,
			     machine->machine);
		return;
	}
	findings_add(checks, FINDING_FAIL, "kernel", "Linux %s: too old", privilege->release);
	findings_advise(checks, "use Linux 5.15 or newer (BPF cookies of uprobes)");
}

static void judge_btf(const struct doctor_machine *machine, struct findings *checks)
{
	int err = machine->privilege.btf_err;

	if (!err) {
		findings_add(checks, FINDING_OK, "BTF", BTF_PATH ", %s",
			     FORMAT_BYTES(machine->btf_bytes));
		return;
	}
	findings_add(checks, FINDING_FAIL, "BTF", BTF_PATH ": %s", strerror(-err));
	findings_advise(checks,
			"boot a kernel that is built with CONFIG_DEBUG_INFO_BTF=y; in a container, "
			"mount /sys/kernel/btf");
}

struct wanted {
	const char *name;
	unsigned int capabilities[2]; /* the second may be 0 */
	enum severity if_missing;
	const char *consequence;
};

static const struct wanted wanted[] = {
	{"tracing", {CAP_BPF, CAP_PERFMON}, FINDING_FAIL, "nothing can be traced"},
	{"other users",
	 {CAP_SYS_PTRACE},
	 FINDING_WARN,
	 "only dumpable processes of this user can be traced"},
	{"replaced files",
	 {CAP_CHECKPOINT_RESTORE},
	 FINDING_WARN,
	 "step functions in files that were deleted or replaced since the engine's start (an "
	 "upgrade) are not found"},
	{"others' GPU",
	 {CAP_DAC_READ_SEARCH},
	 FINDING_WARN,
	 "only GPU records of this user's processes can be read"},
};

/* Whether the bounding set lets us have it, CAP_SYS_ADMIN as a substitute included. */
static bool is_bound(const struct privilege_state *privilege, unsigned int capability)
{
	uint64_t bits = 1ull << capability;

	if (capability == CAP_BPF || capability == CAP_PERFMON ||
	    capability == CAP_CHECKPOINT_RESTORE)
		bits |= 1ull << CAP_SYS_ADMIN;
	return privilege->bounding & bits;
}

static void judge_capability(const struct privilege_state *privilege, const struct wanted *want,
			     struct findings *checks)
{
	char missing[64] = "", has[64] = "";
	bool can_grant = true;

	for (size_t i = 0; i < 2 && want->capabilities[i]; i++) {
		unsigned int capability = want->capabilities[i];
		char *list = privilege_has(privilege, capability) ? has : missing;
		size_t used = strlen(list);

		snprintf(list + used, sizeof(has) - used, "%s%s", used ? ", " : "",
			 privilege_name(capability));
		if (list == missing)
			can_grant = can_grant && is_bound(privilege, capability);
	}
	if (!*missing) {
		findings_add(checks, FINDING_OK, want->name, "%s", has);
		return;
	}
	findings_add(checks, want->if_missing, want->name, "%s missing: %s", missing,
		     want->consequence);
	if (can_grant)
		findings_advise(checks,
				"run with sudo, or grant %s (setcap, AmbientCapabilities= of "
				"systemd)",
				missing);
	else
		findings_advise(checks,
				"add %s to the bounding set, which withholds it: docker --cap-add, "
				"Kubernetes securityContext.capabilities.add, systemd "
				"CapabilityBoundingSet=",
				missing);
}

static void judge_lockdown(const struct privilege_state *privilege, struct findings *checks)
{
	static const char *const findings[] = {
		[PRIVILEGE_LOCKDOWN_UNKNOWN] =
			"not known: there is no /sys/kernel/security/lockdown here",
		[PRIVILEGE_LOCKDOWN_NONE] = "none",
		[PRIVILEGE_LOCKDOWN_INTEGRITY] = "integrity, which allows BPF to read",
		[PRIVILEGE_LOCKDOWN_CONFIDENTIALITY] =
			"confidentiality: BPF programs may not read the kernel's memory",
	};
	bool forbids = privilege->lockdown == PRIVILEGE_LOCKDOWN_CONFIDENTIALITY;

	findings_add(checks,
		     forbids						 ? FINDING_FAIL
		     : privilege->lockdown == PRIVILEGE_LOCKDOWN_UNKNOWN ? FINDING_NOTE
									 : FINDING_OK,
		     "lockdown", "%s", findings[privilege->lockdown]);
	if (forbids)
		findings_advise(checks, "boot with lockdown=integrity, or without lockdown=");
}

/* What refuses bpf(2), most likely first. */
static void advise_bpf(const struct doctor_machine *machine, struct findings *checks)
{
	if (machine->bpf_err == -EPERM && !privilege_has(&machine->privilege, CAP_BPF))
		findings_advise(checks,
				"grant the capabilities of tracing above "
				"(kernel.unprivileged_bpf_disabled is %d; even 0 would not be "
				"enough)",
				machine->privilege.unprivileged_bpf_disabled);
	else if (machine->seccomp > 0)
		findings_advise(checks,
				"use --security-opt seccomp=unconfined (docker, podman), or a "
				"profile that allows bpf and perf_event_open: a seccomp filter "
				"forbids it");
	else if (!machine->is_host_users)
		findings_advise(checks, "run it as root of the host: capabilities of a user "
					"namespace are not enough");
	else if (machine->bpf_err == -ENOSYS)
		findings_advise(checks, "boot a kernel that is built with CONFIG_BPF_SYSCALL=y");
	else if (machine->bpf_err == -ENOMEM)
		findings_advise(checks,
				"free some memory, or raise the memory limit of this cgroup");
	else
		findings_advise(checks, "see the kernel's log (dmesg, ausearch -m avc): a security "
					"module (SELinux, AppArmor) may forbid it");
}

static void judge_bpf(const struct doctor_machine *machine, struct findings *checks)
{
	if (!machine->bpf_err) {
		findings_add(checks, FINDING_OK, "bpf(2)", "works%s",
			     machine->seccomp == 2 ? "; the seccomp filter allows it" : "");
		return;
	}
	findings_add(checks, FINDING_FAIL, "bpf(2)", "%s", strerror(-machine->bpf_err));
	advise_bpf(machine, checks);
}

static void judge_uprobes(const struct doctor_machine *machine, struct findings *checks)
{
	if (machine->bpf_err)
		return;
	if (machine->has_multi) {
		findings_add(checks, FINDING_OK, "uprobes", "uprobe_multi links, %s",
			     machine->can_filter
				     ? "limited to one process"
				     : "which affect all processes that run the same file (from "
				       "Linux 6.10 on, only one)");
	} else if (!machine->perf_err) {
		findings_add(checks, FINDING_WARN, "uprobes",
			     "by perf_event_open(2): removing each takes about 0.1 s");
		findings_advise(checks,
				"use Linux 6.6 or newer, which removes them all at once; the "
				"results are the same");
	} else {
		findings_add(checks, FINDING_FAIL, "uprobes", "perf_event_open(2): %s",
			     strerror(-machine->perf_err));
		findings_advise(
			checks,
			"grant CAP_SYS_ADMIN, lower kernel.perf_event_paranoid (%d), allow it in "
			"the seccomp filter, or use Linux 6.6 or newer, which does not need it",
			machine->privilege.perf_event_paranoid);
	}
}

/* Where perf_event_open(2) is needed for uprobes, too, judge_uprobes tells it. */
static void judge_events(const struct doctor_machine *machine, struct findings *checks)
{
	if (!machine->perf_err || machine->bpf_err || !machine->has_multi)
		return;
	findings_add(
		checks, FINDING_WARN, "perf events",
		"perf_event_open(2): %s: page faults are not timed, and threads are not sampled",
		strerror(-machine->perf_err));
	findings_advise(checks,
			"grant CAP_SYS_ADMIN, which kernels of Debian require, lower "
			"kernel.perf_event_paranoid (%d), or allow it in the seccomp filter",
			machine->privilege.perf_event_paranoid);
}

static void judge_namespaces(const struct doctor_machine *machine, struct findings *checks)
{
	if (!machine->is_host_users) {
		findings_add(checks, FINDING_FAIL, "user namespace",
			     "not the host's: the kernel does not accept its capabilities for BPF");
		findings_advise(checks, "run it as root of the host; with docker or podman, not "
					"rootless and with --userns=host");
	}
	if (machine->privilege.is_host_namespace) {
		findings_add(checks, FINDING_OK, "PID namespace", "the host's");
		return;
	}
	findings_add(checks, FINDING_FAIL, "PID namespace",
		     "not the host's: process IDs would name other processes");
	findings_advise(checks, "run it on the host, or with --pid=host (docker), hostPID: true "
				"(Kubernetes)");
}

static void judge_memlock(const struct privilege_state *privilege, struct findings *checks)
{
	bool limits = privilege->major &&
		      (privilege->major < CGROUP_MAJOR ||
		       (privilege->major == CGROUP_MAJOR && privilege->minor < CGROUP_MINOR));
	bool low = limits && privilege->memlock_bytes < MEMLOCK_MIN;

	if (privilege->memlock_bytes == UINT64_MAX) {
		findings_add(checks, FINDING_OK, "memlock", "unlimited");
		return;
	}
	findings_add(checks, low ? FINDING_WARN : FINDING_OK, "memlock", "%s; %s",
		     FORMAT_BYTES(privilege->memlock_bytes),
		     limits ? "limits BPF memory before Linux 5.11"
			    : "does not limit BPF since Linux 5.11");
	if (low)
		findings_advise(checks, "run ulimit -l unlimited");
}

static void judge_proc(const struct doctor_machine *machine, struct findings *checks)
{
	if (!machine->has_proc) {
		findings_add(checks, FINDING_FAIL, "/proc", "is not mounted");
		findings_advise(checks, "run mount -t proc proc /proc");
	} else if (machine->hide_pid && !privilege_has(&machine->privilege, CAP_SYS_PTRACE)) {
		findings_add(checks, FINDING_WARN, "/proc",
			     "is mounted with hidepid=%d: processes of other users are hidden",
			     machine->hide_pid);
		findings_advise(checks, "run with sudo: CAP_SYS_PTRACE sees them");
	}
}

void doctor_machine_judge(const struct doctor_machine *machine, struct findings *checks)
{
	judge_kernel(machine, checks);
	judge_btf(machine, checks);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		judge_capability(&machine->privilege, &wanted[i], checks);
	judge_bpf(machine, checks);
	judge_uprobes(machine, checks);
	judge_events(machine, checks);
	judge_lockdown(&machine->privilege, checks);
	judge_memlock(&machine->privilege, checks);
	judge_namespaces(machine, checks);
	judge_proc(machine, checks);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "doctor_machine.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "report_format.h"
#include "uprobes.h"

/* PROC_USER_INIT_INO of the kernel. */
#define INITIAL_USER_NAMESPACE 0xeffffffdu
#define BTF_PATH	       "/sys/kernel/btf/vmlinux"

/* Memory of BPF counts against the cgroup from here on, before that against RLIMIT_MEMLOCK. */
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

/* Of mounts over each other the last one counts. */
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

static int read_seccomp(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	int mode = -1;

	while (file && mode < 0 && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Seccomp: %d", &mode) != 1)
			mode = -1;
	}
	if (file)
		fclose(file);
	return mode;
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
	machine->seccomp = read_seccomp();
	machine->bpf_err = try_bpf();
	machine->perf_err = syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0) < 0 ? -errno : 0;
	if (!machine->bpf_err)
		machine->has_multi = uprobes_have_multi();
	machine->can_filter = uprobes_multi_can_filter();
	read_proc(machine);
}

static void judge_kernel(const struct doctor_machine *machine, struct doctor_checks *checks)
{
	const struct privilege_state *privilege = &machine->privilege;
	char bytes[FORMAT_MAX];

	if (privilege_kernel_is_new_enough(privilege)) {
		doctor_say(checks, DOCTOR_OK, "kernel", "Linux %s, %s", privilege->release,
			   machine->machine);
	} else {
		doctor_say(checks, DOCTOR_NO, "kernel", "Linux %s: too old", privilege->release);
		doctor_advise(checks, "Linux 5.15 or newer is needed (BPF cookies of uprobes)");
	}
	if (!privilege->btf_err) {
		doctor_say(checks, DOCTOR_OK, "BTF", BTF_PATH ", %s",
			   format_bytes(bytes, machine->btf_bytes));
		return;
	}
	doctor_say(checks, DOCTOR_NO, "BTF", BTF_PATH ": %s", strerror(-privilege->btf_err));
	doctor_advise(checks,
		      "boot a kernel that is built with CONFIG_DEBUG_INFO_BTF=y; in a container "
		      "/sys/kernel/btf has to be mounted");
}

struct wanted {
	const char *name;
	unsigned int capabilities[2]; /* the second may be 0 */
	enum doctor_status otherwise;
	const char *what;
};

static const struct wanted wanted[] = {
	{"tracing", {CAP_BPF, CAP_PERFMON}, DOCTOR_NO, "without, nothing can be traced"},
	{"other users",
	 {CAP_SYS_PTRACE, 0},
	 DOCTOR_WARN,
	 "only processes of this user can be traced, and only those that may be dumped"},
	{"replaced files",
	 {CAP_CHECKPOINT_RESTORE, 0},
	 DOCTOR_WARN,
	 "step functions in files that were deleted or replaced since the engine's start (an "
	 "upgrade) are not found"},
	{"others' GPU",
	 {CAP_DAC_READ_SEARCH, 0},
	 DOCTOR_WARN,
	 "GPU records only of processes of this user"},
};

static bool is_bound(const struct privilege_state *privilege, unsigned int capability)
{
	uint64_t bits = 1ull << capability;

	if (capability == CAP_BPF || capability == CAP_PERFMON ||
	    capability == CAP_CHECKPOINT_RESTORE)
		bits |= 1ull << CAP_SYS_ADMIN;
	return privilege->bounding & bits;
}

static void judge_capability(const struct privilege_state *privilege, const struct wanted *want,
			     struct doctor_checks *checks)
{
	char missing[64] = "", has[64] = "";
	bool can_have = true;

	for (size_t i = 0; i < 2 && want->capabilities[i]; i++) {
		unsigned int capability = want->capabilities[i];
		char *list = privilege_has(privilege, capability) ? has : missing;
		size_t used = strlen(list);

		snprintf(list + used, sizeof(has) - used, "%s%s", used ? ", " : "",
			 privilege_name(capability));
		if (list == missing)
			can_have = can_have && is_bound(privilege, capability);
	}
	if (!*missing) {
		doctor_say(checks, DOCTOR_OK, want->name, "%s", has);
		return;
	}
	doctor_say(checks, want->otherwise, want->name, "%s missing: %s", missing, want->what);
	if (can_have)
		doctor_advise(checks,
			      "run with sudo, or grant %s (setcap, AmbientCapabilities= of "
			      "systemd)",
			      missing);
	else
		doctor_advise(checks,
			      "%s is withheld by what started this (the bounding set): docker "
			      "--cap-add, securityContext.capabilities.add of Kubernetes, "
			      "CapabilityBoundingSet= of systemd",
			      missing);
}

static void judge_lockdown(const struct privilege_state *privilege, struct doctor_checks *checks)
{
	switch (privilege->lockdown) {
	case PRIVILEGE_LOCKDOWN_UNKNOWN:
		doctor_say(checks, DOCTOR_OK, "lockdown",
			   "none (no /sys/kernel/security/lockdown)");
		break;
	case PRIVILEGE_LOCKDOWN_NONE:
		doctor_say(checks, DOCTOR_OK, "lockdown", "none");
		break;
	case PRIVILEGE_LOCKDOWN_INTEGRITY:
		doctor_say(checks, DOCTOR_OK, "lockdown", "integrity, which allows BPF to read");
		break;
	case PRIVILEGE_LOCKDOWN_CONFIDENTIALITY:
		doctor_say(checks, DOCTOR_NO, "lockdown",
			   "confidentiality: BPF programs may not read the kernel's memory");
		doctor_advise(checks, "boot with lockdown=integrity, or without lockdown=");
		break;
	}
}

/* Who refuses bpf(2) although we have the capabilities. */
static void judge_bpf(const struct doctor_machine *machine, struct doctor_checks *checks)
{
	bool may = privilege_has(&machine->privilege, CAP_BPF);

	if (!machine->bpf_err) {
		doctor_say(checks, DOCTOR_OK, "bpf(2)", "is answered%s",
			   machine->seccomp == 2 ? ", also by the seccomp filter" : "");
		return;
	}
	if (machine->bpf_err == -EPERM && !may) {
		doctor_say(checks, DOCTOR_NO, "bpf(2)", "%s: see tracing",
			   strerror(-machine->bpf_err));
		doctor_advise(checks,
			      "kernel.unprivileged_bpf_disabled is %d, and without "
			      "capabilities even 0 would not do",
			      machine->privilege.unprivileged_bpf_disabled);
		return;
	}
	doctor_say(checks, DOCTOR_NO, "bpf(2)", "%s", strerror(-machine->bpf_err));
	if (machine->seccomp > 0)
		doctor_advise(checks, "a seccomp filter forbids it, as docker's and podman's own "
				      "does: --security-opt seccomp=unconfined, or a profile that "
				      "allows bpf and perf_event_open");
	else if (!machine->is_host_users)
		doctor_advise(checks, "capabilities of a user namespace do not count: see user "
				      "namespace");
	else if (machine->bpf_err == -ENOSYS)
		doctor_advise(checks, "boot a kernel that is built with CONFIG_BPF_SYSCALL=y");
	else if (machine->bpf_err == -ENOMEM)
		doctor_advise(checks, "free some memory, or raise the memory limit of this cgroup");
	else
		doctor_advise(checks, "a security module (SELinux, AppArmor) may forbid it: see "
				      "the kernel's log (dmesg, ausearch -m avc)");
}

static void judge_uprobes(const struct doctor_machine *machine, struct doctor_checks *checks)
{
	int paranoid = machine->privilege.perf_event_paranoid;

	if (machine->bpf_err)
		return;
	if (machine->has_multi && machine->can_filter) {
		doctor_say(checks, DOCTOR_OK, "uprobes", "uprobe_multi links, of one process");
		return;
	}
	if (machine->has_multi) {
		doctor_say(checks, DOCTOR_OK, "uprobes",
			   "uprobe_multi links, of all processes that run the same file (of one "
			   "from Linux 6.10 on)");
		return;
	}
	if (machine->perf_err == -EFAULT) {
		doctor_say(checks, DOCTOR_WARN, "uprobes",
			   "by perf_event_open(2): each takes about 0.1 s to be removed");
		doctor_advise(checks, "Linux 6.6 or newer removes all at once; no figure changes");
		return;
	}
	doctor_say(checks, DOCTOR_NO, "uprobes", "perf_event_open(2): %s",
		   strerror(-machine->perf_err));
	doctor_advise(checks,
		      "a seccomp filter or kernel.perf_event_paranoid (%d) forbids it: allow it, "
		      "or use Linux 6.6 or newer, which does without",
		      paranoid);
}

static void judge_namespaces(const struct doctor_machine *machine, struct doctor_checks *checks)
{
	if (!machine->is_host_users) {
		doctor_say(checks, DOCTOR_NO, "user namespace",
			   "not the host's: the kernel does not accept its capabilities for BPF");
		doctor_advise(checks, "run it as root of the host; with docker and podman not "
				      "rootless, and with --userns=host");
	}
	if (machine->privilege.is_host_namespace) {
		doctor_say(checks, DOCTOR_OK, "PID namespace", "the host's");
		return;
	}
	doctor_say(checks, DOCTOR_NO, "PID namespace",
		   "not the host's: process ids would mean other processes");
	doctor_advise(checks, "run it on the host, or with --pid=host (docker), hostPID: true "
			      "(Kubernetes)");
}

static void judge_memlock(const struct privilege_state *privilege, struct doctor_checks *checks)
{
	bool counts = privilege->major &&
		      (privilege->major < CGROUP_MAJOR ||
		       (privilege->major == CGROUP_MAJOR && privilege->minor < CGROUP_MINOR));
	char bytes[FORMAT_MAX];

	format_bytes(bytes, privilege->memlock_bytes);
	if (privilege->memlock_bytes == UINT64_MAX) {
		doctor_say(checks, DOCTOR_OK, "memlock", "unlimited");
	} else if (!counts) {
		doctor_say(checks, DOCTOR_OK, "memlock",
			   "%s, which does not count for BPF since Linux 5.11", bytes);
	} else {
		doctor_say(checks, privilege->memlock_bytes < MEMLOCK_MIN ? DOCTOR_WARN : DOCTOR_OK,
			   "memlock", "%s, which BPF memory counts against before Linux 5.11",
			   bytes);
		if (privilege->memlock_bytes < MEMLOCK_MIN)
			doctor_advise(checks, "ulimit -l unlimited");
	}
}

static void judge_proc(const struct doctor_machine *machine, struct doctor_checks *checks)
{
	if (!machine->has_proc) {
		doctor_say(checks, DOCTOR_NO, "/proc", "is not mounted");
		doctor_advise(checks, "mount -t proc proc /proc");
	} else if (machine->hide_pid && !privilege_has(&machine->privilege, CAP_SYS_PTRACE)) {
		doctor_say(checks, DOCTOR_WARN, "/proc",
			   "is mounted with hidepid=%d: processes of other users are hidden",
			   machine->hide_pid);
		doctor_advise(checks, "CAP_SYS_PTRACE sees them all the same: run with sudo");
	}
}

void doctor_machine_judge(const struct doctor_machine *machine, struct doctor_checks *checks)
{
	judge_kernel(machine, checks);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		judge_capability(&machine->privilege, &wanted[i], checks);
	judge_bpf(machine, checks);
	judge_uprobes(machine, checks);
	judge_lockdown(&machine->privilege, checks);
	judge_memlock(&machine->privilege, checks);
	judge_namespaces(machine, checks);
	judge_proc(machine, checks);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Doctor's checks of kernels, capabilities and namespaces. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "commands/doctor_machine.h"
#include "doctor_fixture.h"

#define BIT(capability) (1ull << (capability))

/* Root on a new kernel. */
static struct doctor_machine good(void)
{
	struct doctor_machine machine = {
		.privilege = {.effective = UINT64_MAX,
			      .permitted = UINT64_MAX,
			      .bounding = UINT64_MAX,
			      .release = "6.12.1",
			      .major = 6,
			      .minor = 12,
			      .is_host_namespace = true,
			      .unprivileged_bpf_disabled = 2,
			      .perf_event_paranoid = 2,
			      .lockdown = PRIVILEGE_LOCKDOWN_NONE,
			      .ptrace_scope = 1,
			      .memlock_bytes = 8 << 20},
		.machine = "x86_64",
		.btf_bytes = 5 << 20,
		.is_host_users = true,
		.has_multi = true,
		.can_filter = true,
		.has_proc = true,
	};

	return machine;
}

static struct findings judge(const struct doctor_machine *machine)
{
	struct findings checks = {.tgid = 0};

	doctor_machine_judge(machine, &checks);
	assert_false(checks.incomplete);
	return checks;
}

static void a_good_machine_has_nothing_to_mend(void **state)
{
	struct doctor_machine machine = good();
	struct findings checks = judge(&machine);

	(void)state;
	assert_int_equal(findings_count(&checks, FINDING_OK), checks.items.count);
	assert_check(&checks, "kernel", FINDING_OK, "Linux 6.12.1, x86_64", NULL);
	assert_check(&checks, "tracing", FINDING_OK, "CAP_BPF, CAP_PERFMON", NULL);
	assert_check(&checks, "BTF", FINDING_OK, "5.00 MiB", NULL);
	end_checks(&checks);
}

static void an_old_kernel_does_not_do(void **state)
{
	struct doctor_machine machine = good();
	struct findings checks;

	(void)state;
	snprintf(machine.privilege.release, sizeof(machine.privilege.release), "5.10.0-28-amd64");
	machine.privilege.major = 5;
	machine.privilege.minor = 10;
	checks = judge(&machine);
	assert_check(&checks, "kernel", FINDING_FAIL, "5.10.0-28-amd64", "5.15");
	assert_check(&checks, "memlock", FINDING_WARN, "8.00 MiB", "ulimit -l");
	end_checks(&checks);
}

static void without_btf_it_does_not_work(void **state)
{
	struct doctor_machine machine = good();
	struct findings checks;

	(void)state;
	machine.privilege.btf_err = -ENOENT;
	checks = judge(&machine);
	assert_check(&checks, "BTF", FINDING_FAIL, "No such file", "CONFIG_DEBUG_INFO_BTF");
	end_checks(&checks);
}

static void each_capability_that_lacks_is_named_with_what_it_is_for(void **state)
{
	struct doctor_machine machine = good();
	struct findings checks;

	(void)state;
	machine.privilege.effective = BIT(CAP_BPF);
	machine.bpf_err = 0;
	checks = judge(&machine);
	assert_check(&checks, "tracing", FINDING_FAIL, "CAP_PERFMON missing",
		     "grant CAP_PERFMON (");
	assert_check(&checks, "other users", FINDING_WARN, "CAP_SYS_PTRACE", "sudo");
	assert_check(&checks, "replaced files", FINDING_WARN, "CAP_CHECKPOINT_RESTORE", "sudo");
	assert_check(&checks, "others' GPU", FINDING_WARN, "CAP_DAC_READ_SEARCH", "sudo");
	end_checks(&checks);
	machine.privilege.effective = 0;
	checks = judge(&machine);
	assert_check(&checks, "tracing", FINDING_FAIL, "CAP_BPF, CAP_PERFMON missing", "sudo");
	end_checks(&checks);
}

static void sys_admin_stands_for_bpf_and_perfmon(void **state)
{
	struct doctor_machine machine = good();
	struct findings checks;

	(void)state;
	machine.privilege.effective = BIT(CAP_SYS_ADMIN);
	checks = judge(&machine);
	assert_check(&checks, "tracing", FINDING_OK, "CAP_BPF", NULL);
	assert_check(&checks, "other users", FINDING_WARN, "CAP_SYS_PTRACE", "grant");
	end_checks(&checks);
}

static void in_a_container_sudo_does_not_give_what_is_withheld(void **state)
{
	struct doctor_machine machine = good();
	struct findings checks;

	(void)state;
	machine.privilege.effective = machine.privilege.bounding = BIT(CAP_CHOWN);
	machine.bpf_err = -EPERM;
	checks = judge(&machine);
	assert_check(&checks, "tracing", FINDING_FAIL, "missing", "--cap-add");
	assert_check(&checks, "other users", FINDING_WARN, "missing", "--cap-add");
	assert_check(&checks, "bpf(2)", FINDING_FAIL, "not permitted", "of tracing");
	end_checks(&checks);
}

static void who_refuses_bpf_is_told_from_the_rest(void **state)
{
	struct doctor_machine machine = good();
	struct findings checks;

	(void)state;
	machine.bpf_err = -EPERM;
	checks = judge(&machine);
	assert_check(&checks, "bpf(2)", FINDING_FAIL, "not permitted", "security module");
	assert_null(find_check(&checks, "uprobes"));
	end_checks(&checks);
	machine.seccomp = 2;
	checks = judge(&machine);
	assert_check(&checks, "bpf(2)", FINDING_FAIL, "not permitted", "seccomp");
	end_checks(&checks);
	machine.seccomp = 0;
	machine.is_host_users = false;
	checks = judge(&machine);
	assert_check(&checks, "bpf(2)", FINDING_FAIL, "not permitted", "user namespace");
	assert_check(&checks, "user namespace", FINDING_FAIL, "not the host's", "--userns=host");
	end_checks(&checks);
	machine = good();
	machine.bpf_err = -ENOSYS;
	checks = judge(&machine);
	assert_check(&checks, "bpf(2)", FINDING_FAIL, "not implemented", "CONFIG_BPF_SYSCALL");
	end_checks(&checks);
	machine.bpf_err = -ENOMEM;
	checks = judge(&machine);
	assert_check(&checks, "bpf(2)", FINDING_FAIL, "memory", "memory limit");
	end_checks(&checks);
}

static void old_uprobes_are_a_limit_and_forbidden_ones_an_obstacle(void **state)
{
	struct doctor_machine machine = good();
	struct findings checks;

	(void)state;
	machine.can_filter = false;
	checks = judge(&machine);
	assert_check(&checks, "uprobes", FINDING_OK, "6.10", NULL);
	end_checks(&checks);
	machine.has_multi = false;
	checks = judge(&machine);
	assert_check(&checks, "uprobes", FINDING_WARN, "0.1 s", "6.6");
	end_checks(&checks);
	machine.perf_err = -EACCES;
	machine.privilege.perf_event_paranoid = 4;
	checks = judge(&machine);
	assert_check(&checks, "uprobes", FINDING_FAIL, "Permission denied", "paranoid (4)");
	end_checks(&checks);
}

static void page_faults_and_samples_want_perf_events(void **state)
{
	struct doctor_machine machine = good();
	struct findings checks;

	(void)state;
	machine.perf_err = -EACCES;
	machine.privilege.perf_event_paranoid = 3;
	checks = judge(&machine);
	assert_check(&checks, "perf events", FINDING_WARN, "page faults are not timed",
		     "paranoid (3)");
	end_checks(&checks);
}

static void of_lockdown_only_confidentiality_is_in_the_way(void **state)
{
	struct doctor_machine machine = good();
	struct findings checks;

	(void)state;
	machine.privilege.lockdown = PRIVILEGE_LOCKDOWN_INTEGRITY;
	checks = judge(&machine);
	assert_check(&checks, "lockdown", FINDING_OK, "integrity", NULL);
	end_checks(&checks);
	/* As in a container, where securityfs is not mounted. */
	machine.privilege.lockdown = PRIVILEGE_LOCKDOWN_UNKNOWN;
	checks = judge(&machine);
	assert_check(&checks, "lockdown", FINDING_NOTE, "not known", NULL);
	end_checks(&checks);
	machine.privilege.lockdown = PRIVILEGE_LOCKDOWN_CONFIDENTIALITY;
	checks = judge(&machine);
	assert_check(&checks, "lockdown", FINDING_FAIL, "confidentiality", "lockdown=integrity");
	end_checks(&checks);
}

static void another_pid_namespace_is_an_obstacle(void **state)
{
	struct doctor_machine machine = good();
	struct findings checks;

	(void)state;
	machine.privilege.is_host_namespace = false;
	checks = judge(&machine);
	assert_check(&checks, "PID namespace", FINDING_FAIL, "not the host's", "hostPID");
	end_checks(&checks);
}

static void hidden_processes_matter_only_without_the_capability(void **state)
{
	struct doctor_machine machine = good();
	struct findings checks;

	(void)state;
	machine.hide_pid = 2;
	checks = judge(&machine);
	assert_null(find_check(&checks, "/proc"));
	end_checks(&checks);
	machine.privilege.effective &= ~BIT(CAP_SYS_PTRACE);
	checks = judge(&machine);
	assert_check(&checks, "/proc", FINDING_WARN, "hidepid=2", "CAP_SYS_PTRACE");
	end_checks(&checks);
	machine.has_proc = false;
	checks = judge(&machine);
	assert_check(&checks, "/proc", FINDING_FAIL, "not mounted", "mount");
	end_checks(&checks);
}

static void hidepid_is_read_of_proc_alone(void **state)
{
	(void)state;
	assert_int_equal(
		doctor_machine_hide_pid("22 27 0:20 / /proc rw,nosuid shared:5 - proc proc "
					"rw\n"),
		0);
	assert_int_equal(
		doctor_machine_hide_pid("22 27 0:20 / /proc rw - proc proc rw,hidepid=2\n"), 2);
	assert_int_equal(
		doctor_machine_hide_pid("22 27 0:20 / /proc rw - proc proc rw,hidepid=invisible\n"),
		2);
	assert_int_equal(doctor_machine_hide_pid(
				 "22 27 0:20 / /proc rw - proc proc hidepid=ptraceable,gid=5"),
			 4);
	assert_int_equal(
		doctor_machine_hide_pid("22 27 0:20 / /proc rw - proc proc rw,hidepid=noaccess\n"),
		1);
	assert_int_equal(
		doctor_machine_hide_pid("23 27 0:20 / /proc/sys rw - proc proc rw,hidepid=2\n"),
		-1);
	assert_int_equal(doctor_machine_hide_pid("23 27"), -1);
	assert_int_equal(doctor_machine_hide_pid(""), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_good_machine_has_nothing_to_mend),
		cmocka_unit_test(an_old_kernel_does_not_do),
		cmocka_unit_test(without_btf_it_does_not_work),
		cmocka_unit_test(each_capability_that_lacks_is_named_with_what_it_is_for),
		cmocka_unit_test(sys_admin_stands_for_bpf_and_perfmon),
		cmocka_unit_test(in_a_container_sudo_does_not_give_what_is_withheld),
		cmocka_unit_test(who_refuses_bpf_is_told_from_the_rest),
		cmocka_unit_test(old_uprobes_are_a_limit_and_forbidden_ones_an_obstacle),
		cmocka_unit_test(page_faults_and_samples_want_perf_events),
		cmocka_unit_test(of_lockdown_only_confidentiality_is_in_the_way),
		cmocka_unit_test(another_pid_namespace_is_an_obstacle),
		cmocka_unit_test(hidden_processes_matter_only_without_the_capability),
		cmocka_unit_test(hidepid_is_read_of_proc_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

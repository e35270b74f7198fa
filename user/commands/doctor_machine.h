/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Whether this kernel, and what it permits us, is enough to trace. */
#ifndef FBT_COMMANDS_DOCTOR_MACHINE_H
#define FBT_COMMANDS_DOCTOR_MACHINE_H

#include "base/findings.h"
#include "sandbox/privilege.h"

struct doctor_machine {
	struct privilege_state privilege;
	char machine[65]; /* of uname(2): "x86_64" */
	uint64_t btf_bytes;
	bool is_host_users; /* in the initial user namespace; true also if /proc does not tell */
	int seccomp;	    /* of /proc/self/status: 0 none or unknown, 1 strict, 2 filter */
	int bpf_err;	    /* of creating a map of 4 bytes: 0, or -errno of bpf(2) */
	int perf_err;	    /* of privilege_try_event */
	bool has_multi;	    /* uprobe_multi links; not tried if bpf_err is set */
	bool can_filter;    /* uprobe_multi links can be limited to one process */
	bool has_proc;	    /* /proc is mounted */
	int hide_pid;	    /* of /proc: 0, 1, 2 or 4 */
};

/* Leaves what cannot be read as unknown. Changes nothing. */
void doctor_machine_read(struct doctor_machine *machine);

/* Pure. */
void doctor_machine_judge(const struct doctor_machine *machine, struct findings *checks);

/* hidepid= (proc(5)) in a line of /proc/self/mountinfo; -1 if the line is not about /proc. */
int doctor_machine_hide_pid(const char *line);

#endif

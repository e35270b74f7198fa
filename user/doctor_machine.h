/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
/* Whether this kernel, and what it lets us do, is enough: facts first, then what they mean. */
#ifndef FBT_DOCTOR_MACHINE_H
#define FBT_DOCTOR_MACHINE_H

#include "doctor_check.h"
#include "privilege.h"

struct doctor_machine {
	struct privilege_state privilege;
	char machine[65]; /* of uname: "x86_64" */
	uint64_t btf_bytes;
	bool is_host_users; /* the initial user namespace; also where /proc does not tell */
	int seccomp;	    /* of /proc/self/status: 0 none, 1 strict, 2 filter; -1: not known */
	int bpf_err;	    /* of a map of 4 bytes: 0, or -errno of bpf(2) */
	int perf_err;	 /* of perf_event_open(2) without arguments: -EFAULT is as it should be */
	bool has_multi;	 /* uprobe_multi links; not asked where bpf_err is set */
	bool can_filter; /* … of one process */
	bool has_proc;	 /* /proc is mounted */
	int hide_pid;	 /* of /proc: 0 to 2, 4 */
};

/* What cannot be read is left as not known. Changes nothing. */
void doctor_machine_read(struct doctor_machine *machine);

/* Pure. */
void doctor_machine_judge(const struct doctor_machine *machine, struct doctor_checks *checks);

/* The hidepid= of a line of /proc/self/mountinfo that is about /proc (proc(5)); -1: another line.
 */
int doctor_machine_hide_pid(const char *line);

#endif

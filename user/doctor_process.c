/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "doctor_process.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpu_tids.h"
#include "maps.h"
#include "privilege.h"
#include "processes.h"

#define DELETED " (deleted)"

void doctor_process_comm(uint32_t tgid, char comm[DOCTOR_COMM_MAX])
{
	char path[64];
	FILE *file;

	*comm = '\0';
	snprintf(path, sizeof(path), "/proc/%u/comm", tgid);
	file = fopen(path, "re");
	if (!file)
		return;
	if (!fgets(comm, DOCTOR_COMM_MAX, file))
		*comm = '\0';
	fclose(file);
	comm[strlen(comm) - (*comm && comm[strlen(comm) - 1] == '\n')] = '\0';
}

static void read_exe(struct doctor_process *process)
{
	size_t cut = strlen(DELETED), size;
	char path[64];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%u/exe", process->tgid);
	length = readlink(path, process->exe, sizeof(process->exe) - 1);
	size = length > 0 ? (size_t)length : 0;
	process->exe[size] = '\0';
	process->replaced = size > cut && !strcmp(process->exe + size - cut, DELETED);
	if (process->replaced)
		process->exe[size - cut] = '\0';
}

static void read_status(struct doctor_process *process, uint32_t thread)
{
	uint32_t outer, inner, depth;
	char path[64], line[512];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/status", process->tgid, thread);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "TracerPid: %" SCNu32, &process->tracer) == 1 ||
		    sscanf(line, "Uid: %" SCNu32, &process->uid) == 1)
			continue;
		if (gpu_tids_parse(line, &outer, &inner, &depth) && depth > 1)
			process->inner_pid = inner;
	}
	if (file)
		fclose(file);
	if (process->tracer)
		doctor_process_comm(process->tracer, process->tracer_comm);
}

void doctor_process_read(struct doctor_process *process, uint32_t tgid)
{
	uint32_t thread = processes_living_thread(tgid);
	struct thread_stat stat;
	struct privilege_state privilege;
	mapping_vec maps = {0};

	*process = (struct doctor_process){.tgid = tgid, .own_uid = geteuid()};
	process->may_trace =
		!privilege_read(&privilege) && privilege_has(&privilege, CAP_SYS_PTRACE);
	doctor_listen(&process->words);
	process->err = maps_read(thread, &maps);
	doctor_listen_end();
	maps_free(&maps);
	if (process->err)
		return;
	doctor_process_comm(tgid, process->comm);
	read_exe(process);
	read_status(process, thread);
	process->threads = processes_count_threads(tgid);
	if (!thread_stat_read(&stat, tgid, thread))
		process->state = stat.state;
}

static void advise_access(const struct doctor_process *process, struct doctor_checks *checks)
{
	if (process->err == -ESRCH)
		doctor_advise(checks, "ferrum-bpftrace doctor, without a number, names the engines "
				      "that run here");
	else if (process->err == -EPERM && process->may_trace)
		doctor_advise(
			checks,
			"a security module (SELinux, AppArmor) does not let us, or it is in a "
			"user namespace above ours: see the kernel's log, and run on the host");
	else if (process->err == -EPERM)
		doctor_advise(checks, "run with sudo, or grant CAP_SYS_PTRACE");
	else if (process->err == -EINVAL)
		doctor_advise(checks, "name the process, not one of its threads");
}

static void judge_state(const struct doctor_process *process, struct doctor_checks *checks)
{
	if (process->tracer) {
		doctor_say(checks, DOCTOR_WARN, "state",
			   "is traced by process %" PRIu32 " (%s): its calls may be slow, or stop",
			   process->tracer, process->tracer_comm);
		doctor_advise(checks, "end strace or gdb first: what it costs is in all figures");
	} else if (process->state == 'T' || process->state == 't') {
		doctor_say(checks, DOCTOR_WARN, "state",
			   "is stopped: it makes no steps until it goes on");
		doctor_advise(checks, "kill -CONT %" PRIu32, process->tgid);
	}
}

void doctor_process_judge(const struct doctor_process *process, struct doctor_checks *checks)
{
	if (process->err == -EPERM) {
		doctor_say(checks, DOCTOR_NO, "process", "its memory map may not be read");
		advise_access(process, checks);
		return;
	}
	if (process->err) {
		doctor_say(checks, DOCTOR_NO, "process", "%s",
			   doctor_words_text(&process->words, process->tgid, process->err));
		advise_access(process, checks);
		return;
	}
	doctor_say(checks, DOCTOR_OK, "process",
		   "%s, user %" PRIu32 "%s, %" PRIu32 " thread%s, %s%s", process->comm,
		   process->uid, process->uid == process->own_uid ? " (as we)" : "",
		   process->threads, process->threads == 1 ? "" : "s",
		   *process->exe ? process->exe : "a program that may not be seen",
		   process->replaced ? " (replaced since it was started)" : "");
	judge_state(process, checks);
	if (process->inner_pid)
		doctor_say(checks, DOCTOR_OK, "container",
			   "has PID %" PRIu32 " in a PID namespace of its own; named here by the "
			   "host's number",
			   process->inner_pid);
}

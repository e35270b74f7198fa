/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject_check_state.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inject_cgroup.h"
#include "inject_status.h"
#include "processes.h"

/* PF_KTHREAD of the kernel. */
#define KERNEL_THREAD 0x00200000u

/* Signal 32: glibc sets its handler when pthread_cancel is called for the first time. */
#define CANCEL_BIT 0x80000000u

/* Of all threads. */
struct threads {
	uint32_t tracer;
	uint32_t traced;
	uint32_t stopped;
	uint32_t strict;
	uint32_t filtered;
	uint32_t count;
	bool no_new_privs;
	bool shadow_stack;
	bool cancel;
};

int inject_check_process(struct inject_verdict *verdict, uint32_t tgid, uint32_t thread)
{
	struct thread_stat stat = {0};
	struct inject_status status;

	if (thread_stat_read(&stat, tgid, thread) || inject_status_read(&status, tgid, thread)) {
		inject_verdict_add(verdict, INJECT_REFUSAL, "process", "there is none");
		return -ESRCH;
	}
	if (status.tgid != tgid)
		inject_verdict_add(verdict, INJECT_REFUSAL, "process",
				   "is a thread of process %u: name that one", status.tgid);
	else if (stat.flags & KERNEL_THREAD)
		inject_verdict_add(verdict, INJECT_REFUSAL, "process",
				   "is a kernel thread: name a user process");
	else if (tgid == (uint32_t)getpid())
		inject_verdict_add(verdict, INJECT_REFUSAL, "process", "is this program itself");
	if (stat.state == 'Z' || stat.state == 'X') {
		inject_verdict_add(verdict, INJECT_REFUSAL, "process", "has ended");
		return -ESRCH;
	}
	return 0;
}

static void add_thread(struct threads *threads, const struct inject_status *status)
{
	threads->count++;
	threads->stopped += status->state == 'T';
	/* A tracer that is out of sight has the number 0. */
	threads->traced += status->tracer || status->state == 't';
	if (status->tracer)
		threads->tracer = status->tracer;
	threads->strict += status->seccomp == SECCOMP_MODE_STRICT;
	threads->filtered += status->seccomp == SECCOMP_MODE_FILTER;
	threads->no_new_privs |= status->no_new_privs;
	threads->shadow_stack |= status->shadow_stack;
	threads->cancel |= (status->caught & CANCEL_BIT) != 0;
}

static void add_threads(struct threads *threads, uint32_t tgid)
{
	struct inject_status status;
	struct dirent *entry;
	char path[32];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%u/task", tgid);
	folder = opendir(path);
	while (folder && (entry = readdir(folder))) {
		if (isdigit((unsigned char)entry->d_name[0]) &&
		    !inject_status_read(&status, tgid, (uint32_t)strtoul(entry->d_name, NULL, 10)))
			add_thread(threads, &status);
	}
	if (folder)
		closedir(folder);
}

static void name_process(char *name, size_t size, uint32_t tgid)
{
	char path[32];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/comm", tgid);
	file = fopen(path, "re");
	if (!file || !fgets(name, (int)size, file))
		snprintf(name, size, "?");
	if (file)
		fclose(file);
	name[strcspn(name, "\n")] = '\0';
}

static void check_tracer(struct inject_verdict *verdict, const struct threads *threads)
{
	char name[32];

	if (!threads->traced)
		return;
	name_process(name, sizeof(name), threads->tracer);
	if (threads->tracer)
		inject_verdict_add(verdict, INJECT_REFUSAL, "tracer",
				   "process %u (%s) traces it, and there can be only one: end that "
				   "first",
				   threads->tracer, name);
	else
		inject_verdict_add(verdict, INJECT_REFUSAL, "tracer",
				   "a debugger has stopped it: end that first");
}

static void check_seccomp(struct inject_verdict *verdict, const struct threads *threads)
{
	if (threads->strict)
		inject_verdict_add(
			verdict, INJECT_REFUSAL, "seccomp",
			"strict mode, which kills for any call of ours: " INJECT_INSTEAD);
	else if (threads->filtered)
		inject_verdict_add(verdict, INJECT_FINE, "seccomp",
				   "filters on %u of %u threads: they are asked while a thread is "
				   "stopped",
				   threads->filtered, threads->count);
	if (threads->no_new_privs)
		inject_verdict_add(verdict, INJECT_FINE, "privileges",
				   "NoNewPrivs is set, which is no obstacle");
}

void inject_check_state(struct inject_verdict *verdict, uint32_t tgid, uint32_t thread)
{
	struct threads threads = {0};

	add_threads(&threads, tgid);
	check_tracer(verdict, &threads);
	if (threads.stopped && !threads.traced)
		inject_verdict_add(verdict, INJECT_REFUSAL, "state",
				   "stopped (SIGSTOP, or Ctrl-Z): continue it (kill -CONT %u)",
				   tgid);
	if (inject_cgroup_is_frozen(tgid, thread))
		inject_verdict_add(verdict, INJECT_REFUSAL, "state",
				   "its cgroup is frozen, or being so: thaw it (docker unpause)");
	check_seccomp(verdict, &threads);
	if (threads.cancel)
		inject_verdict_add(verdict, INJECT_REFUSAL, "pthread_cancel",
				   "it cancels threads; one that is cancelled on its way could "
				   "stay for ever: " INJECT_INSTEAD);
	if (threads.shadow_stack)
		inject_verdict_add(verdict, INJECT_FINE, "shadow stack",
				   "in use: it is not touched");
}

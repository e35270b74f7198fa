/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject/check.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fbt_gpu.h"
#include "fbt_python.h"
#include "inject/check_program.h"
#include "inject/place.h"
#include "inject/python_use.h"
#include "proc/maps.h"
#include "proc/process.h"
#include "proc/status.h"
#include "elf/elf_file.h"
#include "sandbox/privilege.h"

/*
 * Bit of SIGCANCEL (32) in SigCgt: glibc installs its handler when pthread_cancel is first called.
 */
#define CANCEL_BIT 0x80000000u

/* At threads whose tracers end one after the other. */
#define LOOKS 10

/* Sums over all threads of the process. */
struct threads {
	uint32_t tracer;
	char tracer_name[32];
	uint32_t traced;
	uint32_t stopped;
	uint32_t strict;
	uint32_t filtered;
	uint32_t count;
	bool no_new_privs;
	bool shadow_stack;
	bool cancel;
};

static int check_process(struct inject_verdict *verdict, struct proc_ref process)
{
	struct thread_stat stat = {0};
	struct thread_status status;

	if (thread_stat_read(&stat, process) || thread_status_read(&status, process)) {
		inject_refuse(verdict, "process", "there is none");
		return -ESRCH;
	}
	if (status.tgid != process.tgid)
		inject_refuse(verdict, "process", "is a thread of process %u: use that pid",
			      status.tgid);
	else if (stat.flags & THREAD_KERNEL)
		inject_refuse(verdict, "process",
			      "is a kernel thread: use the pid of a user process");
	else if (process.tgid == (uint32_t)getpid())
		inject_refuse(verdict, "process", "is this program itself");
	if (stat.state == 'Z' || stat.state == 'X') {
		inject_refuse(verdict, "process", "has ended");
		return -ESRCH;
	}
	return 0;
}

static void add_thread(struct threads *threads, const struct thread_status *status)
{
	threads->count++;
	threads->stopped += status->state == 'T';
	/* A tracer in another PID namespace is shown as 0, so the state 't' counts too. */
	threads->traced += status->tracer || status->state == 't';
	if (status->tracer)
		threads->tracer = status->tracer;
	threads->strict += status->seccomp == SECCOMP_MODE_STRICT;
	threads->filtered += status->seccomp == SECCOMP_MODE_FILTER;
	threads->no_new_privs |= status->no_new_privs;
	threads->shadow_stack |= status->shadow_stack;
	threads->cancel |= (status->caught & CANCEL_BIT) != 0;
}

static void read_threads(struct threads *threads, uint32_t tgid)
{
	struct thread_status status;
	pid_vec tids = {0};

	*threads = (struct threads){0};
	threads_list(tgid, &tids);
	vec_for_each (tid, &tids) {
		if (!thread_status_read(&status, (struct proc_ref){tgid, *tid}))
			add_thread(threads, &status);
	}
	vec_free(&tids);
}

/* Looks again if the tracer has ended meanwhile: it traces no more. */
static void look_at_threads(struct threads *threads, uint32_t tgid)
{
	for (int look = 0; look < LOOKS; look++) {
		read_threads(threads, tgid);
		if (!threads->tracer ||
		    proc_comm((struct proc_ref){.tgid = threads->tracer}, threads->tracer_name,
			      sizeof(threads->tracer_name)))
			return;
	}
	strcpy(threads->tracer_name, "?");
}

static void check_tracer(struct inject_verdict *verdict, const struct threads *threads)
{
	if (!threads->traced)
		return;
	if (threads->tracer)
		inject_refuse(verdict, "tracer",
			      "process %u (%s) already traces it: stop that one first",
			      threads->tracer, threads->tracer_name);
	else
		inject_refuse(verdict, "tracer",
			      "a debugger has stopped it: end the debugger first");
}

static void check_seccomp(struct inject_verdict *verdict, const struct threads *threads)
{
	if (threads->strict)
		inject_refuse(verdict, "seccomp",
			      "strict mode, in which any new call kills it: " INJECT_INSTEAD);
	else if (threads->filtered)
		inject_fine(verdict, "seccomp",
			    "filters on %u of %u threads: checked while a thread is stopped",
			    threads->filtered, threads->count);
	if (threads->no_new_privs)
		inject_fine(verdict, "privileges", "NoNewPrivs is set: no obstacle");
}

static void check_state(struct inject_verdict *verdict, struct proc_ref process)
{
	struct threads threads;

	look_at_threads(&threads, process.tgid);
	check_tracer(verdict, &threads);
	if (threads.stopped && !threads.traced)
		inject_refuse(verdict, "state",
			      "stopped (SIGSTOP, or Ctrl-Z): continue it (kill -CONT %u)",
			      process.tgid);
	if (cgroup_is_frozen(process))
		inject_refuse(verdict, "state", "its cgroup is frozen: thaw it (docker unpause)");
	check_seccomp(verdict, &threads);
	if (threads.cancel)
		inject_refuse(verdict, "pthread_cancel",
			      "the program cancels threads, and a thread cancelled on its way "
			      "through the stub could hang: " INJECT_INSTEAD);
	if (threads.shadow_stack)
		inject_fine(verdict, "shadow stack", "in use: not touched");
}

/* Descriptors: two memfds, and the one that dlopen opens. */
#define FILES_NEEDED 3

/*
 * Address space: the stacks of the helper and of the shim's thread (8 MiB if pthread_create fails
 * with 512 KiB), the library, its heap.
 */
#define KIB_NEEDED 16384

#define INSTEAD "raise it (prlimit), or " INJECT_INSTEAD

static uint64_t count_files(struct proc_ref process)
{
	uint64_t count = 0;
	struct dirent *entry;
	char path[PROC_PATH_MAX];
	DIR *folder;

	proc_path(path, process, "fd");
	folder = opendir(path);
	while (folder && (entry = readdir(folder)))
		count += entry->d_name[0] != '.';
	if (folder)
		closedir(folder);
	return count;
}

static void check_files(struct inject_verdict *verdict, struct proc_ref process)
{
	uint64_t limit = limit_read(process, "Max open files");
	uint64_t count = limit == LIMIT_NONE ? 0 : count_files(process);

	if (limit < FILES_NEEDED || limit - FILES_NEEDED < count)
		inject_refuse(verdict, "limits",
			      "RLIMIT_NOFILE: %" PRIu64 " of %" PRIu64
			      " descriptors are open, and %d more are needed: " INSTEAD,
			      count, limit, FILES_NEEDED);
}

static void check_memory(struct inject_verdict *verdict, const char *name, uint64_t limit,
			 uint64_t used_kib)
{
	if (limit != LIMIT_NONE &&
	    (limit / 1024 < KIB_NEEDED || limit / 1024 - KIB_NEEDED < used_kib))
		inject_refuse(verdict, "limits",
			      "%s: %" PRIu64 " of %" PRIu64 " MiB are used: " INSTEAD, name,
			      used_kib / 1024, limit >> 20);
}

/* The limit applies to memfds as well. A write beyond it raises SIGXFSZ. */
static void check_file_size(struct inject_verdict *verdict, struct proc_ref process,
			    enum inject_purpose purpose)
{
	uint64_t limit = limit_read(process, "Max file size");
	uint64_t needed = purpose == INJECT_FOR_PYTHON ? FBT_PYTHON_PAGE_BYTES
						       : FBT_GPU_HEADER_BYTES + FBT_GPU_RING_BYTES;

	if (limit < needed)
		inject_refuse(verdict, "limits",
			      "RLIMIT_FSIZE is %" PRIu64
			      " KiB, less than what the library shares: " INSTEAD,
			      limit >> 10);
}

static uint64_t count_threads_of(uint32_t uid)
{
	process_vec processes = {0};
	struct thread_status status;
	uint64_t count = 0;

	if (processes_list(&processes))
		return 0;
	vec_for_each (process, &processes) {
		if (!thread_status_read(&status, (struct proc_ref){.tgid = process->tgid}) &&
		    status.uid == uid)
			count += status.threads;
	}
	vec_free(&processes);
	return count;
}

/* RLIMIT_NPROC covers all threads of the user. Root is exempt. */
static void check_threads(struct inject_verdict *verdict, struct proc_ref process, uint32_t uid)
{
	uint64_t limit = limit_read(process, "Max processes");
	uint64_t left = cgroup_threads_left(process), count = 0;

	if (uid && limit != LIMIT_NONE && processes_count_threads(0) >= limit)
		count = count_threads_of(uid);
	if (count && count >= limit)
		inject_refuse(verdict, "limits",
			      "RLIMIT_NPROC: its user has %" PRIu64 " of %" PRIu64
			      " threads, and one more is needed: " INSTEAD,
			      count, limit);
	if (!left)
		inject_refuse(verdict, "limits",
			      "pids.max of its cgroup is reached, and one more thread is needed: "
			      "raise it (docker update --pids-limit), or " INJECT_INSTEAD);
}

static void check_room(struct inject_verdict *verdict, struct proc_ref process,
		       enum inject_purpose purpose)
{
	struct thread_status status;

	if (thread_status_read(&status, process))
		return;
	check_files(verdict, process);
	check_file_size(verdict, process, purpose);
	check_memory(verdict, "RLIMIT_AS", limit_read(process, "Max address space"),
		     status.size_kib);
	check_memory(verdict, "RLIMIT_DATA", limit_read(process, "Max data size"), status.data_kib);
	check_threads(verdict, process, status.uid);
}

/*
 * The start time is that of the first thread. The addresses are read from a thread that is alive,
 * because the first thread may have exited.
 */
static int read_identity(struct proc_ref process, struct thread_stat *identity)
{
	struct thread_stat first;
	int err = thread_stat_read(&first, (struct proc_ref){.tgid = process.tgid});

	if (!err)
		err = thread_stat_read(identity, process);
	if (!err)
		identity->start_ticks = first.start_ticks;
	return err ? -ESRCH : 0;
}

static int open_target(struct inject_target *target, struct inject_verdict *verdict, uint32_t tgid)
{
	int err;

	target->process = processes_ref(tgid);
	err = check_process(verdict, target->process);
	if (err || inject_refused(verdict))
		return err;
	target->pidfd = (int)syscall(SYS_pidfd_open, tgid, 0);
	if (target->pidfd < 0) {
		err = -errno;
		inject_refuse(verdict, "process", "pidfd_open: %s", strerror(-err));
		return err;
	}
	err = read_identity(target->process, &target->identity);
	if (err)
		inject_refuse(verdict, "process", "has ended");
	return err;
}

static void check_place(struct inject_target *target, struct inject_verdict *verdict,
			const mapping_vec *maps, const struct inject_libc *libc)
{
	struct inject_place *place = &target->place;
	int err = inject_place_find(place, target->process, maps, libc->functions);

	if (!err)
		inject_fine(verdict, "stub", "%u bytes%s after the code of %s", place->size,
			    place->written ? ", already written," : "", place->file);
	else if (err == -ENOSPC)
		inject_refuse(verdict, "stub",
			      "no library has %u free bytes after its code: " INJECT_INSTEAD,
			      place->size);
	else if (err == -EEXIST)
		inject_refuse(verdict, "stub",
			      "another version of this program has left its own: use that version, "
			      "or " INJECT_INSTEAD);
	else if (err != -ENOEXEC)
		inject_refuse(verdict, "stub", "cannot read its memory: %s", strerror(-err));
}

static void refuse_libc(struct inject_verdict *verdict, const struct inject_libc *libc, int err)
{
	const char *path = libc->mapping ? libc->mapping->path : "";
	const char *version = *libc->version ? libc->version : "of unknown version";

	if (err == -ESRCH)
		inject_refuse(verdict, "libc",
			      "no libc.so.6 is mapped: the library needs a program linked with "
			      "glibc");
	else if (err == -EEXIST)
		inject_refuse(verdict, "libc",
			      "two are mapped (dlmopen, an audit library?): " INJECT_INSTEAD);
	else if (err == -ENOENT)
		inject_refuse(verdict, "libc",
			      "glibc %s (%s) has no %s: 2.34 or newer is needed: " INJECT_INSTEAD,
			      version, path, libc->missing);
	else
		inject_refuse(verdict, "libc", "%s: %s", path,
			      err == -EBADMSG ? "the file is not what is mapped"
					      : elf_file_strerror(err));
}

static void check_libc(struct inject_target *target, struct inject_verdict *verdict,
		       const mapping_vec *maps)
{
	struct inject_libc libc;
	int err = inject_libc_find(&libc, target->process.thread, maps);

	if (err) {
		refuse_libc(verdict, &libc, err);
		return;
	}
	inject_fine(verdict, "libc", "glibc%s%s (%s)", *libc.version ? " " : "", libc.version,
		    libc.mapping->path);
	check_place(target, verdict, maps, &libc);
}

static void check_all(struct inject_target *target, struct inject_verdict *verdict,
		      const mapping_vec *maps, enum inject_purpose purpose)
{
	check_state(verdict, target->process);
	inject_check_processor(verdict);
	inject_check_program(verdict, target->process, maps);
	check_libc(target, verdict, maps);
	check_room(verdict, target->process, purpose);
	inject_check_namespaces(verdict, target->process);
}

static int read_maps(const struct inject_target *target, struct inject_verdict *verdict,
		     mapping_vec *maps)
{
	int err = maps_read_all(target->process, maps);

	if (err == -ESRCH)
		inject_refuse(verdict, "process", "has ended");
	else if (err)
		inject_refuse(verdict, "access", "cannot read its memory map: %s", strerror(-err));
	return err;
}

/* The page is looked for among memfds: if that failed later, a helper would have run for nothing.
 */
static void check_memfd(struct inject_verdict *verdict)
{
	dev_t device;
	int err = memfd_device(&device);

	if (err)
		inject_refuse(verdict, "memory file", "this program cannot make one: %s",
			      strerror(-err));
}

/* Only its map leads to an injected library, whose markers are to be probed. */
static void check_map_files(struct inject_verdict *verdict)
{
	struct privilege_state privilege;

	if (!privilege_read(&privilege) && !privilege_has(&privilege, CAP_CHECKPOINT_RESTORE))
		inject_refuse(verdict, "access",
			      "needs CAP_CHECKPOINT_RESTORE to probe a library that is in memory "
			      "only: grant it, or " INJECT_INSTEAD);
}

int inject_check(struct inject_target *target, struct inject_verdict *verdict, uint32_t tgid,
		 enum inject_purpose purpose)
{
	mapping_vec maps = {0};
	int err;

	memset(target, 0, sizeof(*target));
	memset(verdict, 0, sizeof(*verdict));
	target->pidfd = -1;
	err = open_target(target, verdict, tgid);
	if (err || inject_refused(verdict))
		goto out;
	err = inject_check_access(verdict, target->process);
	if (!err)
		err = read_maps(target, verdict, &maps);
	if (err)
		goto out;
	if (purpose == INJECT_FOR_CUDA)
		inject_check_cuda(verdict, target->process, &maps);
	else if (purpose == INJECT_FOR_PYTHON)
		inject_check_python(verdict, target->process, &maps);
	if (!verdict->present) {
		check_memfd(verdict);
		if (purpose == INJECT_FOR_PYTHON)
			check_map_files(verdict);
		check_all(target, verdict, &maps, purpose);
	}
out:
	maps_free(&maps);
	return !err && inject_refused(verdict) ? -EPERM : err;
}

void inject_target_clear(struct inject_target *target)
{
	if (target->pidfd >= 0)
		close(target->pidfd);
	target->pidfd = -1;
}

bool inject_target_is_there(const struct inject_target *target)
{
	struct pollfd ended = {.fd = target->pidfd, .events = POLLIN, .revents = 0};
	const struct thread_stat *then = &target->identity;
	struct thread_stat now;

	return !poll(&ended, 1, 0) && !read_identity(processes_ref(target->process.tgid), &now) &&
	       now.start_ticks == then->start_ticks && now.start_code == then->start_code &&
	       now.start_stack == then->start_stack;
}

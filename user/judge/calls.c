/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "judge/calls.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arith.h"
#include "base/clock.h"
#include "model/gpu.h"
#include "model/syscalls.h"

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The clocks of a wake and of waits for a CPU differ by so much, and by this part of the wait. */
#define WAKE_CLOCK_NS	 (100 * NS_PER_US)
#define WAKE_CLOCK_SHARE 64
/*
 * From the wake to the end of the call, beyond the wait for a CPU: the waker is still in its call,
 * a hypervisor takes the CPU; and this part of the wait, as it makes no difference.
 */
#define WAKE_LATE_NS	NS_PER_MS
#define WAKE_LATE_SHARE 8

/* Calls from the mmap of a thread's stack to its clone: mprotect, rt_sigprocmask. */
#define STACK_DISTANCE 4

/* By name, as numbers differ between architectures. A call that is not listed is an other call. */
static const struct {
	enum cause_kind cause;
	uint16_t traits;
	const char *const *names;
} groups[] = {
	{CAUSE_LOCK_CONTENTION, CALL_FUTEX, NAMES("futex", "futex_wait")},
	{CAUSE_LOCK_CONTENTION, 0, NAMES("futex_waitv", "futex_wake", "futex_requeue")},
	{CAUSE_ALLOCATION_CHURN, CALL_SPANS | CALL_STACK_NEW, NAMES("mmap")},
	{CAUSE_ALLOCATION_CHURN, CALL_STACK_NEW, NAMES("mprotect")},
	{CAUSE_ALLOCATION_CHURN, CALL_SPANS | CALL_STACK_GONE, NAMES("munmap", "madvise")},
	{CAUSE_ALLOCATION_CHURN, CALL_SPANS, NAMES("mremap", "mlock", "mlock2", "munlock")},
	{CAUSE_ALLOCATION_CHURN, CALL_BREAK, NAMES("brk")},
	{CAUSE_ALLOCATION_CHURN, 0,
	 NAMES("get_mempolicy", "mbind", "memfd_create", "memfd_secret", "migrate_pages", "mincore",
	       "mlockall", "move_pages", "mseal", "munlockall", "pkey_mprotect", "process_madvise",
	       "remap_file_pages", "set_mempolicy", "set_mempolicy_home_node", "shmat", "shmctl",
	       "shmdt", "shmget")},
	{CAUSE_DRIVER_CALLS, CALL_COMMAND, NAMES("ioctl")},
	{CAUSE_FILE_IO, CALL_BY_FILE | CALL_MOVES | CALL_ANSWERED, NAMES("read", "readv")},
	{CAUSE_FILE_IO, CALL_BY_FILE | CALL_MOVES,
	 NAMES("pread64", "preadv", "preadv2", "sendfile", "splice", "tee", "copy_file_range")},
	{CAUSE_FILE_IO, CALL_BY_FILE | CALL_MOVES | CALL_WRITES,
	 NAMES("write", "pwrite64", "writev", "pwritev", "pwritev2", "vmsplice")},
	{CAUSE_FILE_IO, CALL_BY_FILE, NAMES("close", "fstat", "fcntl")},
	{CAUSE_FILE_IO, 0,
	 NAMES("access", "cachestat", "chdir", "chmod", "chown", "close_range", "creat",
	       "faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir", "fchmod", "fchmodat",
	       "fchmodat2", "fchown", "fchownat", "fdatasync", "fgetxattr", "flistxattr", "flock",
	       "fremovexattr", "fsetxattr", "fstatfs", "fsync", "ftruncate", "futimesat", "getcwd",
	       "getdents", "getdents64", "getxattr", "io_getevents", "io_pgetevents", "io_submit",
	       "lchown", "lgetxattr", "link", "linkat", "listxattr", "llistxattr", "lremovexattr",
	       "lseek", "lsetxattr", "lstat", "mkdir", "mkdirat", "mknod", "mknodat", "msync",
	       "newfstatat", "open", "openat", "openat2", "readahead", "readlink", "readlinkat",
	       "removexattr", "rename", "renameat", "renameat2", "rmdir", "setxattr", "stat",
	       "statfs", "statx", "symlink", "symlinkat", "sync", "sync_file_range", "syncfs",
	       "truncate", "unlink", "unlinkat", "utime", "utimensat", "utimes")},
	{CAUSE_SOCKET_IO, CALL_MOVES | CALL_ANSWERED, NAMES("recvfrom", "recvmsg")},
	{CAUSE_SOCKET_IO, CALL_ANSWERED, NAMES("recvmmsg")},
	{CAUSE_SOCKET_IO, CALL_MOVES | CALL_WRITES, NAMES("sendto", "sendmsg")},
	{CAUSE_SOCKET_IO, 0,
	 NAMES("accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt",
	       "listen", "sendmmsg", "setsockopt", "shutdown", "socket", "socketpair")},
	{CAUSE_THREAD_CHURN, CALL_MAKES_THREAD, NAMES("clone", "clone3", "fork", "vfork")},
	{CAUSE_THREAD_CHURN, 0, NAMES("exit", "exit_group", "wait4", "waitid")},
	{CAUSE_SIGNAL_STORM, CALL_SIGNAL, NAMES("rt_sigreturn")},
	{CAUSE_SIGNAL_STORM, 0,
	 NAMES("kill", "pidfd_send_signal", "rt_sigaction", "rt_sigpending", "rt_sigprocmask",
	       "rt_sigqueueinfo", "rt_tgsigqueueinfo", "sigaltstack", "tgkill", "tkill")},
	{CAUSE_SLEEP, CALL_ANSWERED,
	 NAMES("epoll_pwait", "epoll_pwait2", "epoll_wait", "poll", "ppoll")},
	{CAUSE_SLEEP, 0,
	 NAMES("clock_nanosleep", "epoll_wait_old", "nanosleep", "pause", "pselect6",
	       "restart_syscall", "rt_sigsuspend", "rt_sigtimedwait", "sched_yield", "select")},
};

static bool holds(const char *const *names, const char *name)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

static struct call_rule find_rule(enum fbt_arch arch, uint32_t nr)
{
	const char *name = syscall_name(arch, nr);
	struct call_rule rule = {.cause = CAUSE_OTHER_CALLS,
				 .category = (uint8_t)syscall_category(arch, nr)};

	for (size_t i = 0; name && i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (!holds(groups[i].names, name))
			continue;
		rule.cause = (uint8_t)groups[i].cause;
		rule.traits = groups[i].traits;
		break;
	}
	return rule;
}

/* The rules of an architecture's calls by number, FBT_NR_COUNT of them. */
static const struct call_rule *call_rules(enum fbt_arch arch)
{
	/* Made once: comparing names at each call would be too slow. */
	static struct call_rule tables[FBT_ARCH_ARM64 + 1][FBT_NR_COUNT];
	static bool made[FBT_ARCH_ARM64 + 1];
	/* The first table is for unknown architectures, where no call has a name. */
	int which = arch == FBT_ARCH_X86_64 || arch == FBT_ARCH_ARM64 ? (int)arch : 0;

	for (uint32_t nr = 0; !made[which] && nr < FBT_NR_COUNT; nr++)
		tables[which][nr] = find_rule(arch, nr);
	made[which] = true;
	return tables[which];
}

void call_walk_begin(struct call_walk *walk, const struct window *window, const struct step *step,
		     bool claims)
{
	const struct process *process = window__process(window, step->record.tgid);

	*walk = (struct call_walk){.window = window,
				   .step = step,
				   .rules = call_rules((enum fbt_arch)window->record.arch),
				   .claims = claims};
	if (process && process->python.tgid) {
		walk->gil_start = process->python.gil_start;
		walk->gil_end = process->python.gil_end;
	}
}

static const struct call_rule *rule_of(const struct call_walk *walk, const struct fbt_call *call)
{
	return &walk->rules[call->nr < FBT_NR_COUNT ? call->nr : FBT_NR_COUNT - 1];
}

static bool made_thread(const struct call_rule *rule, const struct fbt_call *call)
{
	return rule->traits & CALL_MAKES_THREAD && call->ret > 0 &&
	       !(call->header.flags & FBT_CALL_UNFINISHED);
}

/* Sockets, pipes, and what is in no file system, such as eventfds. */
static bool is_socket(const struct window *window, uint32_t id)
{
	const struct file *file = window__file(window, id);

	if (!file)
		return false;
	switch (file->record.mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFBLK:
	case S_IFCHR:
	case S_IFLNK:
		return false;
	}
	return true;
}

#define FUTEX_OPERATION	  0x7f
#define FUTEX_WAIT	  0
#define FUTEX_WAIT_BITSET 9
#define FUTEX_PRIVATE	  0x80

/* As bpf/stalls.bpf.h counts them. Wakes of the same addresses are no waits. */
static bool is_gil(const struct call_walk *walk)
{
	const struct fbt_call *call = walk->call;
	uint64_t operation = call->args[1] & FUTEX_OPERATION;

	return walk->gil_end && walk->rule->traits & CALL_FUTEX &&
	       call->header.flags & FBT_CALL_ARGS && call->args[0] >= walk->gil_start &&
	       call->args[0] < walk->gil_end &&
	       (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET);
}

static enum cause_kind find_part(struct call_walk *walk)
{
	const struct fbt_call *call = walk->call;

	if (walk->is_gil)
		return CAUSE_GIL;
	if (walk->wake && (walk->wake->flags & FBT_WAKE_ALL || walk->rule->traits & CALL_ANSWERED))
		return CAUSE_LATE_THREAD;
	if (!(walk->rule->traits & CALL_BY_FILE) || !call->file)
		return (enum cause_kind)walk->rule->cause;
	if (call->file != walk->file) {
		walk->file = call->file;
		walk->file_is_socket = is_socket(walk->window, call->file);
	}
	return walk->file_is_socket ? CAUSE_SOCKET_IO : (enum cause_kind)walk->rule->cause;
}

/* A thread is made soon after, with no other call of this number in between. */
static bool is_new_stack(const struct call_walk *walk)
{
	const call_vec *calls = &walk->step->calls;

	for (size_t i = walk->next; i < calls->count && i < walk->next + STACK_DISTANCE; i++) {
		const struct fbt_call *later = &calls->items[i];

		if (made_thread(rule_of(walk, later), later))
			return true;
		if (later->nr == walk->call->nr)
			return false;
	}
	return false;
}

static bool spend(uint32_t *credit)
{
	if (!*credit)
		return false;
	--*credit;
	return true;
}

bool call_is_shared_futex(const struct fbt_call *call)
{
	return call->header.flags & FBT_CALL_ARGS && !(call->args[1] & FUTEX_PRIVATE);
}

/*
 * Whether the call may have waited for a thread to end: that the kernel says, not a call of any
 * thread, and only to those that wait as another process would, as pthread_join of glibc does.
 */
static bool may_join(const struct call_walk *walk)
{
	const struct fbt_call *call = walk->call;

	if (!(walk->rule->traits & CALL_FUTEX) || walk->is_gil || walk->wake)
		return false;
	return call->header.flags & FBT_CALL_BLOCKED &&
	       !(call->header.flags & FBT_CALL_ARGS && call->args[1] & FUTEX_PRIVATE);
}

static bool is_claimed(struct call_walk *walk)
{
	uint16_t traits = walk->rule->traits;

	if (call_walk_made_thread(walk)) {
		walk->joins++;
		walk->stacks++;
		return true;
	}
	if (may_join(walk))
		return spend(&walk->joins);
	if (traits & CALL_STACK_GONE)
		return spend(&walk->stacks);
	return traits & CALL_STACK_NEW && is_new_stack(walk);
}

uint64_t call_walk_ns(const struct step *step, const struct fbt_call *call)
{
	const struct fbt_step *record = &step->record;
	uint64_t end_ns = add_saturating(call->start_ns, call->duration_ns), inside_ns;

	if (record->kind)
		return call_ns(call);
	inside_ns = sub_saturating(min_u64(end_ns, record->end_ns),
				   max_u64(call->start_ns, record->start_ns));
	return min_u64(inside_ns, call_ns(call));
}

static uint64_t covered_ns(struct call_walk *walk)
{
	const struct step_gpu *gpu = walk->step->gpu;
	const struct fbt_call *call = walk->call;
	struct gpu_interval time = {call->start_ns,
				    add_saturating(call->start_ns, call->duration_ns)};
	uint64_t ns;

	/* An interval has many threads, some of which always wait. */
	if (!gpu || !walk->step->record.kind)
		return 0;
	if (call->header.flags & FBT_CALL_BLOCKED)
		ns = gpu_interval_common_with(&gpu->busy, &walk->busy, time);
	else
		ns = gpu_interval_common_with(&gpu->sync_busy, &walk->sync_busy, time);
	return min_u64(ns, walk->ns);
}

/*
 * Whether that wake may have ended the wait, by the call's wait for a CPU: from the wake on the
 * thread is ready to run. One that is later only found it so. One that is much earlier was for
 * another waiter, and who ended the wait is no thread of the process. The wait for a CPU is a sum:
 * a thread that slept several times in the call, as poll may, has waited for less since the last
 * wake. Then the waker is not named either.
 */
static bool may_have_ended(const struct call_walk *walk, const struct fbt_wake *wake)
{
	const struct fbt_call *call = walk->call;
	uint64_t end_ns = add_saturating(call->start_ns, call->duration_ns);
	uint64_t left_ns = sub_saturating(end_ns, wake->wake_ns);
	uint64_t least_ns = call->delay_ns - call->delay_ns / WAKE_CLOCK_SHARE;
	uint64_t most_ns = add_saturating(call->delay_ns, WAKE_LATE_NS);

	if (call->header.flags & (FBT_CALL_RUN | FBT_CALL_UNFINISHED))
		return true;
	if (left_ns + WAKE_CLOCK_NS < least_ns)
		return false;
	/* Who had the GIL for longest is meant: others may have had it since. */
	if (walk->is_gil || walk->step->record.header.flags & FBT_STEP_SCHED_UNKNOWN)
		return true;
	return left_ns <= add_saturating(most_ns, call->duration_ns / WAKE_LATE_SHARE);
}

static const struct fbt_wake *find_wake(struct call_walk *walk)
{
	const struct fbt_wake *wake;
	const wake_vec *wakes = &walk->step->wakes;
	uint64_t start_ns = walk->call->start_ns;

	/* A wait that ended by itself, or by a signal: the wake was for another thread. */
	if (!(walk->rule->traits & (CALL_FUTEX | CALL_ANSWERED)) || walk->call->ret < 0)
		return NULL;
	if (walk->rule->traits & CALL_ANSWERED && !walk->call->ret)
		return NULL;
	while (walk->wakes < wakes->count && wakes->items[walk->wakes].start_ns < start_ns)
		walk->wakes++;
	if (walk->wakes == wakes->count || wakes->items[walk->wakes].start_ns != start_ns)
		return NULL;
	wake = &wakes->items[walk->wakes];
	return may_have_ended(walk, wake) ? wake : NULL;
}

static uint64_t split_off(struct call_walk *walk, uint64_t ns)
{
	uint64_t part_ns = min_u64(ns, walk->ns);

	walk->ns -= part_ns;
	return part_ns;
}

/* What the waker did while this thread waited. A lock is waited for whatever its holder does. */
static void split_wait(struct call_walk *walk)
{
	const struct fbt_wake *wake = walk->wake;

	walk->worker_ns = walk->delay_ns = 0;
	walk->stopped_ns = walk->fault_ns = walk->off_ns = 0;
	if (!wake || wake->flags & FBT_WAKE_LOCK || walk->is_gil)
		return;
	walk->worker_ns = split_off(walk, wake->cpu_ns);
	walk->delay_ns = split_off(walk, wake->delay_ns);
	walk->stopped_ns = split_off(walk, wake->stopped_ns);
	walk->fault_ns = split_off(walk, wake->fault_wait_ns);
	walk->off_ns = split_off(walk, wake->off_ns);
}

bool call_walk_next(struct call_walk *walk)
{
	if (walk->next >= walk->step->calls.count)
		return false;
	walk->call = &walk->step->calls.items[walk->next++];
	walk->rule = rule_of(walk, walk->call);
	walk->ns = call_walk_ns(walk->step, walk->call);
	walk->covered_ns = covered_ns(walk);
	walk->ns -= walk->covered_ns;
	walk->cpu_wait_ns = walk->step->record.kind ? min_u64(walk->call->delay_ns, walk->ns) : 0;
	walk->ns -= walk->cpu_wait_ns;
	walk->is_gil = is_gil(walk);
	walk->wake = find_wake(walk);
	split_wait(walk);
	walk->part = find_part(walk);
	walk->cause = walk->claims && is_claimed(walk) ? CAUSE_THREAD_CHURN : walk->part;
	return true;
}

bool call_walk_is_covered(const struct call_walk *walk)
{
	return walk->covered_ns || walk->worker_ns || walk->delay_ns || walk->stopped_ns ||
	       walk->fault_ns || walk->off_ns;
}

bool call_walk_made_thread(const struct call_walk *walk)
{
	return made_thread(walk->rule, walk->call);
}

bool call_walk_is_futex(const struct call_walk *walk, uint32_t nr)
{
	return nr < FBT_NR_COUNT && walk->rules[nr].traits & CALL_FUTEX;
}

static const struct {
	const char *name;
	const char *advice;
} texts[CAUSE_COUNT] = {
	[CAUSE_LOCK_CONTENTION] = {"lock_contention",
				   "find out which thread holds the lock (--detail all shows the "
				   "other threads' calls) and shorten the time it is held"},
	[CAUSE_ALLOCATION_CHURN] = {"allocation_churn",
				    "keep buffers between steps, or let the allocator keep memory "
				    "(glibc: M_TRIM_THRESHOLD, M_MMAP_THRESHOLD)"},
	[CAUSE_DRIVER_CALLS] = {"driver_calls",
				"find what calls the driver during the step: allocating, pinning "
				"or mapping device memory, or waiting for the device"},
	[CAUSE_FILE_IO] = {"file_io", "move file access out of the step: read before it, write "
				      "after it or from another thread"},
	[CAUSE_TINY_WRITES] = {"tiny_writes", "buffer the output and write it in chunks of some "
					      "KiB"},
	[CAUSE_SOCKET_IO] = {"socket_io", "let another thread use the socket or pipe: the step "
					  "waits for its other end, or for room in its buffer"},
	[CAUSE_THREAD_CHURN] = {"thread_churn",
				"use a thread pool instead of creating threads in each step"},
	[CAUSE_SIGNAL_STORM] = {"signal_storm", "find out who sends the signals (a profiler's "
						"timer?), or block them on this thread"},
	[CAUSE_SLEEP] = {"sleep", "find out what the step waits for: a poll or sleep inside a step "
				  "is latency by design, and a loop of them waits for another "
				  "thread or process"},
	[CAUSE_OTHER_CALLS] = {"other_calls", "look up the named call: this tool has no group for "
					      "it"},
	[CAUSE_LATE_THREAD] = {"late_thread",
			       "find out why the named thread comes late, to the "
			       "barrier or with its answer: either it had more to do "
			       "than usual, or it was busy with something else"},
	[CAUSE_GIL] = {"gil",
		       "find out what the named thread does in Python, or in C code that keeps "
		       "the GIL: move it to another process, make it shorter, or let its C "
		       "code release the GIL"},
	[CAUSE_RUN_QUEUE] = {"run_queue", "give the engine CPUs of its own: fewer threads or "
					  "neighbours, cpusets, a higher CPU limit"},
	[CAUSE_CPU_LIMIT] = {"cpu_limit", "raise or remove the CPU limit of its cgroup (cpu.max; "
					  "in Kubernetes resources.limits.cpu), or use no more "
					  "threads than it has CPUs"},
	[CAUSE_PAGE_FAULTS] = {"page_faults", "touch memory before the step and keep it: pre-fault "
					      "it, lock it, or use huge pages"},
	[CAUSE_MEMORY_LIMIT] = {"memory_limit",
				"raise the memory limit of its cgroup (memory.max, memory.high; in "
				"Kubernetes resources.limits.memory) above the model and all "
				"buffers, or use less memory"},
	[CAUSE_STOPPED] = {"stopped", "find out who stops the process: a debugger, a checkpoint, a "
				      "job scheduler"},
	[CAUSE_GARBAGE_COLLECTION] = {"garbage_collection",
				      "let the collector look at less, or less often: gc.freeze() "
				      "once the model is loaded, a higher gc.set_threshold(), or "
				      "gc.collect() between steps"},
	[CAUSE_OFF_CPU] = {"off_cpu", "look for a host that takes the CPU of its guest (steal in "
				      "top), short stops, and locks of the address space"},
	[CAUSE_STEAL] = {"steal", "ask for CPUs of its own for this virtual machine (dedicated or "
				  "pinned ones), or move it to a host with fewer guests"},
	[CAUSE_AWAIT] = {"await", "find out what the future waits for: use --step on the functions "
				  "that it calls, and see with -v whether the executor's threads "
				  "were busy"},
	[CAUSE_PEER_PROCESS] = {"peer_process",
				"find out what holds up the named process: who stops it, what has "
				"its CPU, or what it does; if it just has more to do, the step has "
				"to wait for it"},
	[CAUSE_GPU_TRANSFER] = {"gpu_transfer",
				"keep data on the GPU between steps, copy less at once and from "
				"pinned memory, or copy while kernels run"},
	[CAUSE_UNKNOWN] = {"unknown",
			   "trace again with --detail escalated, which tells own code from "
			   "system calls"},
	[CAUSE_COMPUTE] = {"compute", "profile the code itself: the operating system does not "
				      "explain this time"},
};

const char *cause_name(enum cause_kind kind)
{
	return (unsigned int)kind < CAUSE_COUNT ? texts[kind].name : "unknown";
}

const char *cause_words(enum cause_kind kind, char text[CAUSE_WORDS_SIZE])
{
	snprintf(text, CAUSE_WORDS_SIZE, "%s", cause_name(kind));
	for (char *at = text; *at; at++)
		if (*at == '_')
			*at = ' ';
	return text;
}

const char *cause_advice(enum cause_kind kind)
{
	return (unsigned int)kind < CAUSE_COUNT ? texts[kind].advice : "";
}

const char *cause_advice_beside(enum cause_kind kind, bool names_culprit, bool calls_known,
				uint32_t detail)
{
	if (kind == CAUSE_LOCK_CONTENTION && names_culprit)
		return "shorten the time for which the named thread holds the lock";
	if (kind == CAUSE_STOPPED && names_culprit)
		return "keep the named process from stopping the engine";
	if (kind == CAUSE_OTHER_CALLS && !calls_known)
		return detail == FBT_DETAIL_STEPS
			       ? "trace with --detail escalated, which names the call"
			       : "the record of the call was lost: --ring-records N makes room for "
				 "more";
	return cause_advice(kind);
}

/* SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause */
#include "inject/thread.h"

#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/status.h"

/* What the descriptor in the first argument must be for the rank to hold. */
enum inject_file {
	INJECT_FILE_ANY,    /* no descriptor, or any */
	INJECT_FILE_SOCKET, /* a socket; SO_RCVTIMEO and SO_RCVLOWAT matter */
	INJECT_FILE_QUEUE,  /* a pipe, a socket, an eventfd or the like */
};

#if defined(__x86_64__)

/* How the arguments tell that the other rank of the rule applies. */
enum told {
	TOLD_NEVER,
	TOLD_BY_POINTER, /* the argument is not NULL */
	TOLD_BY_MS,	 /* the argument is a time-out as that of poll, and is not negative */
	TOLD_BY_FLAG,	 /* the argument has the flag */
	TOLD_BY_FUTEX,	 /* see rank_futex */
};

struct rule {
	uint16_t nr;
	uint8_t rank;
	uint8_t other; /* rank with a time-out or with the flag */
	uint8_t told;
	uint8_t arg;
	uint8_t file;
	uint32_t flag;
};

#define NONE	    INJECT_RANK_NONE
#define BLOCK	    INJECT_RANK_BLOCK
#define RESTART	    INJECT_RANK_RESTART
#define WRITTEN	    INJECT_RANK_WRITTEN
#define EINTR_FREE  INJECT_RANK_EINTR
#define EINTR_TIMED INJECT_RANK_EINTR_TIMED
#define ANY	    INJECT_FILE_ANY
#define SOCKET	    INJECT_FILE_SOCKET
#define QUEUE	    INJECT_FILE_QUEUE

/*
 * Calls in which a thread may be taken, with their ranks. Left out on purpose:
 *  - semop, io_getevents, io_uring_enter, rt_sigtimedwait: return -EINTR, as epoll_wait does, but
 *    more programs do not expect it;
 *  - write, sendto, recvmmsg: return the count of what has been done so far;
 *  - connect: calling it again is another call (EALREADY);
 *  - open of a FIFO, flock, fcntl: some file systems (FUSE, NFS) implement the wait themselves;
 *  - rt_sigsuspend: how a runtime that stops the world holds its threads, wherever they were;
 *  - ioctl: up to the driver.
 */
static const struct rule rules[] = {
	/* -ERESTART_RESTARTBLOCK */
	{SYS_poll, BLOCK, NONE, TOLD_NEVER, 0, ANY, 0},
	{SYS_nanosleep, BLOCK, NONE, TOLD_NEVER, 0, ANY, 0},
	{SYS_clock_nanosleep, BLOCK, WRITTEN, TOLD_BY_FLAG, 1, ANY, TIMER_ABSTIME},
	{SYS_futex, NONE, NONE, TOLD_BY_FUTEX, 0, ANY, 0},
	/* -ERESTARTNOHAND; the kernel has written back the time that is left */
	{SYS_select, RESTART, WRITTEN, TOLD_BY_POINTER, 4, ANY, 0},
	{SYS_pselect6, RESTART, WRITTEN, TOLD_BY_POINTER, 4, ANY, 0},
	{SYS_ppoll, RESTART, WRITTEN, TOLD_BY_POINTER, 2, ANY, 0},
	{SYS_pause, RESTART, NONE, TOLD_NEVER, 0, ANY, 0},
	{SYS_msgrcv, RESTART, NONE, TOLD_NEVER, 0, ANY, 0},
	/* -ERESTARTSYS */
	{SYS_read, RESTART, NONE, TOLD_NEVER, 0, QUEUE, 0},
	{SYS_readv, RESTART, NONE, TOLD_NEVER, 0, QUEUE, 0},
	{SYS_accept, RESTART, NONE, TOLD_NEVER, 0, SOCKET, 0},
	{SYS_accept4, RESTART, NONE, TOLD_NEVER, 0, SOCKET, 0},
	/* MSG_WAITALL: if part of the data has come, the call returns a short count. */
	{SYS_recvfrom, RESTART, NONE, TOLD_BY_FLAG, 3, SOCKET, MSG_WAITALL},
	{SYS_recvmsg, RESTART, NONE, TOLD_BY_FLAG, 2, SOCKET, MSG_WAITALL},
	{SYS_wait4, RESTART, NONE, TOLD_NEVER, 0, ANY, 0},
	{SYS_waitid, RESTART, NONE, TOLD_NEVER, 0, ANY, 0},
	{SYS_mq_timedreceive, RESTART, NONE, TOLD_NEVER, 0, ANY, 0}, /* its time-out is absolute */
	/* -EINTR */
	{SYS_epoll_wait, EINTR_FREE, EINTR_TIMED, TOLD_BY_MS, 3, ANY, 0},
	{SYS_epoll_pwait, EINTR_FREE, EINTR_TIMED, TOLD_BY_MS, 3, ANY, 0},
	{SYS_epoll_pwait2, EINTR_FREE, EINTR_TIMED, TOLD_BY_POINTER, 3, ANY, 0},
};

static const struct rule *find_rule(uint64_t nr)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		if (rules[i].nr == nr)
			return &rules[i];
	}
	return NULL;
}

/*
 * Whether the futex word shows that the thread waits for a lock. In the locks of glibc (allocator,
 * loader, threads, mutexes), Rust, PartitionAlloc, Scudo and tcmalloc, 2 means contended. An odd
 * word in a plain wait is that of Abseil's spin locks, Zig's locks or pthread_once. Which lock it
 * is cannot be told.
 */
static bool is_lock_word(uint64_t command, uint64_t value)
{
	return (uint32_t)value == 2 || (command == FUTEX_WAIT && (value & 1));
}

static enum inject_rank rank_futex(const uint64_t args[6])
{
	uint64_t command = (uint32_t)args[1] & FUTEX_CMD_MASK;

	/*
	 * PI and requeue operations are left out: their state is both in the kernel and in the lock
	 * word.
	 */
	if ((command != FUTEX_WAIT && command != FUTEX_WAIT_BITSET) ||
	    is_lock_word(command, args[2]))
		return NONE;
	return args[3] ? BLOCK : RESTART;
}

/*
 * A call that was interrupted once continues as restart_syscall. /proc then shows not which call it
 * was, but still its arguments. The arguments of poll and the sleeps do not look like those of a
 * wait for a lock.
 */
static enum inject_rank rank_restarted(const uint64_t args[6])
{
	uint64_t command = (uint32_t)args[1] & ~FUTEX_PRIVATE_FLAG;
	bool like_futex = args[3] && (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET ||
				      command == (FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME));

	return like_futex && is_lock_word(command & FUTEX_CMD_MASK, args[2]) ? NONE : BLOCK;
}

enum inject_rank inject_rank_of(uint64_t nr, const uint64_t args[6])
{
	const struct rule *rule = find_rule(nr);
	bool other = false;

	if (nr == SYS_restart_syscall)
		return rank_restarted(args);
	if (!rule)
		return NONE;
	switch (rule->told) {
	case TOLD_BY_FUTEX:
		return rank_futex(args);
	case TOLD_BY_POINTER:
		other = args[rule->arg];
		break;
	case TOLD_BY_MS:
		other = (int32_t)args[rule->arg] >= 0;
		break;
	case TOLD_BY_FLAG:
		other = args[rule->arg] & rule->flag;
		break;
	default:
		break;
	}
	return other ? rule->other : rule->rank;
}

static enum inject_file file_of(uint64_t nr)
{
	const struct rule *rule = find_rule(nr);

	return rule ? rule->file : ANY;
}

#else

enum inject_rank inject_rank_of(uint64_t nr, const uint64_t args[6])
{
	return INJECT_RANK_NONE;
}

static enum inject_file file_of(uint64_t nr)
{
	return INJECT_FILE_ANY;
}

#endif

/* Linux 6.9; Debian 12's headers do not have it. */
#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

static bool is_queue(const char *link)
{
	static const char *const kinds[] = {"pipe:[",
					    "socket:[",
					    "anon_inode:[eventfd]",
					    "anon_inode:[timerfd]",
					    "anon_inode:[signalfd]",
					    "anon_inode:inotify"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (!strncmp(link, kinds[i], strlen(kinds[i])))
			return true;
	}
	return false;
}

/* Duplicates a descriptor of the thread, to query it. -errno on failure. */
static int borrow_file(uint32_t tgid, uint32_t tid, uint32_t number)
{
	int pidfd, fd;

	/* Open the thread itself where the kernel can (6.9): the first thread may have ended. */
	pidfd = (int)syscall(SYS_pidfd_open, (pid_t)tid, PIDFD_THREAD);
	if (pidfd < 0)
		pidfd = (int)syscall(SYS_pidfd_open, (pid_t)tgid, 0);
	if (pidfd < 0)
		return -errno;
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, (int)number, 0);
	if (fd < 0)
		fd = -errno;
	close(pidfd);
	return fd;
}

/*
 * With SO_RCVTIMEO the call returns EINTR and its time starts again. With SO_RCVLOWAT it returns
 * fewer bytes than that. A socket that cannot be queried gets the rank of a call with a time-out.
 */
static enum inject_rank rank_socket(enum inject_rank rank, uint32_t tgid, uint32_t tid,
				    uint32_t number)
{
	int fd = borrow_file(tgid, tid, number), least = 0;
	struct timeval time = {0};
	socklen_t size = sizeof(time), least_size = sizeof(least);

	if (fd < 0)
		return INJECT_RANK_EINTR_TIMED;
	if (getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, &size) ||
	    getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, &least_size))
		rank = INJECT_RANK_EINTR_TIMED;
	else if (time.tv_sec || time.tv_usec || least > 1)
		rank = INJECT_RANK_NONE;
	close(fd);
	return rank;
}

enum inject_rank inject_file_rank(uint32_t tgid, uint32_t tid, uint64_t nr, const uint64_t args[6])
{
	enum inject_rank rank = inject_rank_of(nr, args);
	char name[16], link[64];

	if (rank == INJECT_RANK_NONE || file_of(nr) == INJECT_FILE_ANY)
		return rank;
	snprintf(name, sizeof(name), "fd/%u", (uint32_t)args[0]);
	if (!proc_readlink((struct proc_ref){tgid, tid}, name, link, sizeof(link)) ||
	    !is_queue(link))
		return INJECT_RANK_NONE;
	return strncmp(link, "socket:", strlen("socket:"))
		       ? rank
		       : rank_socket(rank, tgid, tid, (uint32_t)args[0]);
}

#define HEADERS_MAX 64

struct range {
	uint64_t start;
	uint64_t end;
};

/* A thread that may be taken, with its sort keys. */
struct candidate {
	struct inject_thread thread;
	bool first; /* its tid is the tgid */
	bool lags;  /* gets less of a CPU than the first thread */
	uint32_t filters;
	uint64_t sleeps;
};

typedef VEC(struct candidate) candidate_vec;

struct look {
	uint32_t tgid;
	int32_t nice; /* of the first thread */
	struct range stub;
	struct range loader;
	bool loader_known;
	candidate_vec found;
};

/* Makes one error of those that a thread causes by ending during a look. */
static int map_error(int err)
{
	if (err == -ENOENT)
		return -ESRCH;
	return err == -EACCES ? -EPERM : err;
}

/* Reads a file of at most size - 2 bytes as a string: 0 or -errno. */
static int read_text(struct proc_ref ref, const char *name, char *text, size_t size)
{
	int fd = proc_open(ref, name, O_RDONLY), err = 0;
	ssize_t got;

	if (fd < 0)
		return map_error(fd);
	got = read(fd, text, size - 1);
	if (got < 0)
		err = map_error(-errno);
	else if (got == (ssize_t)size - 1)
		err = -E2BIG;
	text[got > 0 ? got : 0] = '\0';
	close(fd);
	return err ? err : got ? 0 : -ESRCH;
}

int inject_thread_parse(struct inject_thread *thread, const char *line)
{
	uint64_t *args = thread->args;
	int64_t nr;

	if (!strncmp(line, "running", strlen("running")))
		return -EAGAIN;
	if (sscanf(line, "%" SCNd64, &nr) != 1)
		return -EBADMSG;
	if (nr == -1)
		return -EAGAIN;
	if (nr < 0 || sscanf(line,
			     "%*d %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
			     " %" SCNx64 " %" SCNx64 " %" SCNx64,
			     &args[0], &args[1], &args[2], &args[3], &args[4], &args[5],
			     &thread->sp, &thread->pc) != 8)
		return -EBADMSG;
	thread->nr = (uint64_t)nr;
	return 0;
}

enum inject_rank inject_thread_rank(const struct inject_thread *thread)
{
	return inject_rank_of(thread->nr, thread->args);
}

static int read_call(struct inject_thread *thread, uint32_t tgid, uint32_t tid)
{
	char line[256];
	int err = read_text((struct proc_ref){tgid, tid}, "syscall", line, sizeof(line));

	return err ? err : inject_thread_parse(thread, line);
}

bool inject_thread_is_same(const struct inject_thread *thread, uint32_t tgid)
{
	struct inject_thread now = {0};

	return !read_call(&now, tgid, thread->tid) && now.nr == thread->nr &&
	       now.sp == thread->sp && now.pc == thread->pc &&
	       !memcmp(now.args, thread->args, sizeof(now.args));
}

/*
 * Whether the thread sleeps and has no real-time policy, which the helper thread would inherit.
 * Sets lags.
 */
static bool is_at_rest(struct candidate *candidate, const struct look *look)
{
	struct thread_stat stat;

	if (thread_stat_read(&stat, (struct proc_ref){look->tgid, candidate->thread.tid}))
		return false;
	candidate->lags = stat.policy == SCHED_IDLE || stat.nice > look->nice;
	return stat.state == 'S' && stat.policy != SCHED_FIFO && stat.policy != SCHED_RR &&
	       stat.policy != SCHED_DEADLINE;
}

/* false: the thread is gone, or in seccomp's strict mode. */
static bool read_status(struct candidate *candidate, uint32_t tgid)
{
	struct thread_status status;

	if (thread_status_read(&status, (struct proc_ref){tgid, candidate->thread.tid}))
		return false;
	candidate->filters = status.seccomp_filters;
	candidate->sleeps = status.voluntary_switches;
	candidate->thread.filtered = status.seccomp != 0;
	return status.seccomp != SECCOMP_MODE_STRICT;
}

/* The address of ld.so, from auxv. AT_BASE is 0 if ld.so is the program itself. 0: unknown. */
static uint64_t find_loader(uint32_t tgid, uint32_t tid)
{
	Elf64_auxv_t entries[64];
	uint64_t base = 0, headers = 0;
	int fd = proc_open((struct proc_ref){tgid, tid}, "auxv", O_RDONLY);
	ssize_t size;

	if (fd < 0)
		return 0;
	size = read(fd, entries, sizeof(entries));
	close(fd);
	for (size_t i = 0; size > 0 && i < (size_t)size / sizeof(*entries); i++) {
		if (entries[i].a_type == AT_BASE)
			base = entries[i].a_un.a_val;
		if (entries[i].a_type == AT_PHDR)
			headers = entries[i].a_un.a_val;
	}
	return base ? base : headers & ~4095ull;
}

/*
 * Finds the range of ld.so from its program headers in memory, because /proc/PID/maps of a process
 * with CUDA has thousands of lines.
 */
static bool read_loader(struct range *loader, uint32_t tgid, uint32_t tid)
{
	Elf64_Phdr headers[HEADERS_MAX];
	Elf64_Ehdr header;
	bool known = false;
	size_t size;
	int fd;

	loader->start = loader->end = find_loader(tgid, tid);
	if (!loader->start)
		return false;
	fd = proc_open((struct proc_ref){tgid, tid}, "mem", O_RDONLY);
	if (fd < 0)
		return false;
	if (pread(fd, &header, sizeof(header), (off_t)loader->start) != sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_phnum > HEADERS_MAX ||
	    header.e_phentsize != sizeof(*headers))
		goto out;
	size = header.e_phnum * sizeof(*headers);
	if (pread(fd, headers, size, (off_t)(loader->start + header.e_phoff)) != (ssize_t)size)
		goto out;
	for (size_t i = 0; i < header.e_phnum; i++) {
		uint64_t end = loader->start + headers[i].p_vaddr + headers[i].p_memsz;

		if (headers[i].p_type == PT_LOAD && end > loader->end)
			loader->end = end;
	}
	known = loader->end > loader->start;
out:
	close(fd);
	return known;
}

static bool is_within(uint64_t address, const struct range *range)
{
	return address >= range->start && address < range->end;
}

/* Adds the thread if it may be taken. 0; -errno if no thread of this process can be examined. */
static int look_at_thread(struct look *look, uint32_t tid)
{
	struct candidate candidate = {.thread = {.tid = tid}, .first = tid == look->tgid};
	struct inject_thread *thread = &candidate.thread;
	int err = read_call(thread, look->tgid, tid);

	if (err)
		return err == -EPERM ? err : 0;
	thread->rank = inject_file_rank(look->tgid, tid, thread->nr, thread->args);
	if (thread->rank == INJECT_RANK_NONE || is_within(thread->pc, &look->stub))
		return 0;
	if (!look->loader_known)
		look->loader_known = read_loader(&look->loader, look->tgid, tid);
	if (!look->loader_known || is_within(thread->pc, &look->loader) ||
	    !is_at_rest(&candidate, look) || !read_status(&candidate, look->tgid))
		return 0;
	return vec_push(&look->found, candidate);
}

/*
 * Whether a stop itself may do harm. It makes the kernel restart the call by restart_syscall, which
 * a filter may not allow, and filters can be read only during a stop. A thread that is already in
 * restart_syscall is safe.
 */
static bool is_risky(const struct inject_thread *thread)
{
	return thread->filtered && thread->rank == INJECT_RANK_BLOCK &&
	       thread->nr != SYS_restart_syscall;
}

static int compare(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	if (is_risky(&a->thread) != is_risky(&b->thread))
		return is_risky(&a->thread) ? 1 : -1;
	if (a->thread.rank != b->thread.rank)
		return a->thread.rank < b->thread.rank ? -1 : 1;
	/* The helper inherits the filters. */
	if (a->filters != b->filters)
		return a->filters < b->filters ? -1 : 1;
	/*
	 * A library's thread inherits how it is scheduled, and may not be allowed to change that.
	 * The engine would wait for it.
	 */
	if (a->lags != b->lags)
		return a->lags ? 1 : -1;
	/* The first thread often runs the steps. */
	if (a->first != b->first)
		return a->first ? 1 : -1;
	/*
	 * A thread that seldom wakes up is likely to be there still when it is stopped. The count
	 * does not change while the thread waits, so the next search ranks the same thread best.
	 */
	if (a->sleeps != b->sleeps)
		return a->sleeps < b->sleeps ? -1 : 1;
	return a->thread.tid < b->thread.tid ? -1 : a->thread.tid > b->thread.tid;
}

/*
 * In a process with more threads than one search looks at, each search starts at another position
 * in the directory.
 */
static long choose_start(DIR *folder)
{
	struct stat status;

	/* Each thread is a directory; two more links are "." and "..". */
	if (fstat(dirfd(folder), &status) || status.st_nlink <= INJECT_THREADS_LOOKED + 2)
		return 0;
	return (long)(clock_ns(CLOCK_MONOTONIC) / NS_PER_US % (status.st_nlink - 2)) + 2;
}

static int look_at_threads(struct look *look, DIR *folder)
{
	long start = choose_start(folder);
	bool wrapped = !start;
	struct dirent *entry;
	uint32_t looked = 0;
	int err = 0;

	if (start)
		seekdir(folder, start);
	while (!err && looked < INJECT_THREADS_LOOKED) {
		entry = readdir(folder);
		if (!entry && wrapped)
			break;
		if (!entry) {
			rewinddir(folder);
			wrapped = true;
			continue;
		}
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		looked++;
		err = look_at_thread(look, (uint32_t)strtoul(entry->d_name, NULL, 10));
	}
	return err;
}

int inject_threads_list(inject_thread_vec *threads, uint32_t tgid, uint64_t stub,
			uint32_t stub_size)
{
	struct look look = {.tgid = tgid, .stub = {.start = stub, .end = stub + stub_size}};
	char path[PROC_PATH_MAX];
	struct thread_stat stat;
	DIR *folder;
	int err;

	if (!thread_stat_read(&stat, (struct proc_ref){tgid, tgid}))
		look.nice = stat.nice;
	proc_path(path, (struct proc_ref){.tgid = tgid}, "task");
	folder = opendir(path);
	if (!folder)
		return map_error(-errno);
	err = look_at_threads(&look, folder);
	closedir(folder);
	if (look.found.count)
		qsort(look.found.items, look.found.count, sizeof(*look.found.items), compare);
	threads->count = 0;
	vec_for_each (candidate, &look.found) {
		if (!err)
			err = vec_push(threads, candidate->thread);
	}
	vec_free(&look.found);
	return err;
}
